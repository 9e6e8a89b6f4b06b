"""Campaigns: hours of trials on many devices, with coverage, triage and resumption.

May import `workers`, `repro` and what is below them. Start reading at `session`, then `head`.
"""
