"""Detection power: seeded faults, decoys, and the kill matrix that says which are found.

May import `trials` and what is below it. Start reading at `power`, then `kill_matrix`.
"""
