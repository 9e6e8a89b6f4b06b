"""Lint of promises that no sentence of the document makes: what is ambiguous, or not said, has to be open."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from aclnn_cts.core.printable import quote
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.kinds_dtype import ListedRule, SameFormatRule
from aclnn_cts.speclang.kinds_tensor import EachItemRule
from aclnn_cts.speclang.model import Constraint, Rule, Spec
from aclnn_cts.speclang.spec_problems import SpecProblems

_DECIDES = frozenset({Strength.LISTED, Strength.LIMIT})


def unfounded_promises(spec: Spec, problems: SpecProblems) -> list[str]:
    """What a spec promises though its document does not, as messages that open with `file:line`."""
    found = [*_on_ambiguous_sentences(spec), *_of_mixed_formats(spec), *_of_nd(spec)]
    file = problems.file
    placed = [(problems.place(section, name), text) for section, name, text in found]
    return [f"{file.location_of(path)}: {text}" for path, text in sorted(placed, key=lambda item: file.line(item[0]))]


_Doubt = tuple[str, str, str]
"""Section, name of the entry, and what is wrong with it."""


def _on_ambiguous_sentences(spec: Spec) -> Iterator[_Doubt]:
    """Ambiguous clauses whose rules all decide: calls that keep them are promised success under every reading.

    A sentence of the error table promises an error and no success.
    """
    for clause in spec.clauses:
        strengths = {spec.constraint(name).strength for name in clause.constraints}
        is_error = clause.at.startswith("returns.")
        if clause.certainty == "ambiguous" and not is_error and strengths and strengths <= _DECIDES:
            kept = ", ".join(clause.constraints)
            advice = "add an open rule on what another reading forbids, and name it in the clause"
            yield "clauses", clause.at, f"{clause.at} is ambiguous, and calls that keep {kept} succeed; {advice}"


def _of_mixed_formats(spec: Spec) -> Iterator[_Doubt]:
    """Tensors with several formats each that may differ in one call, where no rule says whether they may."""
    found: dict[str, str] = {}
    for product in spec.products:
        rules = spec.constraints_for(product)
        formats = {name: rows for name, rows in _formats(rules, product).items() if len(set().union(*rows)) > 1}
        kept = {name: set.intersection(*rows) for name, rows in formats.items()}
        for rule in (item.rule for item in rules if isinstance(item.rule, SameFormatRule)):
            if rule.of in kept and rule.other in kept:
                both = kept[rule.of] & kept[rule.other]
                joined = {id(kept[rule.of]), id(kept[rule.other])}
                # Tensors whose formats are related, in some steps, share one set.
                kept = {name: both if id(row) in joined else row for name, row in kept.items()}
        for first, second in itertools.combinations(kept, 2):
            if kept[first] is not kept[second] and len(kept[first] | kept[second]) > 1:
                found.setdefault(second, first)
    for second, first in found.items():
        what = f"{second}: whether its format may differ from that of {first}, no rule says"
        yield "parameters", second, f"{what}; add same_format_as, open where the document does not say"


def _of_nd(spec: Spec) -> Iterator[_Doubt]:
    """Codes for other formats than ND where that is listed alone, which excludes no other one."""
    found: dict[str, None] = {}
    for product in spec.products:
        rules = spec.constraints_for(product)
        kept = {name: set.intersection(*rows) for name, rows in _formats(rules, product).items()}
        for rule in rules:
            listed = _format_list(rule.rule)
            if rule.strength == Strength.LISTED and listed is not None and kept[listed.of] == {"ND"}:
                found[rule.id] = None
    for name in found:
        what = f"constraint {quote(name)} has a code, though ND alone is listed, which excludes no other format"
        yield "constraints", name, f"{what}; make it a limit"


def _formats(rules: Sequence[Constraint], product: str) -> Mapping[str, list[set[str]]]:
    """By tensor, the formats of each rule that lists some."""
    found: dict[str, list[set[str]]] = {}
    for rule in rules:
        if (listed := _format_list(rule.rule)) is not None:
            found.setdefault(listed.of, []).append(set(listed.table.get(product, ())))
    return found


def _format_list(rule: Rule) -> ListedRule | None:
    """The list of formats that a rule has, for a tensor or for each tensor of a list."""
    inner = rule.rule if isinstance(rule, EachItemRule) else rule
    return inner if isinstance(inner, ListedRule) and inner.what == "format" else None
