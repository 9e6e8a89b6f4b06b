"""What two trees concluded, and where they differ."""

from __future__ import annotations

import fnmatch
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from aclnn_cts.core.errors import UsageError

_RATIO_TOLERANCE = 1e-9
"""Relative. The same sums in the same order give the same bits; this leaves room for another order of `max`."""

Renamed = Mapping[str, Mapping[str, str]]
"""New names by old ones, by field."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `reader.py`."""

    type: str
    """`trial`, `count` (of a campaign's cases), `mutant`, `exit` (the command's code) or `finding`."""
    operator: str = ""
    check: str = ""
    kind: str = ""
    item: str = ""
    """Id of the case or the mutant."""
    result: str = ""
    reason: str = ""
    """The kind of fault, or why the trial was skipped."""
    waived: bool = False
    ratio: str = "0"
    """The largest error over its bound."""
    number: int = 0

    def renamed(self, names: Renamed) -> Line:
        """With the new names."""
        fields = {name: getattr(self, name) for name in ("operator", "check", "kind", "result", "reason")}
        fields = {name: names.get(name, {}).get(value, value) for name, value in fields.items()}
        if self.type == "mutant":
            fields["item"] = names.get("mutant", {}).get(self.item, self.item)
        return msgspec.structs.replace(self, **fields)

    @property
    def key(self) -> tuple[str, ...]:
        """What is compared; several trials of a plan may share it."""
        if self.type == "count":
            return (self.type, self.operator, self.kind, self.result, self.reason)
        return (self.type, self.operator, self.check if self.type == "trial" else "", self.item)

    @property
    def about(self) -> str:
        """What a difference is reported under, beside the operator."""
        if self.type == "count":
            return " ".join(filter(None, (self.kind, "cases", self.result, self.reason)))
        return {"trial": self.check, "mutant": f"mutant {self.item}"}.get(self.type, "exit code")

    @property
    def verdict(self) -> str:
        """The conclusion."""
        if self.type == "count":
            return str(self.number)
        by = f" by {self.check}" if self.type == "mutant" and self.check else ""
        why = f" ({self.reason})" if self.reason else ""
        after = f" after {self.number} cases" if self.type == "mutant" else ""
        return f"{self.result}{by}{why}{after}{', waived' if self.waived else ''}"

    def agrees(self, other: Line) -> bool:
        """Whether verdict and error ratio are the same."""
        return self.verdict == other.verdict and math.isclose(
            float(self.ratio), float(other.ratio), rel_tol=_RATIO_TOLERANCE
        )


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """What the trials, counts or mutants of one group changed from and to."""

    where: str
    operator: str
    check: str
    was: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Of one job."""

    where: str
    compared: int
    differences: Mapping[Difference, Sequence[str]]
    """The cases or mutants of each group."""
    unstable: Sequence[Line]
    """What BASE itself does not always conclude: compared with nothing."""
    moved: int
    """Trials at another place in the order of those that both trees have."""
    findings: Mapping[str, tuple[int, int]]
    """By operator: of BASE and of the current tree."""


Numbered = Mapping[tuple[str, ...], Line]


def _numbered(lines: Iterable[Line]) -> Numbered:
    """Lines by key and place among those of the same key, in their order."""
    seen: Counter[tuple[str, ...]] = Counter()
    found: dict[tuple[str, ...], Line] = {}
    for line in lines:
        if line.type != "finding":
            key = (*line.key, str(seen[line.key]))
            found[key] = line
            seen[line.key] += 1
    return found


def _agree(left: Line | None, right: Line | None) -> bool:
    return left is not None and right is not None and left.agrees(right)


def compare(where: str, first: Sequence[Line], again: Sequence[Line], new: Sequence[Line]) -> Comparison:
    """Compare two runs of BASE, renamed, with one of the current tree."""
    old, repeated, current = _numbered(first), _numbered(again), _numbered(new)
    unstable = {key: line for key, line in {**repeated, **old}.items() if not _agree(old.get(key), repeated.get(key))}
    keys = [key for key in {**old, **current} if key not in unstable]
    differences: dict[Difference, list[str]] = {}
    for key in keys:
        was, now = old.get(key), current.get(key)
        if not _agree(was, now):
            line = was or current[key]
            differences.setdefault(_difference(where, was, now), []).append(line.item or line.kind)
    in_both = [[key for key in side if key in old and key in current] for side in (old, current)]
    return Comparison(
        where=where,
        compared=len(keys),
        differences=differences,
        unstable=tuple(unstable.values()),
        moved=sum(left != right for left, right in zip(*in_both, strict=True)),
        findings=_findings(first, new),
    )


def _difference(where: str, was: Line | None, now: Line | None) -> Difference:
    [line, *_] = filter(None, (was, now))
    texts = ["absent" if item is None else item.verdict for item in (was, now)]
    if texts[0] == texts[1]:
        texts[1] += ", with another error ratio"
    return Difference(where, line.operator, line.about, *texts)


def _findings(first: Iterable[Line], new: Iterable[Line]) -> dict[str, tuple[int, int]]:
    old, current = (Counter(line.operator for line in lines if line.type == "finding") for lines in (first, new))
    return {operator: (old[operator], current[operator]) for operator in sorted({*old, *current})}


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Groups of differences that are meant; each field is a pattern."""

    reason: str
    where: str = "*"
    operator: str = "*"
    check: str = "*"
    was: str = "*"
    now: str = "*"

    def matches(self, difference: Difference) -> bool:
        """Whether the group is meant."""
        fields = ("where", "operator", "check", "was", "now")
        return all(fnmatch.fnmatchcase(getattr(difference, name), getattr(self, name)) for name in fields)


def read_expected(path: Path) -> tuple[Expected, ...]:
    """Read a list of expected differences; UsageError where the file is none."""
    try:
        return msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")) or (), tuple[Expected, ...])
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{path}: {error}; expected a list of differences, each with its reason") from None


def unexpected(differences: Iterable[Difference], expected: Sequence[Expected]) -> list[Difference]:
    """Those that no entry matches."""
    return [item for item in differences if not any(entry.matches(item) for entry in expected)]
