"""A conformance run, the gate of the pytest plugin, and the doctor.

May import `triage`, `trials` and what is below them. Start reading at `run`.
"""
