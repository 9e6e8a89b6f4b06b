"""The ecosystem's acceptance rules, each from the same pair of outputs and each with its own verdict.

`pair` is what a ruler takes and `protocol` what it gives, one module a family of rules holds its numbers, and
`registry` knows them by name. None of them judges here: the derived bound does. They stand beside it, and gate a run
that asks for them. `docs/rulers.md` tells each rule with its numbers and where they come from.
"""
