"""Document and spec side by side: where their facts differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

from aclnn_cts.authoring.facts import (
    ErrorTopic,
    dtypes_by_product,
    error_topics,
    formats_by_product,
    is_on_too_many_dimensions,
    ranks_of,
)
from aclnn_cts.authoring.model import Document
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.kinds_dtype import ListedRule
from aclnn_cts.speclang.kinds_size import ShapeRule
from aclnn_cts.speclang.kinds_tensor import RankRangeRule
from aclnn_cts.speclang.model import Constraint, Parameter, ParameterRule, Spec

RuleT = TypeVar("RuleT", bound=ParameterRule)


@dataclass(frozen=True, slots=True)
class DocumentDifference:
    """A fact that document and spec state differently."""

    address: str
    """That of the statement; where the document has none, the one that it would have."""
    document: str
    spec: str
    product: str = ""
    """The one on which they differ; empty: on all."""


def find_differences(document: Document, spec: Spec) -> tuple[DocumentDifference, ...]:
    """Where the prototype, products, dtypes, formats, ranks or their codes in a spec are not those of a document.

    Of dtypes, formats and ranks: the spec refuses one that the document lists, or promises success of one that it does
    not list. What the spec leaves open it does neither.
    """
    return tuple(_differences(document, spec))


def differences_by_address(found: Iterable[DocumentDifference]) -> Mapping[str, tuple[DocumentDifference, ...]]:
    """The differences on each statement."""
    grouped: dict[str, tuple[DocumentDifference, ...]] = {}
    for item in found:
        grouped[item.address] = (*grouped.get(item.address, ()), item)
    return grouped


def _differences(document: Document, spec: Spec) -> Iterator[DocumentDifference]:
    for product in dict.fromkeys((*document.products, *spec.products)):
        listed, stated = bool(document.products.get(product)), product in spec.products
        if listed != stated:
            yield DocumentDifference(f"products/{product}", _support(is_listed=listed), _support(is_listed=stated))
    if document.parameters:
        for item, parameter in zip_longest(document.parameters, spec.parameters):
            theirs = f"{item.type} {item.name}" if item is not None else _words(())
            ours = f"{parameter.type} {parameter.name}" if parameter is not None else _words(())
            if theirs != ours:
                name = item.name if item is not None else parameter.name
                yield DocumentDifference(f"prototype/phase1/{name}", theirs, ours)
    for parameter in spec.parameters:
        row = document.rows.get(parameter.name)
        if row is None or parameter.kind != "tensor":
            continue
        yield from _in_list(document, spec, parameter, "dtype")
        yield from _in_list(document, spec, parameter, "format")
        ranks, drawn = ranks_of(row), ranks_in(spec, parameter.name)
        if ranks is not None and drawn is not None:
            low, high = _ranks(spec, parameter.name, is_promised=True) or (0, ranks.high)
            if not (low <= ranks.low <= drawn[0] and drawn[1] <= ranks.high <= high):
                yield DocumentDifference(
                    f"params/{parameter.name}/rank", f"{ranks.low} to {ranks.high}", f"{drawn[0]} to {drawn[1]}"
                )
    yield from _unstated_codes(document, spec)


def _unstated_codes(document: Document, spec: Spec) -> Iterator[DocumentDifference]:
    """Codes for too few dimensions where all rows of the error table on them are on too many.

    A tensor has the code as well where a row gives it to too few dimensions of another one, and to unequal shapes.
    """
    names = [item.name for item in document.parameters]
    read = [(row, *error_topics(row, names)) for row in document.errors]
    rows = [(row, about or names) for row, topics, about in read if ErrorTopic.RANK in topics]
    for parameter in spec.parameters:
        for item, rule in _rules_on(spec, parameter.name, RankRangeRule):
            alike = _of_one_shape(spec, parameter.name, item.statuses)
            on_it = [row for row, about in rows if row.status in item.statuses and parameter.name in about]
            few = [
                row
                for row, about in rows
                if row.status in item.statuses
                and alike.intersection(about)
                and not is_on_too_many_dimensions(row.statement.text)
            ]
            if item.strength == Strength.LISTED and rule.low > 0 and on_it and not few:
                stated = f"{parameter.name}: a code for fewer than {rule.low} as well"
                yield DocumentDifference(on_it[0].statement.address, "a code for too many dimensions alone", stated)


def _of_one_shape(spec: Spec, name: str, statuses: tuple[str, ...]) -> set[str]:
    """The tensors that have another shape than this one only in calls with one of these codes."""
    found = {name}
    pairs = [
        {item.rule.of, item.rule.shape.text.strip("[*]")}
        for item in spec.constraints
        if isinstance(item.rule, ShapeRule) and item.statuses == statuses and item.when_text is None
    ]
    for _ in pairs:
        found.update(*(pair for pair in pairs if pair & found))
    return found


def _words(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"


def _support(*, is_listed: bool) -> str:
    return "supported" if is_listed else "not supported"


def _in_list(document: Document, spec: Spec, parameter: Parameter, what: str) -> Iterator[DocumentDifference]:
    """Products on which document and spec list other dtypes, or formats, of a parameter; where both list some."""
    facts = dtypes_by_product if what == "dtype" else formats_by_product
    address = f"params/{parameter.name}/{what}"
    found = facts(document, parameter.name, spec.products)
    if found is None:
        return
    while not _has_list(spec, parameter.name, what):
        name = parameter.dtype_as if what == "dtype" else parameter.format_as
        if name is None:
            return
        parameter = spec.parameter(name)
    for product in filter(document.products.get, spec.products):
        listed = set(found[0][product])
        accepted = _lists(spec, parameter.name, what, product)
        promised = _lists(spec, parameter.name, what, product, is_promised=True)
        if accepted and not (set.intersection(*accepted) <= listed and all(listed <= words for words in promised)):
            stated = _words(sorted(set.intersection(*accepted)))
            yield DocumentDifference(address, _words(found[0][product]), stated, product)


def _has_list(spec: Spec, name: str, what: str) -> bool:
    return any(rule.what == what for _, rule in _rules_on(spec, name, ListedRule))


def _lists(spec: Spec, name: str, what: str, product: str, *, is_promised: bool = False) -> list[set[str]]:
    """The lists that a dtype or format has to be in; `is_promised`: but for those that the document leaves open."""
    return [
        set(rule.table[product])
        for item, rule in _rules_on(spec, name, ListedRule)
        if rule.what == what and item.applies_to(product) and not (is_promised and item.strength == Strength.OPEN)
    ]


def ranks_in(spec: Spec, name: str) -> tuple[int, int] | None:
    """The ranks that all constraints on a tensor leave, in every call."""
    return _ranks(spec, name)


def _ranks(spec: Spec, name: str, *, is_promised: bool = False) -> tuple[int, int] | None:
    rules = [
        rule
        for item, rule in _rules_on(spec, name, RankRangeRule)
        if not (is_promised and item.strength == Strength.OPEN)
    ]
    return (max(rule.low for rule in rules), min(rule.high for rule in rules)) if rules else None


def _rules_on(spec: Spec, name: str, kind: type[RuleT]) -> Iterator[tuple[Constraint, RuleT]]:
    """The constraints of a kind on a parameter, with their rules: those on every call that gives it."""
    for item in spec.constraints:
        rule = item.rule
        if isinstance(rule, kind) and rule.of == name and item.when_text is None:
            yield item, rule
