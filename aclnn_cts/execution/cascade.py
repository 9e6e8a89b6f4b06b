"""Cases of a backward operator whose saved tensors are those of a forward pass on the same inputs.

The forward pass is that of the operator's formula, in float64, rounded to each tensor's dtype. Its results are explicit
values of the case: whoever runs it again needs no formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from aclnn_cts.core.case import Case, Data, Tensor, with_arguments
from aclnn_cts.core.dtypes import COMPONENTS, INEXACT
from aclnn_cts.core.errors import HarnessError, OracleError, UsageError
from aclnn_cts.core.expected import Float64, OracleInput
from aclnn_cts.core.rounding import to_dtype, widen
from aclnn_cts.core.standard import CASCADE, SAVED_STATE, with_detail
from aclnn_cts.execution.judging import as_operands
from aclnn_cts.formula.derivative import saved_tensors
from aclnn_cts.generate.recipes import array, case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.standard_calls import combined_state
from aclnn_cts.oracles.registry import load_formula
from aclnn_cts.speclang.evaluate import first_broken
from aclnn_cts.speclang.model import Spec

MOST_ELEMENTS = 512
"""Of a saved tensor: it stands in the case, and in its record, number by number."""
_SEED = 0x5EED
"""Added to a seed for the contents of what the forward pass alone takes."""


def saved_names(spec: Spec) -> tuple[str, ...]:
    """The floating inputs of an operator that its forward pass saves, as far as its formula says it."""
    try:
        operator = load_formula(spec.stem)
    except (HarnessError, UsageError):
        return ()
    if isinstance(operator.derivative, str):
        return ()
    return tuple(name for name in operator.derivative.saved if name in spec.inputs)


def with_forward_results(case: Case, spec: Spec) -> Case | None:
    """The case with the saved tensors of a forward pass; None where there is none, or it is too large or not finite."""
    tensors = {name: tensor for name in saved_names(spec) if (tensor := case.tensor(name)) is not None}
    if not tensors or case.call.phases == 1 or not all(map(_is_fit, tensors.values())):
        return None
    operator = load_formula(spec.stem)
    given = case_arrays(case, spec.given_inputs(case))
    call = OracleInput(
        tensors=as_operands(case, given),
        arguments=case.arguments,
        target=case.target,
        updated=spec.updated_tensors(case),
    )
    first = next(
        tensor for name, tensor in case.tensors() if tensor.dtype in INEXACT and tensor.data and name not in tensors
    )

    def make(name: str, shape: tuple[int, ...]) -> Float64:
        data = first.data or Data(recipe="normal")
        data = msgspec.structs.replace(data, seed=data.seed + _SEED)
        return widen(array(Tensor(shape, first.dtype, data=data), arrays={}, name=name))

    try:
        found = saved_tensors(operator, call, make)
    except OracleError:
        return None
    return _with_values(case, spec, tensors, found)


def in_cascade(cases: Iterator[Case], spec: Spec, *, is_asked: bool) -> Iterator[Case]:
    """The cases, where it is asked for with the saved tensors of a forward pass if they can be had."""
    names = ", ".join(saved_names(spec)) if is_asked else ""
    for case in cases:
        if (found := with_forward_results(case, spec) if names else None) is None:
            yield case
        else:
            source = with_detail(found.origin.source or "", CASCADE, names)
            yield msgspec.structs.replace(found, origin=msgspec.structs.replace(found.origin, source=source))


def standard_state(samplers: Iterable[Sampler], standard: str, *, seed: int, max_bytes: int) -> dict[str, object]:
    """What a run keeps, by key, of what its standard combines and a forward pass saves."""
    state: dict[str, object] = {}
    for sampler in samplers:
        key, options = combined_state(sampler, standard, seed=seed, max_bytes=max_bytes)
        state |= {key: options, SAVED_STATE + sampler.spec.operator: saved_names(sampler.spec)}
    return state


def _is_fit(tensor: Tensor) -> bool:
    is_real = tensor.dtype in INEXACT and tensor.dtype not in COMPONENTS
    return is_real and 0 < tensor.numel <= MOST_ELEMENTS and tensor.is_contiguous


def _with_values(case: Case, spec: Spec, tensors: Mapping[str, Tensor], found: Mapping[str, Float64]) -> Case | None:
    changes = {}
    for name, tensor in tensors.items():
        value = found.get(name)
        if value is None or value.shape != tensor.shape:
            return None
        rounded = widen(to_dtype(value, tensor.dtype))
        if not np.isfinite(rounded).all():
            return None
        changes[name] = msgspec.structs.replace(tensor, data=Data(values=tuple(rounded.reshape(-1).tolist())))
    changed = with_arguments(case, changes)
    return None if first_broken(spec, changed) else changed
