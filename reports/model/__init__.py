"""What an acceptance report shows, counted in one pass over the run directories.

May import `clauses`, `triage`, `mutants`, `repro` and what is below them; it counts verdicts and decides none.
Start reading at `build`, then `acceptance`.
"""
