"""Implementations in separate processes: hosts, runners, shared memory, time limits, attribution.

May import `core`, `generate` and the interface of adapters. Start reading at `host`, then `process`.
"""
