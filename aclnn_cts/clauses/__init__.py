"""The verdict on each clause: which trials are evidence for it, and what they say.

May import `triage`, `checks` and what is below them. Start reading at `clause_verdicts`.
"""
