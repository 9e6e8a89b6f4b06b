"""What an acceptance report shows, counted in one pass over the run directories, with a verdict for each clause.

May import `triage`, `selftest`, `findings`, `store` and `core`: nothing that calls or judges.
Start reading at `build`, then `acceptance`.
"""
