"""Documents as data: YAML to `Spec`, the constraint kinds, the expression language, evaluation and lint."""
