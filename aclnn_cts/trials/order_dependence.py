"""After which calls does a failure show that does not show alone?

A call may leave something behind: a result that the next one gives back, an entry in a cache, a count. So the calls
that were made before the failure are made again before it, each time in a fresh process: first single ones that are
near to it in time or in kind, then the last few, then more. Where it shows, those that it does without are left out.
Where it does not, its own call is made many times in a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.delta_debugging import shortest_end, without_others
from aclnn_cts.core.trial import Earlier, Trial

MOST_CALLS = 1024
"""Calls that are made before the failure at most."""

_KEPT = 16
"""Most calls that show something to a reader."""

_TAILS = (0, 32, MOST_CALLS)


def after_which(
    trial: Trial,
    history: Sequence[Case],
    *,
    fails: Callable[[Trial], bool],
    repeated: Callable[[Trial, int], int | None],
) -> tuple[Earlier, ...]:
    """The fewest calls found after which a trial fails, and without which it does not; empty where none are.

    - `history`: what was called before it, the latest last.
    - `fails`: whether a trial fails in the way that is looked for, in a fresh process.
    - `repeated`: makes the trial's one call so many times in a row in a fresh process, and tells how many went well
      before one failed so; None where none did.
    """
    known: dict[tuple[str, ...], bool] = {}

    def show(cases: Sequence[Case]) -> bool:
        key = tuple(map(case_id, cases))
        if key not in known:
            known[key] = fails(_after(trial, [Earlier(case) for case in cases]))
        return known[key]

    found = [Earlier(case) for case in _fewest(trial.case, history, show)]
    if not found and (times := repeated(trial, MOST_CALLS)):
        found = [Earlier(trial.case, times)]
    if len(found) > 1 and fails(_after(trial, often := [Earlier(trial.case, len(found))])):
        found = often
    if not 0 < len(found) <= _KEPT:
        return ()
    # Once more, for chance alone must not name a call.
    return tuple(found) if fails(_after(trial, found)) and not fails(trial) else ()


def _after(trial: Trial, earlier: Sequence[Earlier]) -> Trial:
    return msgspec.structs.replace(trial, after=tuple(earlier))


def _fewest(case: Case, history: Sequence[Case], show: Callable[[Sequence[Case]], bool]) -> list[Case]:
    for single in _likely(case, history):
        if show([single]):
            return [single]
    for shorter, longer in pairwise(min(size, len(history)) for size in _TAILS):
        if shorter < longer and show(history[-longer:]):
            return without_others(shortest_end(history[-longer:], show), show)
    return []


def _likely(case: Case, history: Sequence[Case]) -> Iterator[Case]:
    """The call before, and the latest ones with as many elements, with the same shapes and with other dtypes."""
    alike: tuple[Callable[[Case], bool], ...] = (
        lambda item: True,
        lambda item: _elements(item) == _elements(case),
        lambda item: _shapes(item) == _shapes(case),
        lambda item: _shapes(item) == _shapes(case) and _dtypes(item) != _dtypes(case),
    )
    for is_alike in alike:
        latest = next((item for item in reversed(history) if item != case and is_alike(item)), None)
        if latest is not None:
            yield latest


def _shapes(case: Case) -> tuple[tuple[int, ...], ...]:
    return tuple(tensor.shape for _, tensor in case.tensors())


def _dtypes(case: Case) -> tuple[str, ...]:
    return tuple(tensor.dtype for _, tensor in case.tensors())


def _elements(case: Case) -> tuple[int, ...]:
    return tuple(math.prod(shape) for shape in _shapes(case))
