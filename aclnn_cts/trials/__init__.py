"""Trials: the plan of a run, the checks, and the runner that judges trials and confirms failures.

May import `findings` and what is below it. Start reading at `trial_runner`, then `plan` and `checks`.
"""
