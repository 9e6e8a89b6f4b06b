"""The corners of a document at which a clause has to be met.

| clause | corners |
| --- | --- |
| on what a parameter holds or does | of its value, its items, its contents, its null pointer, its memory |
| on its views, its rank, its range, its null pointer | of that factor |
| on the operator as a whole | of dtypes, formats, sizes, ranks and kinds of data |

A clause with another condition is met where a call meets the condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aclnn_cts.reports.model.attribution import VALUES
from aclnn_cts.speclang.model import Clause, Spec
from aclnn_cts.store.counts import CornerCount

_OF_CALLS = ("dtypes", "formats", "regime", "data", "sizes", "plane")
_OF_PARAMETERS = ("{}", "first item {}", "last item {}", "contents {}", "mask {}", "memory {}", "null {}")
_OF_RULES = {
    "range": ("{}",),
    "word": ("{}",),
    "dims": ("first item {}", "last item {}"),
    "null": ("null {}",),
}


def corners_of(clause: Clause, spec: Spec, corners: Mapping[str, CornerCount]) -> Mapping[str, CornerCount]:
    """Those of the corners that calls were planned at, or should have been, and that the clause is about."""
    factors = frozenset(_factors(clause, spec))
    return {
        text: count for text, count in corners.items() if not count.is_excluded and text.partition(": ")[0] in factors
    }


def _parameter(clause: Clause) -> str:
    section, _, rest = clause.at.partition(".")
    return rest.partition(".")[0] if section == "params" else ""


def _factors(clause: Clause, spec: Spec) -> Iterator[str]:
    """The factors, by their names, whose corners a clause is about."""
    name = _parameter(clause)
    is_plain = clause.check == VALUES and not (clause.when or clause.output or clause.faults)
    if is_plain and clause.at.startswith("function."):
        yield from _OF_CALLS
        yield from (f"rank {draw.name}" for draw in spec.draws if draw.is_run)
    elif is_plain and name:
        yield from (form.format(name) for form in _OF_PARAMETERS)
    elif name and clause.when_text == f"not contiguous({name})":
        yield f"view {name}"
    for identifier in clause.constraints if name else ():
        owner, _, suffix = identifier.rpartition(".")
        if owner == name:
            yield from (form.format(name) for form in _OF_RULES.get(suffix, ()))
