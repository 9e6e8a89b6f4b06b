"""An operator's mathematics written once: values, error bounds and emulations are derived from it.

May import `core` and `judgement`. Start reading at `definition`.
"""
