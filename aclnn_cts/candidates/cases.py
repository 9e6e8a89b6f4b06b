"""Calls to make: `cases` draws them from an operator's document, with the contents of their inputs as arrays."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.candidates.arrays import array_json, plain_json
from aclnn_cts.candidates.check import check_word, judged_document
from aclnn_cts.core.case import Case, Tensor, TensorList
from aclnn_cts.core.case_json import case_id, case_to_json
from aclnn_cts.core.dtypes import numpy_dtype
from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.printable import quote
from aclnn_cts.core.regime import Regime
from aclnn_cts.core.trial import Trial
from aclnn_cts.generate.choices import SEED_LIMIT
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.regime_cells import case_regimes
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.sandbox.candidate_host import plain_argument
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.registry import check_by_id
from aclnn_cts.trials.plan import plan_parts
from aclnn_cts.trials.plan import profile as chosen_profile

SEEDS = 2**63
"""Seeds that the system's entropy draws lie below this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseArrays:
    """One valid call: what `check` takes as inputs, and memory for outputs."""

    id: str
    """SHA-256 of the case: equal calls have equal ids."""
    case: Case
    """The call as `case files` hold it: descriptors and recipes of contents."""
    inputs: Mapping[str, NDArray[Any]]
    """By parameter name; tensors of a list as `name[0]`, `name[1]`."""
    attributes: Mapping[str, Any]
    """All other arguments but the outputs, as Python values; null pointers are None."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Inputs and attributes together, lists of tensors as lists."""
        lists = {
            name: [self.inputs[f"{name}[{place}]"] for place in range(len(value))]
            for name, value in self.case.arguments.items()
            if isinstance(value, TensorList) and f"{name}[0]" in self.inputs
        }
        plain = {name: array for name, array in self.inputs.items() if "[" not in name}
        return {**plain, **lists, **self.attributes}

    def outputs(self) -> dict[str, NDArray[Any]]:
        """New arrays for the outputs that the call computes, filled with nan bytes."""
        made: dict[str, NDArray[Any]] = {}
        for name, tensor in self.case.tensors():
            if name not in self.inputs:
                dtype = numpy_dtype(tensor.dtype)
                size = tensor.numel * dtype.itemsize
                made[name] = np.full(size, 0xFF, np.uint8).view(dtype).reshape(tensor.shape)
        return made

    def to_json(self) -> dict[str, Any]:
        """The case, and the contents of inputs that are not too large (`case_arrays.schema.json`)."""
        return {
            "id": self.id,
            "case": plain_json(case_to_json(self.case)),
            "inputs": {name: array_json(array) for name, array in self.inputs.items()},
        }


def cases(
    op: str,
    *,
    seed: int | None = None,
    n: int | None = None,
    profile: str = "quick",
    regimes: Collection[str] | None = None,
    product: str | None = None,
    edition: str | None = None,
) -> Iterator[CaseArrays]:
    """Valid calls of an operator, in the order in which they find most.

    - `seed`: the same seed gives the same calls; None: one from the system's entropy.
    - `n`: how many at most; None: all that the profile plans.
    - `profile`: `quick`, `standard` or `thorough`.
    - `regimes`: only calls in one of these size regimes (`docs/regimes.md`); None: all.

    Raises UsageError for an unknown operator, profile or regime.
    """
    known = judged_document(op, product, edition)
    check_word(profile, where="profile")
    chosen_profile(profile, where="profile")
    if n is not None and not (is_integer(n) and n >= 0):
        raise UsageError(f"n: {quote(n)}; expected how many calls at most, 0 or more, or None for all")
    drawn = drawn_seed(seed)
    names = [item.value for item in Regime]
    if regimes is not None and (isinstance(regimes, str) or not isinstance(regimes, Collection)):
        raise UsageError(f"regimes: {quote(regimes)}; expected a list of {', '.join(names)}, or None for all")
    for name in regimes or ():
        if name not in names:
            raise UsageError(
                f"regimes: {quote(name)}: expected any of {', '.join(names)}{did_you_mean(str(name), names)}"
            )
    sampler = Sampler(known.spec, known.target)
    found = (
        case_of(known.spec, trial.case)
        for trial in value_trials(known.spec, sampler, profile_name=profile, seed=drawn)
        if regimes is None or {item.value for item in case_regimes(trial.case)} & set(regimes)
    )
    return itertools.islice(found, n)


def is_integer(value: object) -> bool:
    """Whether a parameter is an integer, of Python or NumPy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def random_seed() -> int:
    """A seed from the system's entropy."""
    return secrets.randbelow(SEEDS)


def drawn_seed(seed: int | None) -> int:
    """A seed that was given, or a random one. Raises UsageError for anything else."""
    if seed is None:
        return random_seed()
    if not (is_integer(seed) and 0 <= seed < SEED_LIMIT):
        raise UsageError(f"seed: {quote(seed)}; expected an integer from 0 to 2^64 - 1 ({SEED_LIMIT - 1}), or None")
    return int(seed)


def value_trials(spec: Spec, sampler: Sampler, *, profile_name: str, seed: int) -> Iterator[Trial]:
    """The trials of a plan that compare the values of one valid call with contents."""
    for part in plan_parts([spec], product=sampler.target.product, chosen=chosen_profile(profile_name)):
        if part.check in ("values", "memory"):
            for trial in check_by_id(part.check, where="plan").trials(part, sampler, seed=seed):
                if trial.case.call.phases != 1:
                    yield trial


def case_of(spec: Spec, case: Case) -> CaseArrays:
    """A case with its contents."""
    return CaseArrays(
        id=case_id(case),
        case=case,
        inputs=case_arrays(case, spec.given_inputs(case)),
        attributes={
            item.name: plain_argument(item.name, case.arguments[item.name], {})
            for item in spec.parameters
            if item.role != "output" and not isinstance(case.arguments[item.name], (Tensor, TensorList))
        },
    )
