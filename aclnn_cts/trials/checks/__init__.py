"""What a trial can check: values, statuses, equal calls, life cycles, precision.

May import `execution` and what is below it. Start reading at `registry`.
"""
