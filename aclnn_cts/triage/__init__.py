"""After a failure: shrink, search, replay status, deduplication, comparison of two runs.

May import `trials` and what is below it. Start reading at `shrink`, `dedup` or `compare`.
"""
