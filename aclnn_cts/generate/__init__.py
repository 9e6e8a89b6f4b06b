"""Specs to cases, and cases to bytes: choices, sampling, negative cases, data recipes, guarded memory.

May import `core` and `speclang`. Start reading at `sampler`; `philox` is the only source of randomness.
"""
