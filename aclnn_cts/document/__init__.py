"""Operator documents as data: read, audited against specs, drafted as specs.

It may read what the spec language knows and runs no operator; start in `read.py`.
"""
