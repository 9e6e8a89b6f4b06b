"""Known failures with an owner and an expiry date: files, matching, draft, report.

May import `findings` and what is below it. Start reading at `file`, then `matching`.
"""
