"""Which clauses plainly encode a statement: those of the interface, and cells whose facts the spec states too.

What takes judgement is left to the `claims` of the spec: a wrong proposal costs more than an open statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from aclnn_cts.authoring.agreement import find_differences, ranks_in
from aclnn_cts.authoring.claims import Claim
from aclnn_cts.authoring.facts import (
    ErrorTopic,
    dtypes_by_product,
    empty_of,
    error_topics,
    is_dtype_note,
    length_in_error,
    names_in,
    ranks_of,
    role_of,
    same_as,
    values_in,
)
from aclnn_cts.authoring.model import Document, ErrorRow, ParameterColumn, Row, Section, Statement
from aclnn_cts.authoring.read import CALL_POINTERS
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.kinds_dtype import PromotionRule, SameDtypeRule, SameFormatRule
from aclnn_cts.speclang.kinds_number import RangeRule
from aclnn_cts.speclang.kinds_size import BroadcastRule, LengthRangeRule, ShapeRule
from aclnn_cts.speclang.model import Clause, Constraint, Parameter, Spec
from aclnn_cts.speclang.spec_claims import NotTestable

_INTRODUCES = re.compile(r"(?!.*(?:当|如果|若|必须|等于|大于|小于))[^。；;]{0,80}[：:]\Z")
_ONE_SENTENCE = re.compile(r"[^。：:\n]*[：:]?[^。：:\n]+。?\Z")
_DETERMINISTIC = re.compile(r"(?:.{0,200}[：:])?(?:aclnn\w+)?默认(?:为|支持)?(非)?确定性(?:实现|计算)")
_CONDITIONAL = re.compile("当(?!前)|如果|若|空指针|Device侧|Host侧")
"""In a description: it says what holds in some calls, or more than what the parameter is."""
_NAMED = r"[A-Za-z0-9_、,，和与 ]{1,120}"
_BROADCASTS = re.compile(rf"(?:入参)?shape(?:需要|需)?[与和]{_NAMED}(?:的shape)?满足(?:broadcast|广播)关系。?\Z")
_PROMOTES = re.compile(
    rf"(?:数据类型|dtype)(?:需要|需|要)?[与和]{_NAMED}(?:的(?:数据类型|dtype))?(?:需要|需)?满足(?:数据类型)?推导规则(?:（[^（）]*）)?。?\Z"
)
_BROADCAST = re.compile(rf"shape(?:为|与){_NAMED}(?:的|进行)?broadcast(?:结果|后的shape一致)。?\Z")
_CHOICES = re.compile(r"支持(?:\|?\d[(（][^()（）|]{1,20}[)）]){2,9}。?\Z")
_ITEMS = {"aclIntArray": "int64", "aclFloatArray": "float", "aclBoolArray": "bool", "char": "string"}
"""How cells call what a C pointer points to."""


def propose_claims(document: Document, spec: Spec) -> Mapping[str, Claim]:
    """Claims by address for the statements whose clauses are plain."""
    proposer = _Proposer(document, spec)
    claims = ((statement.address, proposer.claim(statement)) for statement in document.statements)
    return {address: claim for address, claim in claims if claim is not None}


class _Proposer:
    def __init__(self, document: Document, spec: Spec) -> None:
        self._document = document
        self._spec = spec
        self._names = [item.name for item in document.parameters]
        self._rules: dict[str, Constraint] = {item.id: item for item in spec.constraints}
        self._parameters: dict[str, Parameter] = {item.name: item for item in spec.parameters}
        # How a call is made does not depend on what the prototype calls its parameters.
        self._differ = {
            item.address for item in find_differences(document, spec) if not item.address.startswith("prototype/")
        }
        self._errors: dict[str, ErrorRow] = {row.statement.address: row for row in document.errors}

    def claim(self, statement: Statement) -> Claim | None:
        if re.sub(r"/\d+\Z", "", statement.address) in self._differ:
            return None
        words = statement.address.split("/")
        reason = self._reason(statement, words)
        if reason is not None:
            return Claim(statement.reference, reason=reason)
        found = {clause.at for clause in self._clauses(statement, words)}
        clauses = tuple(clause.at for clause in self._spec.clauses if clause.at in found)
        return Claim(statement.reference, clauses) if clauses else None

    def _reason(self, statement: Statement, words: Sequence[str]) -> NotTestable | None:
        section = statement.section
        if section is Section.PRODUCTS and statement.products is not None:
            supported = any(self._document.products.get(product) for product in statement.products)
            return None if supported and "×" not in statement.text else NotTestable.UNLISTED_PRODUCT
        if section in (Section.FUNCTION, Section.RETURNS, Section.LIMITS) or words[1] == "note":
            is_said = section is Section.RETURNS and any(self._clauses(statement, words))
            introduces = _INTRODUCES.match(statement.text) is not None and not is_said
            return NotTestable.INTRODUCTION if introduces else None
        if section is Section.PARAMS and words[2] == ParameterColumn.STRIDED.value:
            parameter = self._parameters.get(words[1])
            is_tensor = parameter is not None and parameter.holds_tensors
            return None if is_tensor else NotTestable.NOTHING_SUCH
        return None

    def _clauses(self, statement: Statement, words: Sequence[str]) -> Iterator[Clause]:
        section = statement.section
        if section is Section.PRODUCTS:
            yield from self._in(section.value, lambda item: item.products == statement.products)
        elif section is Section.FUNCTION:
            yield from self._summary(statement)
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
        elif section is Section.LIMITS:
            yield from self._limit(statement)
        else:
            yield from self._params(statement, words)

    def _params(self, statement: Statement, words: Sequence[str]) -> Iterator[Clause]:
        if words[1] == "note":
            yield from self._note(statement)
        elif words[1] in CALL_POINTERS:
            yield from self._in(f"params.{words[1]}", lambda _: True)
        elif words[1] in self._document.rows and words[1] in self._parameters:
            yield from self._parameter(statement, self._parameters[words[1]], ParameterColumn(words[2]))

    def _in(self, section: str, accepted: Callable[[Clause], bool]) -> Iterator[Clause]:
        for clause in self._spec.clauses:
            if clause.at.rpartition(".")[0] == section and accepted(clause):
                yield clause

    def _summary(self, statement: Statement) -> Iterator[Clause]:
        """The first clause on the function says what the operator is, as the first line of a document does."""
        if statement.address == "function/1" and _ONE_SENTENCE.match(statement.text) is not None:
            yield from self._in("function", lambda item: item.at == "function.1" and item.when is None)

    def _limit(self, statement: Statement) -> Iterator[Clause]:
        found = _DETERMINISTIC.match(statement.text)
        if found is not None:
            always = found[1] is None
            yield from self._in(
                "limits",
                lambda item: (
                    item.check == "determinism"
                    and (not item.products or item.products == statement.products or not statement.products)
                    and ("is deterministic by default" in item.en) is always
                ),
            )

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
        status = words[1]
        if words[2] == "code":
            yield from self._in(
                "returns", lambda item: any(status in self._rules[name].statuses for name in item.constraints)
            )
            return
        topics, about = error_topics(self._errors[statement.address], self._names)
        kinds = {_KINDS[topic] for topic in topics}
        # A condition on null pointers that names none is on all that have to be given.
        is_any_pointer = topics == (ErrorTopic.NULL,) and not about
        length = length_in_error(statement.text, self._names)
        for clause in self._stated("returns", lambda item: bool(item.constraints)):
            rules = [self._rules[name] for name in clause.constraints]
            if not all(status in rule.statuses for rule in rules):
                continue
            if not is_any_pointer and not {getattr(rule.rule, "of", None) for rule in rules} <= set(about):
                continue
            of_topic = all(rule.kind in kinds and _named_by(rule) <= set(about) for rule in rules)
            of_broadcast = ErrorTopic.BROADCAST in topics and all(map(_broadcasts, rules))
            of_length = length is not None and all(_has_length(rule, *length) for rule in rules)
            if of_topic or of_broadcast or of_length:
                yield clause

    def _stated(self, section: str, accepted: Callable[[Clause], bool]) -> Iterator[Clause]:
        """Clauses that the document states plainly, not those on what it contradicts or leaves unsaid."""
        yield from self._in(section, lambda item: item.certainty == "stated" and accepted(item))

    def _note(self, statement: Statement) -> Iterator[Clause]:
        """The clauses on dtypes of the parameters whose dtypes a remark changes, on some products."""
        if not is_dtype_note(statement.text):
            return
        about = names_in(statement.text, self._names) or tuple(self._noted(statement))
        found = [list(self._noted_dtypes(name, statement)) for name in about]
        if all(found) and not any(f"params/{name}/dtype" in self._differ for name in about):
            for clauses in found:
                yield from clauses

    def _noted(self, statement: Statement) -> Iterator[str]:
        for name, parameter in self._parameters.items():
            found = dtypes_by_product(self._document, name, self._spec.products) if parameter.holds_tensors else None
            if found is not None and statement in found[1] and len(set(found[0].values())) > 1:
                yield name

    def _noted_dtypes(self, name: str, statement: Statement) -> Iterator[Clause]:
        products = set(statement.products or self._spec.products)
        for clause in self._about(name, ("dtype",), rf"dtype\({name}\) == \w+\Z"):
            if clause.when is None or (clause.products and set(clause.products) <= products):
                yield clause

    def _parameter(self, statement: Statement, parameter: Parameter, column: ParameterColumn) -> Iterator[Clause]:
        name = parameter.name
        row = self._document.rows[name]
        if column is ParameterColumn.ROLE:
            if role_of(row, parameter.type) == _role_in_table(parameter):
                yield from self._takes(name)
                yield from self._optional(name) if "可选" in statement.text else ()
        elif column is ParameterColumn.DESCRIPTION:
            if statement.address.endswith("description") and _CONDITIONAL.search(statement.text) is None:
                yield from self._stated(f"params.{name}", lambda item: item.check is not None and item.when is None)
        elif column is ParameterColumn.DTYPE and not parameter.holds_tensors:
            yield from self._takes(name) if _is_c_type(statement.text, parameter.type) else ()
        elif column in _ABOUT:
            kinds, when = _ABOUT[column]
            yield from self._about(name, kinds, when.format(name))
        elif column is ParameterColumn.RANK:
            yield from self._ranked(statement, name, row)
        else:
            yield from self._usage(statement, name, row)

    def _takes(self, name: str) -> Iterator[Clause]:
        """The clause that a parameter is read, written or passed by value: the first that every call tests."""
        found = self._in(
            f"params.{name}", lambda item: item.check is not None and item.when is None and bool(item.faults)
        )
        yield from list(found)[:1]

    def _optional(self, name: str) -> Iterator[Clause]:
        yield from self._stated(f"params.{name}", lambda item: item.when_text == f"not given({name})")

    def _ranked(self, statement: Statement, name: str, row: Row) -> Iterator[Clause]:
        """The clauses on numbers of dimensions that a cell states in figures: its own, or those of a like shape."""
        ranks = ranks_of(row)
        if ranks is None:
            yield from self._shared(statement, name, row, ParameterColumn.RANK)
            return
        root = next(
            (word for word, _ in self._chain(name, ParameterColumn.RANK) if ranks_in(self._spec, word) is not None), ""
        )
        if not ranks.has_gaps and ranks_in(self._spec, root) == (ranks.low, ranks.high):
            yield from self._same(name, root, ParameterColumn.RANK)
            yield from self._about(root, ("rank",), rf"rank\({root}\)")

    def _usage(self, statement: Statement, name: str, row: Row) -> Iterator[Clause]:
        if re.match(r"可选参数。?\Z", statement.text) is not None:
            yield from self._optional(name)
        if _BROADCASTS.match(statement.text) is not None:
            yield from self._among(statement, name, BroadcastRule)
        elif _PROMOTES.match(statement.text) is not None:
            yield from self._among(statement, name, PromotionRule)
        elif _BROADCAST.match(statement.text) is not None:
            yield from self._result(statement, name)
        elif _CHOICES.match(statement.text) is not None:
            yield from self._ranged(name, row)
        empty = empty_of(row)
        if empty is not None and empty[1] is statement:
            yield from self._about(name, ("not_empty",), rf"empty\({name}\)\Z")
        shared = [list(self._shared(statement, name, row, column)) for column in _SAME]
        asked = [_same_here(statement, row, column, self._names) is not None for column in _SAME]
        if all(found or not is_asked for found, is_asked in zip(shared, asked, strict=True)):
            for found in shared:
                yield from found

    def _among(self, statement: Statement, name: str, kind: type[BroadcastRule | PromotionRule]) -> Iterator[Clause]:
        """The clauses by which the parameters that a statement names, and its own, broadcast or promote."""
        others = names_in(statement.text.lower(), [item.lower() for item in self._names])
        about = {name, *(item for item in self._names if item.lower() in others)}
        rules = [
            rule for rule in self._spec.constraints if isinstance(rule.rule, kind) and rule.strength != Strength.OPEN
        ]
        ids = {rule.id for rule in rules if getattr(rule.rule, "of", None) in about}
        related = {name, *(item for rule in rules if rule.id in ids for item in self._operands(rule))}
        if about <= related:
            yield from self._by_rules(ids)

    def _operands(self, constraint: Constraint) -> Iterator[str]:
        """The parameters that a rule on broadcasting or promotion is about."""
        rule = constraint.rule
        if isinstance(rule, BroadcastRule):
            yield from (rule.of, *names_in(rule.other, self._names))
        elif isinstance(rule, PromotionRule):
            yield from rule.operands

    def _result(self, statement: Statement, name: str) -> Iterator[Clause]:
        """The clause by which an output has the shape to which the parameters that a statement names broadcast."""
        about = set(names_in(statement.text.lower(), [item.lower() for item in self._names])) - {name.lower()}
        for rule in self._spec.constraints:
            is_result = isinstance(rule.rule, ShapeRule) and rule.rule.of == name and _broadcasts(rule)
            if is_result and {item.lower() for item in _named_by(rule)} == about:
                yield from self._by_rules({rule.id})

    def _ranged(self, name: str, row: Row) -> Iterator[Clause]:
        """The clause on the range of a number whose choices a statement lists."""
        for rule in self._spec.constraints:
            if (
                isinstance(rule.rule, RangeRule)
                and rule.rule.of == name
                and (rule.rule.low, rule.rule.high) == values_in(row)
            ):
                yield from self._by_rules({rule.id})

    def _by_rules(self, ids: Collection[str]) -> Iterator[Clause]:
        """The clauses on parameters that some constraints alone encode."""
        for clause in self._spec.clauses:
            if clause.at.startswith("params.") and clause.constraints and set(clause.constraints) <= set(ids):
                yield clause

    def _shared(self, statement: Statement, name: str, row: Row, column: ParameterColumn) -> Iterator[Clause]:
        """The clauses by which a parameter has the dtype, format or shape of the one that a statement names."""
        other = _same_here(statement, row, column, self._names)
        if other is not None and other in self._parameters:
            yield from self._same(name, other, column)

    def _same(self, name: str, other: str, column: ParameterColumn) -> Iterator[Clause]:
        """The clauses by which two parameters agree: one follows the other, or both follow a third."""
        ours, theirs = self._chain(name, column), self._chain(other, column)
        met = next((root for root, _ in ours if any(root == word for word, _ in theirs)), None)
        if met is None:
            return
        rules = {
            rule for chain in (ours, theirs) for _, rule in chain[: [word for word, _ in chain].index(met)] if rule
        }
        yield from self._by_rules(rules)

    def _chain(self, name: str, column: ParameterColumn) -> list[tuple[str, str]]:
        """A parameter and those that it follows, each with the constraint by which it follows the next."""
        found: list[tuple[str, str]] = []
        while True:
            rule = next((item for item in self._spec.constraints if _followed(item, name, column) is not None), None)
            found.append((name, rule.id if rule is not None else ""))
            if rule is None or len(found) > len(self._names):
                return found
            name = _followed(rule, name, column) or name

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
    ErrorTopic.NULL: "present",
    ErrorTopic.DTYPE: "dtype",
    ErrorTopic.SAME_DTYPE: "same_dtype",
    ErrorTopic.PROMOTION: "promotion",
    ErrorTopic.CAST: "cast",
    ErrorTopic.FORMAT: "format",
    ErrorTopic.SAME_FORMAT: "same_format",
    ErrorTopic.RANK: "rank",
    ErrorTopic.SHAPE: "shape",
    ErrorTopic.RANGE: "range",
    ErrorTopic.BROADCAST: "broadcast",
}
_ABOUT: Mapping[ParameterColumn, tuple[tuple[str, ...], str]] = {
    ParameterColumn.STRIDED: (("contiguous",), r"not contiguous\({}\)\Z"),
    ParameterColumn.DTYPE: (("dtype", "same_dtype", "dtype_rows"), r"dtype\({}\) == \w+\Z"),
    ParameterColumn.FORMAT: (("format", "same_format"), r"format\({}\) == \w+\Z"),
}
"""Columns whose facts are compared: kinds of constraints, and conditions on the parameter."""
_SAME = (ParameterColumn.DTYPE, ParameterColumn.FORMAT, ParameterColumn.RANK)
"""Columns of what parameters may share."""


def _same_here(statement: Statement, row: Row, column: ParameterColumn, names: Sequence[str]) -> str | None:
    """The parameter whose dtype, format or shape a statement gives to that of the row."""
    found = same_as(row, column, names)
    return found.other if found is not None and found.statement is statement else None


def _followed(constraint: Constraint, name: str, column: ParameterColumn) -> str | None:
    """The one parameter whose dtype, format or shape a constraint gives to another one."""
    rule = constraint.rule
    if getattr(rule, "of", None) != name or constraint.strength == Strength.OPEN:
        return None
    if column is ParameterColumn.DTYPE and isinstance(rule, SameDtypeRule):
        return rule.others[0] if len(rule.others) == 1 else None
    if column is ParameterColumn.FORMAT and isinstance(rule, SameFormatRule):
        return rule.other
    if column is ParameterColumn.RANK and isinstance(rule, ShapeRule):
        found = re.match(r"\[\*(\w+)\]\Z", rule.shape.text)
        return found[1] if found is not None else None
    return None


def _named_by(constraint: Constraint) -> set[str]:
    """The parameters with which a constraint compares one, where it is on equality."""
    rule = constraint.rule
    if isinstance(rule, ShapeRule):
        return set(rule.shape.names())
    return (
        set(rule.others)
        if isinstance(rule, SameDtypeRule)
        else {rule.other}
        if isinstance(rule, SameFormatRule)
        else set()
    )


def _broadcasts(constraint: Constraint) -> bool:
    rule = constraint.rule
    return isinstance(rule, BroadcastRule) or (isinstance(rule, ShapeRule) and "broadcast(" in rule.shape.text)


def _has_length(constraint: Constraint, name: str, length: int) -> bool:
    rule = constraint.rule
    return isinstance(rule, LengthRangeRule) and (rule.of, rule.low, rule.high) == (name, length, length)


def _is_c_type(cell: str, c_type: str) -> bool:
    """Whether a cell of dtypes names the C type that the prototype has."""
    word = cell.strip().lower()
    if "*" in c_type:
        kind = next((kind for name, kind in _ITEMS.items() if name in c_type.split()), None)
        return kind is not None and word in (kind, f"{kind}array")
    return word in (c_type.removesuffix("_t"), c_type)


def _role_in_table(parameter: Parameter) -> str:
    """The role as the parameter table has it, where an attribute is an input."""
    return "input" if parameter.role == "attribute" else parameter.role
