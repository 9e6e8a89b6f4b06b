"""Outcomes to verdicts: error bounds from compute models, comparison, conclusions.

May import `core` and `speclang`; knows no operator and runs nothing, so that a record can be judged again.
Start reading at `verdict`, then `bound` and `model`.
"""
