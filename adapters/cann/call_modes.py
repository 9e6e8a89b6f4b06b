"""The ways in which a call may depart from the ordinary life cycle, as words of `Call.call_mode`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from aclnn_cts.adapters.cann.bindings import Functions
from aclnn_cts.adapters.protocol import Call

FIRST_PHASE = ("cache", "times")
"""`cache`: `cold`, the call meets a library that has not accepted it before in this process. `times`: how often phase
one is made in a row, the resident memory of the process beside it."""

BOTH_PHASES = ("executor", "order", "stream", "workspace")
"""`stream`: number of the stream that a call of a group runs on. `order`: `interleaved`, the phases of a group's calls
alternate. `workspace`: `exact` (an allocation of just that size), `larger` or `smaller`. `executor`: `twice`."""

_REPEAT = "repeat"
"""How often an executor that was made repeatable is run."""


def available(runtime: Functions, meta: Functions) -> frozenset[str]:
    """The words that an installation can be asked for."""
    words = set(FIRST_PHASE)
    if "aclrtMalloc" in runtime:
        words.update(BOTH_PHASES)
        if "aclSetAclOpExecutorRepeatable" in meta and "aclDestroyAclOpExecutor" in meta:
            words.add(_REPEAT)
    return frozenset(words)


def whole_number(call: Call, word: str, *, default: int) -> int:
    """The number of a word in a call's call mode."""
    value = call.call_mode.get(word, default)
    return value if isinstance(value, int) else default


def times_of(calls: Sequence[Call]) -> int:
    """How often the first phase of a lone call is made."""
    return whole_number(calls[0], "times", default=1) if len(calls) == 1 else 1


def resident_bytes() -> int:
    """Resident memory of this process, in bytes; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - between calls whose growth is measured
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
