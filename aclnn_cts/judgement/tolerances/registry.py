"""All tolerances by name, their measurement of a call's outputs, and what they say where they gate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

import msgspec

from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.registry import items_by_name
from aclnn_cts.core.verdict import TOLERANCE_FACT, Result, ToleranceResult, ToleranceVerdict, Verdict
from aclnn_cts.judgement.tolerances.double_benchmark import DUAL_LEVELS, Dual
from aclnn_cts.judgement.tolerances.protocol import Pair, Tolerance
from aclnn_cts.judgement.tolerances.single_benchmark import MereMare, Mixed
from aclnn_cts.judgement.verdict import OUTPUT_FACT


def installed_tolerances() -> Iterator[Tolerance]:
    """Those of installed packages: entry points of the group `aclnn_cts.tolerances`, each a `Tolerance`."""
    for entry in entry_points(group="aclnn_cts.tolerances"):
        yield entry.load()


TOLERANCES: Mapping[str, Tolerance] = items_by_name(
    "tolerance",
    (
        Mixed(),
        MereMare(),
        *(Dual(name=f"dual-{level}", level=level) for level in DUAL_LEVELS),
        *installed_tolerances(),
    ),
    lambda tolerance: tolerance.name,
)


def check_names(names: Iterable[str], *, where: str, benchmark: str = "") -> tuple[str, ...]:
    """Known names, each once, in the order of the registry; UsageError that opens with `where` for an unknown one.

    With the adapter word of a second implementation, one of them must compare with it.
    """
    asked = set(names)
    for name in sorted(asked):
        if name not in TOLERANCES:
            known = ", ".join(TOLERANCES)
            raise UsageError(
                f"{where}: {name!r} is not a tolerance; expected any of {known}{did_you_mean(name, TOLERANCES)}"
            )
    comparing = [name for name, entry in TOLERANCES.items() if entry.needs_benchmark]
    if benchmark and asked.isdisjoint(comparing):
        raise UsageError(
            f"--benchmark {benchmark}: nothing compares with it; name one of {', '.join(comparing)} with {where}, or a "
            "profile that has one (cann-l0, cann-l1, cann-l2)"
        )
    return tuple(name for name in TOLERANCES if name in asked)


def measure(names: Iterable[str], pairs: Sequence[Pair]) -> dict[str, dict[str, ToleranceResult]]:
    """What the tolerances of these names say, by tolerance and output. Raises KeyError for an unknown name."""
    return {name: {pair.output: TOLERANCES[name].measure(pair) for pair in pairs} for name in names}


def with_gate(verdict: Verdict, gate: Sequence[str]) -> Verdict:
    """A verdict that passed, turned into a failure where one of the gating tolerances fails; any other as it is."""
    if verdict.result != Result.PASSED:
        return verdict
    failing = [
        (name, output, result)
        for name in gate
        for output, result in verdict.tolerances.get(name, {}).items()
        if result.verdict == ToleranceVerdict.FAIL
    ]
    if not failing:
        return verdict
    name, output, result = failing[0]
    others = ", ".join(dict.fromkeys(f"{other} on {place}" for other, place, _ in failing[1:]))
    facts: dict[str, Any] = {**verdict.facts, OUTPUT_FACT: output, TOLERANCE_FACT: name}
    return msgspec.structs.replace(
        verdict,
        result=Result.FAILED,
        kind=Fault.TOLERANCE,
        message=f"the tolerance {name} fails on {output}: {result.message}"
        + (f"; also failing: {others}" if others else ""),
        facts=facts,
    )
