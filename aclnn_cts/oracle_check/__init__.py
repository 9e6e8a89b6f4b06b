"""Is an oracle right? Emulations, mutants, derivative and laws of its formula are held against it.

May import `checks`, `formula`, `oracles` and what is below them. Start reading at `check`, then `subject`.
"""
