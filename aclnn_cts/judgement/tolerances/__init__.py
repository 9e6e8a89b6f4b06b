"""The ecosystem's acceptance rules, each with its own verdict beside that of the derived bound.

`pair` is what a rule takes, `protocol` what it gives, `registry` knows them by name. `docs/tolerances.md` has the
numbers.
"""
