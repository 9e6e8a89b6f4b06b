"""Outcomes to verdicts: error bounds from an oracle's terms and a compute model, comparison, and what follows.

`model` reads the compute models of `specs/precision.yaml`, `bound` derives from one of them and from `Expected` the
outputs that conform, `compare` holds one output against them, `verdict` and `status` conclude. Judgement knows no
operator and runs nothing: it is a function of plain objects, so that a record can be judged again.
"""
