"""Implementations under test, each behind one interface, found by name or `package.module:factory`.

May import `core`, `speclang` and `generate`; other packages import `protocol`, `results` and `registry` alone.
Start reading at `protocol`.
"""
