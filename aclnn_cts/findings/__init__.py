"""Failures as findings: fingerprint, finding, explanation; waivers in `waivers`.

May import `checks`, `store` and what is below them. Start reading at `fingerprint`, then `group`.
"""
