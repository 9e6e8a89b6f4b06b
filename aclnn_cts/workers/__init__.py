"""Processes that do jobs, on this machine or on a cluster: handed out, watched and replaced.

May import `sandbox`, `store` and what is below them. Start reading at `service`, then `dispatch` and `pool`.
"""
