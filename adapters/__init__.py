"""Implementations under test, each behind one protocol (`protocol`), found by name or by `package.module:factory`."""
