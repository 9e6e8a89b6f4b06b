"""What a campaign tries next: chunks, schedule, mutation, coverage feedback.

May import `checks`, `generate` and what is below them. Start reading at `schedule`, then `check_coverage`.
"""
