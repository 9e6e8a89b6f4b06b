"""The evidence of a run in one signed file of canonical bytes, and its verification.

May import `repro`, `store` and what is below them. Start reading at `write` and `verify`.
"""
