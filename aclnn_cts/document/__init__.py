"""Operator documents as data: read with an address for each statement, audited against specs, drafted as specs.

May import `core` and `speclang`. Start in `read`; `audit` and `draft` use what it makes.
"""
