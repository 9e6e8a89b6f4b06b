"""From documents to specs: documents read, audited and drafted as specs; test cases of other tools imported.

May import `generate` and what is below it. Start reading at `read`, then `claims` and `draft`.
"""
