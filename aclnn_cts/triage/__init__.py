"""After a failure: shrink, search, replay status, comparison of two runs.

May import `trials` and what is below it. Start reading at `shrink`, then `compare`.
"""
