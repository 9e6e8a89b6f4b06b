"""What a trial can check: values, statuses, laws, life cycles, precision; and the plan of a run.

May import `execution` and what is below it. Start reading at `registry`, then `plan`.
"""
