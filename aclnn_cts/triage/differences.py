"""What is not the same in the manifests of two runs, and which changes it may be the cause of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from aclnn_cts.adapters.results import COLD_FACT
from aclnn_cts.core.outcome import Ended, Outcome
from aclnn_cts.core.verdict import ALONE_FACT, Record
from aclnn_cts.store.manifest import Manifest
from aclnn_cts.triage.comparison import Because, Cause, CauseCount, Difference

_NO_CAUSE = frozenset(
    ("seed", "profile", "command", "operators", "environment.machine.name", "environment.python.executable")
)
"""They choose which trials there are, or name a place: the same trial ends the same whatever they say."""

_HARNESS_SHA256 = "environment.harness.sha256"

_IMPLEMENTATIONS = frozenset(("environment.library.torch", "environment.library.torch_npu"))

_DEVICE = frozenset(
    f"environment.adapter.{name}"
    for name in (
        "core_count",
        "cpu_capability",
        "deterministic",
        "device",
        "device_id",
        "device_name",
        "driver_version",
        "firmware_version",
        "overflow_mode",
        "product",
        "soc",
        "threads",
    )
)
"""What adapters say of the device and its driver, and not of the library."""

_PREFIXES = (
    ("specs.", Cause.SPEC),
    ("settings.", Cause.HARNESS),
    ("environment.harness.", Cause.HARNESS),
    ("environment.library.", Cause.HARNESS),
    ("environment.adapter.", Cause.LIBRARY),
    ("environment.", Cause.ENVIRONMENT),
    ("target", Cause.ENVIRONMENT),
    ("adapter", Cause.LIBRARY),
    ("harness", Cause.HARNESS),
    ("inputs.", ""),
)

_NAMED = 3
"""Facts that a cause names."""

_SEEN = {
    Because.ALONE: "run again alone in a fresh process it conformed",
    Because.UNSTEADY_FIRST: "in the first run alone the trial both passed and failed",
    Because.UNSTEADY_SECOND: "in the second run alone the trial both passed and failed",
    Because.UNSTEADY_BOTH: "in the first and the second run alone the trial both passed and failed",
    Because.NOT_MADE: "one of the runs did not make the call",
    Because.SAME: "the calls came back the same, byte for byte",
    Because.OTHERWISE: "the calls came back otherwise",
}

_WHERE_OUTCOMES_DIFFER = (Cause.LIBRARY, Cause.ENVIRONMENT, Cause.HARNESS)
_WHERE_OUTCOMES_ARE_THE_SAME = (Cause.SPEC, Cause.HARNESS)
_WHERE_NOTHING_WAS_RUN = (Cause.LIBRARY, Cause.SPEC, Cause.HARNESS, Cause.ENVIRONMENT)


def manifest_differences(before: Manifest, after: Manifest) -> tuple[Difference, ...]:
    """Every fact that differs, in the manifest's order. Times, paths of outputs and words typed are left out."""
    first, second = dict(_facts(before)), dict(_facts(after))
    names = dict.fromkeys([*first, *second])
    # What only one harness records says nothing of the implementation.
    began = first.get(_HARNESS_SHA256) != second.get(_HARNESS_SHA256)
    return tuple(
        Difference(
            name=name,
            before=first.get(name),
            after=second.get(name),
            cause=Cause.HARNESS if began and _is_of_one(name, first, second) else _kind(name),
            before_zh=_chinese(before, name),
            after_zh=_chinese(after, name),
        )
        for name in names
        if first.get(name) != second.get(name)
    )


def _is_of_one(name: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    # Files that the implementation consists of are told by their paths, behind a space: one more is another library.
    return name.startswith("environment.") and " " not in name and (name in first) != (name in second)


def _facts(manifest: Manifest) -> Iterator[tuple[str, Any]]:
    yield "command", manifest.command
    yield "adapter", manifest.adapter
    yield "harness", manifest.harness
    yield "operators", sorted(manifest.operators)
    yield "profile", manifest.profile
    yield "seed", manifest.seed
    for name in manifest.target.__struct_fields__:
        yield f"target.{name}", getattr(manifest.target, name)
    for prefix, table in (("specs", manifest.specs), ("inputs", manifest.inputs), ("settings", manifest.settings)):
        for name, value in table.items():
            yield f"{prefix}.{name}", value
    for name, fact in manifest.environment.items():
        yield f"environment.{name}", fact.value


def _chinese(manifest: Manifest, name: str) -> str:
    fact = manifest.environment.get(name.removeprefix("environment."))
    return (fact.zh or "") if fact is not None else ""


def _kind(name: str) -> str:
    if name in _NO_CAUSE:
        return ""
    if name in _IMPLEMENTATIONS:
        return Cause.LIBRARY
    if name in _DEVICE:
        return Cause.ENVIRONMENT
    return next((cause for prefix, cause in _PREFIXES if name.startswith(prefix)), Cause.ENVIRONMENT)


def cause_of(
    before: Record,
    after: Record,
    differences: Mapping[str, str],
    *,
    spec_file: str,
    unsteady: str = "",
) -> CauseCount:
    """Why one trial ended otherwise.

    - `differences`: names of what differs, with the cause that each may be (`manifest_differences`).
    - `spec_file`: the name in `specs/` of the operator's own spec; others have no part in the trial.
    - `unsteady`: what shows that the implementation answers now this, now that (one of `Because.UNSTEADY`); empty
      where nothing does.

    Where the calls came back the same, byte for byte, the judgement is what changed; where they did not, the
    implementation, or what it ran on.
    """
    if not unsteady and "conforms" in (record.verdict.facts.get(ALONE_FACT) for record in (before, after)):
        unsteady = Because.ALONE
    if unsteady:
        return CauseCount(cause=Cause.CHANCE, because=_SEEN[unsteady], seen=unsteady)
    kinds: tuple[str, ...]
    same = same_outcomes(before, after)
    if same is None:
        kinds, seen = _WHERE_NOTHING_WAS_RUN, Because.NOT_MADE
    elif same:
        kinds, seen = _WHERE_OUTCOMES_ARE_THE_SAME, Because.SAME
    else:
        kinds, seen = _WHERE_OUTCOMES_DIFFER, Because.OTHERWISE
    names: dict[str, list[str]] = {}
    for name, kind in differences.items():
        if kind and (kind != Cause.SPEC or name == f"specs.{spec_file}"):
            names.setdefault(kind, []).append(name)
    found = [kind for kind in kinds if kind in names]
    if found:
        first, *others = found
        what = names[first]
        further = max(0, len(what) - _NAMED)
        shown = ", ".join(what[:_NAMED]) + (f" and {further} more" if further else "")
        because = f"{_SEEN[seen]}; {shown} {'differs' if len(what) == 1 else 'differ'}"
        return CauseCount(
            cause=first,
            possible=tuple(others),
            because=because,
            seen=seen,
            differs=tuple(what[:_NAMED]),
            further=further,
        )
    if same is False:
        because = f"{_SEEN[seen]}, and nothing that is recorded differs"
        return CauseCount(cause=Cause.CHANCE, because=because, seen=seen)
    because = f"{_SEEN[seen]}, and nothing that is recorded explains it"
    return CauseCount(cause=Cause.UNKNOWN, because=because, seen=seen)


def same_outcomes(before: Record, after: Record) -> bool | None:
    """Whether the first attempts' calls came back the same: ends, statuses and bytes. None where either made none."""
    if not before.attempts or not after.attempts or not before.attempts[0] or not after.attempts[0]:
        return None
    first, second = before.attempts[0], after.attempts[0]
    if any(outcome.ended in (Ended.INEXPRESSIBLE, Ended.NOT_RUN) for outcome in (*first, *second)):
        return None
    return [_facts_of(outcome) for outcome in first] == [_facts_of(outcome) for outcome in second]


def _facts_of(outcome: Outcome) -> Outcome:
    """What an outcome says of the implementation's answer: no times, messages, workspaces, caches."""
    facts = {name: value for name, value in outcome.facts.items() if name != COLD_FACT}
    return msgspec.structs.replace(outcome, message="", workspace_size=None, seconds=0.0, facts=facts)
