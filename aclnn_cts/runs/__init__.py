"""A conformance run, the gate of the pytest plugin, and the doctor; campaigns in `campaign`.

May import `triage`, `repro`, `trials`, `workers` and what is below them. Start reading at `run`.
"""
