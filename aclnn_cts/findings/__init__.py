"""Failures as findings: signature, finding, explanation; waivers in `waivers`.

May import `checks`, `store` and what is below them. Start reading at `signature`, then `finding`.
"""
