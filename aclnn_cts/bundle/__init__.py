"""The evidence of a run in one ZIP file that can be signed, and its verification.

May import `execution`, `findings`, `store` and what is below them. Start reading at `write` and `verify`.
"""
