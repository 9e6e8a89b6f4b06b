"""The evidence of a run in one file of canonical bytes, and its check."""
