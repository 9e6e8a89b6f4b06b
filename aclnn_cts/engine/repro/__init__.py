"""Stand-alone programs that show a case: for those who have the operator library and not this harness."""
