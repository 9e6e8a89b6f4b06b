"""Verdicts for other benchmarks: each module speaks the format of one, and imports it only where it is called.

May import `core`, `sandbox` and `candidates`. Start reading at `flashinfer_bench`.
"""
