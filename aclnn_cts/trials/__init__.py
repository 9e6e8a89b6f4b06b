"""Runs and judges trials in batches; confirms failures, finds the calls that a failure depends on.

May import `findings`, `checks` and what is below them. Start reading at `trial_runner`, then `confirm`.
"""
