"""Document and spec side by side: where their facts differ, and which clauses plainly encode a statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from aclnn_cts.document.claims import Claim, NotTestable
from aclnn_cts.document.facts import (
    Topic,
    dtypes_by_product,
    empty_of,
    error_topics,
    formats_of,
    ranks_of,
    role_of,
    same_as,
)
from aclnn_cts.document.model import Column, Document, Row, Section, Statement
from aclnn_cts.document.read import CALL_POINTERS
from aclnn_cts.speclang.kinds import Constraint, Strength
from aclnn_cts.speclang.kinds_tensor import Rank
from aclnn_cts.speclang.model import Clause, Parameter, Spec

_INTRODUCES = re.compile(r"[^。；;]{0,80}[：:]\Z")


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that document and spec state differently."""

    address: str
    document: str
    spec: str


def differences(document: Document, spec: Spec) -> tuple[Difference, ...]:
    """Where the prototype, products, dtypes, formats or ranks of a spec are not those of a document."""
    return tuple(_differences(document, spec))


def _differences(document: Document, spec: Spec) -> Iterator[Difference]:
    supported = [product for product, yes in document.products.items() if yes]
    if set(supported) != set(spec.products):
        yield Difference("products", _words(sorted(supported)), _words(sorted(spec.products)))
    theirs = [f"{item.type} {item.name}" for item in document.parameters]
    ours = [f"{item.type} {item.name}" for item in spec.parameters]
    if document.parameters and theirs != ours:
        yield Difference("prototype/phase1", _words(theirs), _words(ours))
    for parameter in spec.parameters:
        row = document.rows.get(parameter.name)
        if row is None or parameter.kind != "tensor":
            continue
        for product in spec.products:
            pair = _dtypes(document, spec, parameter, product)
            if pair is not None and set(pair[0]) != set(pair[1]):
                yield Difference(f"params/{parameter.name}/dtype ({product})", _words(pair[0]), _words(pair[1]))
            formats = formats_of(row)
            mine = _formats(spec, parameter, product)
            if formats is not None and set(formats) != set(mine):
                yield Difference(f"params/{parameter.name}/format ({product})", _words(formats), _words(mine))
        ranks, bounds = ranks_of(row), _ranks(spec, parameter.name)
        if ranks is not None and bounds is not None and (ranks.low, ranks.high) != bounds:
            yield Difference(
                f"params/{parameter.name}/rank", f"{ranks.low} to {ranks.high}", f"{bounds[0]} to {bounds[1]}"
            )


def _words(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"


def _dtypes(
    document: Document, spec: Spec, parameter: Parameter, product: str
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """What document and spec list for a product; None where one of them does not."""
    if not document.products.get(product):
        return None
    found = dtypes_by_product(document, parameter.name, (product,))
    source = _source(spec, parameter, lambda item: item.dtype_as)
    return (found[0][product], source.dtypes[product]) if found is not None and product in source.dtypes else None


def _formats(spec: Spec, parameter: Parameter, product: str) -> tuple[str, ...]:
    return _source(spec, parameter, lambda item: item.format_as).formats.get(product, ())


def _source(spec: Spec, parameter: Parameter, named: Callable[[Parameter], str | None]) -> Parameter:
    """The parameter whose dtype or format this one has; each names an earlier one."""
    while (name := named(parameter)) is not None:
        parameter = spec.parameter(name)
    return parameter


def _ranks(spec: Spec, name: str) -> tuple[int, int] | None:
    """The ranks that all constraints on a tensor leave."""
    rules = [item.rule for item in spec.constraints if isinstance(item.rule, Rank) and item.rule.of == name]
    return (max(rule.low for rule in rules), min(rule.high for rule in rules)) if rules else None


def proposals(document: Document, spec: Spec) -> Mapping[str, Claim]:
    """Claims by address for statements whose clauses are plain: those of the interface, and cells whose facts agree.

    They are proposals for a person, who accepts them with the claims file.
    """
    differ = {item.address.partition(" ")[0] for item in differences(document, spec)}
    proposer = _Proposer(document, spec)
    found: dict[str, Claim] = {}
    for statement in document.statements:
        claim = proposer.claim(statement)
        if claim is not None and re.sub(r"/\d+\Z", "", statement.address) not in differ:
            found[statement.address] = claim
    return found


class _Proposer:
    def __init__(self, document: Document, spec: Spec) -> None:
        self._document = document
        self._spec = spec
        self._names = [item.name for item in document.parameters]
        self._rules: dict[str, Constraint] = {item.id: item for item in spec.constraints}

    def claim(self, statement: Statement) -> Claim | None:
        words = statement.address.split("/")
        reason = self._reason(statement)
        if reason is not None:
            return Claim(statement.reference, reason=reason)
        clauses = tuple(dict.fromkeys(clause.at for clause in self._clauses(statement, words)))
        return Claim(statement.reference, clauses) if clauses else None

    def _reason(self, statement: Statement) -> NotTestable | None:
        if statement.section is Section.PRODUCTS and statement.products is not None:
            supported = any(self._document.products.get(product) for product in statement.products)
            return None if supported else NotTestable.UNLISTED_PRODUCT
        if statement.section in (Section.FUNCTION, Section.LIMITS) or statement.address.startswith("params/note"):
            return NotTestable.INTRODUCTION if _INTRODUCES.match(statement.text) is not None else None
        return None

    def _clauses(self, statement: Statement, words: Sequence[str]) -> Iterator[Clause]:
        section = statement.section
        if section is Section.PRODUCTS:
            yield from self._in(section.value, lambda item: item.products == statement.products)
        elif section is Section.PROTOTYPE:
            yield from self._prototype(words)
        elif section is Section.PHASE2:
            yield from self._in(f"phase2.{words[1]}", lambda _: True)
        elif section is Section.RETURNS:
            wanted = "returns.1" if "aclnnStatus" in statement.text else "phases.6"
            yield from self._in(section.value, lambda item: item.interface == wanted)
        elif section is Section.EXAMPLE:
            is_code = words[1] == "code"
            yield from self._in(section.value, lambda item: (item.interface == "example.5") is not is_code)
        elif section is Section.ERRORS:
            yield from self._error(statement, words)
        elif section is Section.PARAMS and words[1] in CALL_POINTERS:
            yield from self._in(f"params.{words[1]}", lambda _: True)
        elif section is Section.PARAMS and words[1] in self._document.rows:
            yield from self._parameter(statement, words[1], Column(words[2]))

    def _in(self, section: str, accepted: Callable[[Clause], bool]) -> Iterator[Clause]:
        for clause in self._spec.clauses:
            if clause.at.rpartition(".")[0] == section and accepted(clause):
                yield clause

    def _prototype(self, words: Sequence[str]) -> Iterator[Clause]:
        if words[1] == "phase2":
            yield from self._in("prototype", lambda item: item.interface == "phases.8")
        elif words[1] == "phase1" and words[2] in CALL_POINTERS:
            yield from self._in("prototype", lambda item: item.interface == "phases.7")
        elif words[1] == "phase1":
            yield from self._in("prototype", lambda item: item.check is not None and "crash" in item.faults)
        else:
            steps = {f"phases.{number}" for number in range(1, 6)}
            yield from self._in("prototype", lambda item: item.interface in steps)

    def _error(self, statement: Statement, words: Sequence[str]) -> Iterator[Clause]:
        if words[2] == "code":
            yield from self._in(
                "returns", lambda item: any(words[1] in self._rules[name].statuses for name in item.constraints)
            )
            return
        row = next((item for item in self._document.errors if item.statement is statement), None)
        topics, about = error_topics(row, self._names) if row is not None else ((), ())
        kinds = {_KINDS[topic] for topic in topics}
        for clause in self._in("returns", lambda item: bool(item.constraints)):
            rules = [self._rules[name] for name in clause.constraints]
            named = {getattr(rule.rule, "of", None) for rule in rules}
            if all(rule.kind in kinds and words[1] in rule.statuses for rule in rules) and named <= set(about):
                yield clause

    def _parameter(self, statement: Statement, name: str, column: Column) -> Iterator[Clause]:
        row = self._document.rows[name]
        parameter = next((item for item in self._spec.parameters if item.name == name), None)
        if parameter is None:
            return
        if column in (Column.ROLE, Column.DESCRIPTION):
            if column is Column.ROLE and role_of(row, parameter.type) != _role_in_table(parameter):
                return
            yield from self._in(f"params.{name}", lambda item: item.check is not None and item.when is None)
        elif column is Column.STRIDED:
            yield from self._about(name, ("contiguous",), rf"not contiguous\({name}\)\Z")
        elif column is Column.DTYPE and statement in row.cells.get(Column.DTYPE, ()):
            yield from self._about(name, ("dtype", "same_dtype", "dtype_rows"), rf"dtype\({name}\) == \w+\Z")
        elif column is Column.FORMAT:
            yield from self._about(name, ("format", "same_format"), rf"format\({name}\) == \w+\Z")
        elif column is Column.RANK:
            yield from self._about(name, ("rank",), rf"rank\({name}\)")
        else:
            yield from self._usage(statement, name, row)

    def _usage(self, statement: Statement, name: str, row: Row) -> Iterator[Clause]:
        empty = empty_of(row)
        if empty is not None and empty[1] is statement:
            yield from self._about(name, ("not_empty",), rf"empty\({name}\)\Z")
        for column, kinds in _SAME.items():
            found = same_as(row, column, self._names)
            if found is not None and found.statement is statement:
                yield from self._about(name, kinds, None)

    def _about(self, name: str, kinds: Sequence[str], when: str | None) -> Iterator[Clause]:
        """The clauses of a parameter whose constraints are all of these kinds, or whose condition is of this form.

        An open constraint says that a document leaves something unsaid: it encodes no statement.
        """
        for clause in self._in(f"params.{name}", lambda _: True):
            rules = [self._rules[identifier] for identifier in clause.constraints]
            by_rule = bool(rules) and all(
                rule.kind in kinds and rule.strength != Strength.OPEN and getattr(rule.rule, "of", None) == name
                for rule in rules
            )
            if by_rule or (when is not None and re.match(when, clause.when_text or "") is not None):
                yield clause


_KINDS = {
    Topic.NULL: "present",
    Topic.DTYPE: "dtype",
    Topic.SAME_DTYPE: "same_dtype",
    Topic.PROMOTION: "promotion",
    Topic.CAST: "cast",
    Topic.FORMAT: "format",
    Topic.SAME_FORMAT: "same_format",
    Topic.RANK: "rank",
    Topic.SHAPE: "shape",
    Topic.RANGE: "range",
}
_SAME: Mapping[Column, tuple[str, ...]] = {
    Column.DTYPE: ("same_dtype",),
    Column.FORMAT: ("same_format",),
    Column.RANK: ("shape",),
}


def _role_in_table(parameter: Parameter) -> str:
    """The role as the parameter table has it, where an attribute is an input."""
    return "input" if parameter.role == "attribute" else parameter.role
