"""The spec language: YAML to `Spec`, constraint kinds, expressions, evaluation.

May import `core`. Start reading at `model`; `load` reads a file, `evaluate` holds a case against a spec.
"""
