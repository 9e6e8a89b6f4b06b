"""From what an implementation gave back to an `Outcome`, for adapters that return arrays."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike

from aclnn_cts.adapters.protocol import Call, Inexpressible, Rejected, Session
from aclnn_cts.core.case import Tensor
from aclnn_cts.core.dtypes import acl_name
from aclnn_cts.core.outcome import BufferState, CallEnd, Outcome

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
        wrong = mismatch(name, descriptor, shape=array.shape, dtype=acl_name(array.dtype))
        if wrong:
            facts |= wrong
        else:
            outputs[name].view[...] = array
    return Outcome(facts=facts, seconds=seconds)


def run_each(calls: Sequence[Call], function: Callable[[Call], Outcome]) -> list[Outcome]:
    """Make calls one after the other; whatever one raises becomes its outcome, and times are filled in."""
    return [_guarded(call, function) for call in calls]


def perform(session: Session, calls: Sequence[Call]) -> list[Outcome]:
    """Put calls that belong together to a session; never raises an Exception, always one outcome a call.

    Of an implementation that writes in place each outcome says what the outputs held when the calls returned.
    """
    start = time.perf_counter()
    try:
        outcomes = list(session.run(calls))
    except Exception as error:  # noqa: BLE001 - an adapter is not trusted
        return [_of_exception(error, seconds=time.perf_counter() - start)] * len(calls)
    if len(outcomes) != len(calls) or not all(isinstance(outcome, Outcome) for outcome in outcomes):
        message = (
            f"the adapter's run() gave {len(outcomes)} results for {len(calls)} calls; expected one Outcome a call"
        )
        return [Outcome(ended=CallEnd.NOT_RUN, message=message)] * len(calls)
    elapsed = (time.perf_counter() - start) / max(len(calls), 1)
    try:
        outcomes = [_sendable(outcome) for outcome in outcomes]
        if session.capabilities.in_place:
            outcomes = [_with_digests(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)]
    except Exception as error:  # noqa: BLE001 - it may have put anything into an outcome, or changed NumPy
        return [_of_exception(error, seconds=elapsed)] * len(calls)
    if not session.capabilities.rejections:
        # Of an implementation that declares none: it raised, and nobody can say why.
        outcomes = [replace(outcome, rejected=False) if outcome.rejected else outcome for outcome in outcomes]
    return [outcome if outcome.seconds else replace(outcome, seconds=elapsed) for outcome in outcomes]


def _sendable(outcome: Outcome) -> Outcome:
    """The outcome with a message, and text in its facts, that UTF-8 can hold: half a character is spelled out."""
    if not outcome.message and not outcome.facts:
        return outcome
    message = _encodable(outcome.message[:MESSAGE_LIMIT])
    facts = {
        _encodable(name): _encodable(value) if isinstance(value, str) else value
        for name, value in outcome.facts.items()
    }
    return replace(outcome, message=message, facts=facts)


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _with_digests(call: Call, outcome: Outcome) -> Outcome:
    if call.buffers is None or outcome.ended != CallEnd.RETURNED:
        return outcome
    digests = {
        name: BufferState(sha256=hashlib.sha256(buffer.view.tobytes()).hexdigest())
        for name, buffer in call.buffers.outputs.items()
    }
    return replace(outcome, buffers={**outcome.buffers, **digests})


def _guarded(call: Call, function: Callable[[Call], Outcome]) -> Outcome:
    start = time.perf_counter()
    try:
        outcome = function(call)
    except Exception as error:  # noqa: BLE001 - a refusal of any kind is an answer
        return _of_exception(error, seconds=time.perf_counter() - start)
    return outcome if outcome.seconds else replace(outcome, seconds=time.perf_counter() - start)


def _of_exception(error: Exception, *, seconds: float) -> Outcome:
    try:
        text = _encodable(str(error)[:MESSAGE_LIMIT])
    except Exception as second:  # noqa: BLE001 - its own text may raise as well
        text = f"its message raises {type(second).__name__}"
    if isinstance(error, Inexpressible):
        return Outcome(ended=CallEnd.INEXPRESSIBLE, message=text)
    if isinstance(error, Rejected):
        return Outcome(ended=CallEnd.RAISED, message=text, rejected=True, seconds=seconds)
    if isinstance(error, MemoryError):
        return Outcome(ended=CallEnd.NOT_RUN, message=f"out of memory: {text}", seconds=seconds)
    return Outcome(ended=CallEnd.RAISED, message=f"{_encodable(type(error).__name__)}: {text}", seconds=seconds)


def candidate_error(error: Exception, what: str) -> Outcome:
    """The outcome of a call at which something of ours failed in the implementation's process, and not in the judge's.

    What it has changed there (NumPy's functions, say) is its own.
    """
    outcome = _of_exception(error, seconds=0.0)
    return replace(outcome, message=f"{what}, which it could elsewhere: {outcome.message}")
