"""The objects that cross the packages, and the facts of the C headers: dtypes, formats, statuses.

May import nothing of ours. Start reading at `case`, then `trial`, `outcome` and `verdict`.
"""
