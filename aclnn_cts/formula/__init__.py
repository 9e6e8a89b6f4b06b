"""An operator's mathematics, written once; value, bound, second opinion, emulations, mutants and laws follow from it.

An oracle file states a formula: a function `backward(f, …)` over arrays of a backend `f`. Evaluated by

- `bounds`, it gives values and one absolute error each, by running error analysis;
- `emulator`, what a correct implementation computes in a format and an order of summation, or with one wrong operation;
- `graph`, single elements in 50 digits, and differences of the forward operator (`derivative`).

Bounds are derived and not fitted: from the roundings of the compute model alone (`core.arithmetic`). Sums and products
may be computed in any order; `as_written` marks what every implementation computes as it stands. Where nothing can be
known, an element is open: `error` is inf inside, and a mask outside.

The first form judges. Further forms of the same mathematics explain failures, and decide what inf and nan require: two
forms must agree. `definition` holds what a file states, `expectation` what an oracle says of a call, `special` inf and
nan. The package imports `core`, and the compute models of the judge.
"""
