"""Does the harness notice what it must? Seeded faults, mutants, decoys, and the check of an oracle by its formula.

May import `trials`, `workers` and what is below them. Start reading at `power`, then `oracle_check`.
"""
