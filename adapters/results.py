"""From what an implementation gave back to an `Outcome`, for adapters that return arrays."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike

from aclnn_cts.adapters.protocol import Call, Inexpressible, Rejected, Session
from aclnn_cts.core.case import Tensor
from aclnn_cts.core.dtypes import DTYPES, numpy_dtype
from aclnn_cts.core.outcome import Ended, Outcome

COLD_FACT = "cold"
"""Key of the fact whether an implementation met an accepted call for the first time in its process."""

MESSAGE_LIMIT = 4000
"""Characters of a message that are kept: an exception may quote a whole tensor."""


def shape_fact(output: str) -> str:
    """Key of the fact that an output came back in another shape (a list of sizes, as text)."""
    return f"{output}.shape"


def dtype_fact(output: str) -> str:
    """Key of the fact that an output came back in another dtype (an aclDataType where there is one)."""
    return f"{output}.dtype"


def mismatch(output: str, expected: Tensor, *, shape: Sequence[int], dtype: str) -> dict[str, str]:
    """The facts that a returned output differs from its descriptor; empty where it does not."""
    facts = {}
    if tuple(shape) != expected.shape:
        facts[shape_fact(output)] = str(list(shape))
    if dtype != expected.dtype:
        facts[dtype_fact(output)] = dtype
    return facts


def outcome_of(call: Call, results: Mapping[str, ArrayLike], *, seconds: float = 0.0) -> Outcome:
    """Copy returned arrays into the call's outputs and say that the call returned.

    An array whose shape or dtype is not the descriptor's is not copied: the difference becomes a fact
    (`shape_fact`, `dtype_fact`) that the judge reads. An output without a result stays as it was, unwritten.

    Raises KeyError for a result that is no output of the call.
    """
    outputs = call.buffers.outputs if call.buffers is not None else {}
    facts: dict[str, str] = {}
    for name, result in results.items():
        descriptor = call.case.tensor(name)
        if name not in outputs or descriptor is None:
            raise KeyError(
                f"{name!r} is no output of {call.case.operator} that has memory; expected any of {list(outputs)}"
            )
        array = np.asarray(result)
        wrong = mismatch(name, descriptor, shape=array.shape, dtype=_acl_names().get(array.dtype, array.dtype.name))
        if wrong:
            facts |= wrong
        else:
            outputs[name].view[...] = array
    return Outcome(facts=facts, seconds=seconds)


def run_each(calls: Sequence[Call], function: Callable[[Call], Outcome]) -> list[Outcome]:
    """Make calls one after the other; whatever one raises becomes its outcome, and times are filled in."""
    return [_guarded(call, function) for call in calls]


def perform(session: Session, calls: Sequence[Call]) -> list[Outcome]:
    """Put calls that belong together to a session; never raises an Exception, always one outcome a call."""
    start = time.perf_counter()
    try:
        outcomes = list(session.run(calls))
    except Exception as error:  # noqa: BLE001 - an adapter is not trusted
        return [_of_exception(error, seconds=time.perf_counter() - start)] * len(calls)
    if len(outcomes) != len(calls) or not all(isinstance(outcome, Outcome) for outcome in outcomes):
        message = (
            f"the adapter's run() gave {len(outcomes)} results for {len(calls)} calls; expected one Outcome a call"
        )
        return [Outcome(ended=Ended.NOT_RUN, message=message)] * len(calls)
    elapsed = (time.perf_counter() - start) / max(len(calls), 1)
    if not session.capabilities.rejections:
        # Of an implementation that declares none: it raised, and nobody can say why.
        outcomes = [replace(outcome, rejected=False) if outcome.rejected else outcome for outcome in outcomes]
    return [outcome if outcome.seconds else replace(outcome, seconds=elapsed) for outcome in outcomes]


def _guarded(call: Call, function: Callable[[Call], Outcome]) -> Outcome:
    start = time.perf_counter()
    try:
        outcome = function(call)
    except Exception as error:  # noqa: BLE001 - a refusal of any kind is an answer
        return _of_exception(error, seconds=time.perf_counter() - start)
    return outcome if outcome.seconds else replace(outcome, seconds=time.perf_counter() - start)


def _of_exception(error: Exception, *, seconds: float) -> Outcome:
    if isinstance(error, Inexpressible):
        return Outcome(ended=Ended.INEXPRESSIBLE, message=str(error)[:MESSAGE_LIMIT])
    if isinstance(error, Rejected):
        return Outcome(ended=Ended.RAISED, message=str(error)[:MESSAGE_LIMIT], rejected=True, seconds=seconds)
    if isinstance(error, MemoryError):
        return Outcome(ended=Ended.NOT_RUN, message=f"out of memory: {error}"[:MESSAGE_LIMIT], seconds=seconds)
    return Outcome(ended=Ended.RAISED, message=f"{type(error).__name__}: {error}"[:MESSAGE_LIMIT], seconds=seconds)


@functools.cache
def _acl_names() -> Mapping[np.dtype[Any], str]:
    kinds = ("float", "signed", "unsigned", "bool", "complex")
    return MappingProxyType({numpy_dtype(name): name for name, dtype in DTYPES.items() if dtype.kind in kinds})
