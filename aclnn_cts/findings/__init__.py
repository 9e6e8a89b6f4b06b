"""Failures as findings: fingerprint, deduplication, explanation; waivers in `waivers`.

May import `trials.checks`, `store` and what is below them. Start reading at `fingerprint`, then `group`.
"""
