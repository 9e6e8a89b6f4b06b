"""A spec drafted from a document, with a list of the places that are left for a person."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from aclnn_cts.authoring.facts import (
    DtypeDependence,
    ErrorTopic,
    RankRange,
    broadcasts_with,
    choices_of,
    dtypes_by_product,
    empty_of,
    error_topics,
    formats_of,
    forward_of,
    is_deterministic,
    is_on_too_many_dimensions,
    is_optional,
    length_in_error,
    length_of,
    ranks_of,
    related_dtypes,
    role_of,
    same_as,
    same_rank_as,
    shape_of,
    strided_of,
    values_in,
)
from aclnn_cts.authoring.model import CParameter, Document, ParameterColumn, Row, Statement
from aclnn_cts.authoring.program import example_arguments
from aclnn_cts.authoring.usual import EXAMPLE_WITHOUT_CALL, usual_family, without_family_content
from aclnn_cts.core.case import POINTERS
from aclnn_cts.core.dtypes import JUDGED_INPUTS, JUDGED_OUTPUTS
from aclnn_cts.speclang.build_parameters import kind_of_type
from aclnn_cts.speclang.kinds_number import C_RANGES

HEAD = "# Drafted from the document of "
"""How a drafted file begins."""

_WIDTH = 130
_ENDLESS = 1 << 20
_LARGEST = 2147483646
_LISTED = "ACLNN_ERR_PARAM_INVALID"
_NULL = "ACLNN_ERR_PARAM_NULLPTR"
_RUNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_RANK_LIMIT = 8
_ARRAY_LIMIT = 8
_DTYPE_NAMES = ("FLOAT", "BF", "INT", "DOUBLE", "COMPLEX", "BOOL")
_REPEATABLE = {"when": "always", "basis": "document", "source": "limits.1"}
_FORMAT_RANKS = {"NC": 2, "NCL": 3, "NCHW": 4, "NHWC": 4, "HWCN": 4, "NCDHW": 5, "NDHWC": 5}
"""Formats that go with one number of dimensions."""


@dataclass(frozen=True, slots=True)
class OpenPlace:
    """A place of a draft that the document does not settle in a form that is read."""

    at: str
    """The path inside the file: `parameters.self.shape`, `clauses.function`."""
    read: tuple[str, ...] = ()
    """Addresses of the statements to read for it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafted spec."""

    stem: str
    text: str
    open: tuple[OpenPlace, ...]


def stem_of(operator: str) -> str:
    """The file's stem of an operator: `tanh_backward` for `aclnnTanhBackward`."""
    name = operator.removeprefix("aclnn")
    words: list[str] = []
    for number, letter in enumerate(name):
        after = name[number + 1 : number + 2]
        starts = letter.isupper() and (not name[number - 1 : number].isupper() or after.islower())
        words.append(f"_{letter}" if number and starts else letter)
    return "".join(words).lower()


def draft_spec(document: Document) -> Draft:
    """Draft a spec. What no usual form states is left open, never guessed."""
    drafter = _Drafter(document)
    content = drafter.content()
    places = tuple(drafter.open)
    head = (
        f"{HEAD}{document.operator}; open places: {len(places)}. Each names the statements\n"
        "# to read: settle the place, then delete its entry. A spec with open places is not run.\n"
    )
    return Draft(stem_of(document.operator), head + _text(content), places)


@dataclass(slots=True)
class _Checks:
    """The codes of the error table by topic and parameter; the name `*` stands for all parameters."""

    listed: dict[str, set[str]] = field(default_factory=dict)
    pairs: list[tuple[str, ...]] = field(default_factory=list)
    """The parameters of conditions that the shapes of two tensors differ."""
    lengths: list[tuple[str, int]] = field(default_factory=list)
    """Arrays whose number of items has a code."""
    few: set[str] = field(default_factory=set)
    """The parameters whose code for other numbers of dimensions is stated for too few as well."""

    @classmethod
    def of(cls, document: Document) -> _Checks:
        names = [item.name for item in document.parameters]
        made = cls()
        for row in document.errors:
            if row.status not in (_LISTED, _NULL):
                continue
            topics, about = error_topics(row, names)
            if (length := length_in_error(row.statement.text, names)) is not None:
                made.lengths.append(length)
            for topic in topics:
                made.listed.setdefault(topic, set()).update(about or ("*",))
                if topic == ErrorTopic.SHAPE and len(about) == 2:
                    made.pairs.append(about)
                if topic == ErrorTopic.RANK and not is_on_too_many_dimensions(row.statement.text):
                    made.few.update(about or ("*",))
        return made

    def has(self, topic: str) -> bool:
        return topic in self.listed

    def names(self, topic: str, name: str) -> bool:
        return bool({name, "*"} & self.listed.get(topic, set()))


class _Drafter:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._products = [product for product, supported in document.products.items() if supported]
        self._names = [item.name for item in document.parameters]
        self._checks = _Checks.of(document)
        self._tables: dict[str, Mapping[str, tuple[str, ...]]] = {}
        self._draws: list[dict[str, Any]] = []
        self._shaped: dict[str, bool] = {}
        self._runs: dict[str, str] = {}
        """By tensor: the run of sizes that it is shaped by."""
        self._several: list[str] = []
        """The tensors that list several formats."""
        self._sizes = {size for row in document.rows.values() for size in shape_of(row) or ()}
        self._tables_of: dict[str, Mapping[str, tuple[str, ...]]] = {}
        self._drawn: dict[str, set[str]] = {}
        self._read: dict[str, tuple[Statement, ...]] = {}
        self.open: list[OpenPlace] = []

    def content(self) -> dict[str, Any]:
        """The file as plain values, in the order in which it is written."""
        document = self._document
        if not self._products:
            self._open("products", [item for item in document.statements if item.address.startswith("products/")])
        parameters = [self._parameter(item) for item in document.parameters]
        self._unread_dtypes()
        self._open("clauses.function", [item for item in document.statements if item.address.startswith("function/")])
        content: dict[str, Any] = {"operator": document.operator}
        if document.header is not None:
            content["header"] = document.header
        content["document"] = {"title": document.operator, "language": "zh", "sha256": document.sha256}
        content["family"] = usual_family(document, parameters)
        content["products"] = self._products or ["atlas-a2"]
        content["tables"] = {name: _by_others(table) for name, table in self._tables.items()}
        content["defaults"] = self._defaults()
        content["parameters"] = parameters
        content["precision"] = [{"repeatable": _REPEATABLE}] if is_deterministic(document) else []
        content["draws"] = self._draws
        found = example_arguments(document)
        content["examples"] = [{"arguments": found}] if found is not None else []
        content["sentences"] = self._sentences(parameters)
        content["clauses"] = self._clauses(parameters, content["sentences"])
        if found is None:
            content["clauses"]["example"] = list(EXAMPLE_WITHOUT_CALL)
            self._open(
                "clauses.example", [item for item in document.statements if item.address.startswith("example/code")]
            )
        content = without_family_content(content)
        content["open"] = [_entry(place) for place in self.open]
        return {key: value for key, value in content.items() if value}

    def _sentences(self, parameters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Sentences that several parameters share: numbers of dimensions, of which too few have no code."""
        ranks = [item["rank"] for item in parameters if _has_few(item)]
        if not ranks or any(rank != ranks[0] for rank in ranks):
            return {}
        low, high = ranks[0][1]["is"]
        return {
            "few": {
                "say": ["rank", "few"],
                "en": f"{{name}} has {low} to {high} dimensions; a code is listed for more than {high} only.",
                "zh": f"{{name}} 为 {low} 到 {high} 维；仅列出了超过 {high} 维的返回码。",
            }
        }

    def _clauses(self, parameters: Sequence[Mapping[str, Any]], sentences: Mapping[str, Any]) -> dict[str, Any]:
        """What stock sentences say of the function, of parameters and of the limits."""
        forward = forward_of(self._document)
        summary = {
            "en": f"The operator is the backward pass of {forward}.",
            "zh": f"该算子实现 {forward} 的反向计算。",
            "check": "values",
        }
        made: dict[str, Any] = {"function": [summary]} if forward is not None else {}
        for item in parameters:
            row = self._document.rows.get(item["name"])
            words = choices_of(row) if row is not None and "range" in item else {}
            if words:
                en, zh = (
                    joint.join(f"{number} {verb} {word}" for number, word in words.items())
                    for joint, verb in ((", ", "stands for"), ("，", "表示"))
                )
                made[f"params.{item['name']}"] = ["implied", {"en": f"{en}.", "zh": f"{zh}。", "check": "values"}]
            elif _has_few(item) and sentences:
                made[f"params.{item['name']}"] = ["implied", "few"]
        return made | ({"limits": ["deterministic"]} if is_deterministic(self._document) else {})

    def _defaults(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._checks.has(ErrorTopic.NULL):
            found["null"] = _NULL
        if self._checks.has(ErrorTopic.DTYPE):
            found["dtypes"] = {"status": _LISTED, "group": "dtype"}
        return found

    def _open(self, at: str, statements: Iterable[Statement]) -> None:
        self.open.append(OpenPlace(at, tuple(item.reference for item in statements)))

    def _unread_dtypes(self) -> None:
        """Leave the tables open where remarks that hold for some products say more of dtypes than was read."""
        read = {item.address for statements in self._read.values() for item in statements}
        left = [
            item
            for item in self._document.statements
            if item.products is not None
            and item.address.startswith(("params/note/", "limits/"))
            and item.address not in read
            and "支持" in item.text
            and any(word in item.text for word in _DTYPE_NAMES)
        ]
        if left:
            self._open("tables", left)

    def _leave(self, name: str, key: str, *columns: ParameterColumn) -> None:
        """Leave a property of a parameter open, with the cells to read."""
        row = self._document.rows.get(name)
        cells = [row.cells.get(column, ()) for column in columns] if row is not None else []
        self._open(
            f"parameters.{name}.{key}" if key else f"parameters.{name}", [item for cell in cells for item in cell]
        )

    def _parameter(self, item: CParameter) -> dict[str, Any]:
        row = self._document.rows.get(item.name) or Row(item.name, {})
        entry: dict[str, Any] = {"name": item.name, "type": item.type}
        role = self._role(item, row)
        if role != _role_of_type(item.type):
            entry["role"] = role
        kind = kind_of_type(item.type)
        if kind is None:
            self._leave(item.name, "", ParameterColumn.DESCRIPTION, ParameterColumn.USAGE)
        elif kind == "tensor":
            self._null(item.name, row, entry)
            self._tensor(item.name, row, entry)
        elif kind == "int_array":
            self._null(item.name, row, entry)
            self._array(item.name, row, entry)
        elif kind == "bool_array" and (length := length_of(row)) is not None:
            self._null(item.name, row, entry)
            entry["length"] = length
        elif kind in POINTERS:
            self._null(item.name, row, entry)
            self._leave(item.name, "", ParameterColumn.DESCRIPTION, ParameterColumn.USAGE)
        else:
            self._number(item, kind, row, entry)
        return entry

    def _role(self, item: CParameter, row: Row) -> str:
        if kind_of_type(item.type) not in ("tensor", None) or "Tensor" not in item.type:
            return "attribute"
        return role_of(self._document.rows.get(item.name), item.type)

    def _null(self, name: str, row: Row, entry: dict[str, Any]) -> None:
        if is_optional(self._document.rows.get(name), name):
            entry["null"] = "none"
            self._leave(name, "null", ParameterColumn.ROLE)
        elif self._checks.has(ErrorTopic.NULL) and not self._checks.names(ErrorTopic.NULL, name):
            entry["null"] = "open"

    def _tensor(self, name: str, row: Row, entry: dict[str, Any]) -> None:
        earlier = self._names[: self._names.index(name)]
        self._dtypes(name, row, entry, earlier)
        self._formats(name, row, entry, earlier)
        self._shape(name, row, entry, earlier)
        strided = strided_of(row)
        if strided is not None:
            entry["strided"] = strided
        empty = empty_of(row)
        if empty is not None:
            entry["empty"] = empty[0]

    def _same(self, name: str, row: Row, column: ParameterColumn, earlier: Sequence[str]) -> str | None:
        """The earlier tensor that this one equals in dtype, shape or format."""
        found = same_as(row, column, self._names)
        if found is not None and found.other in earlier:
            return found.other if self._is_tensor(found.other) else None
        for other in earlier:
            back = same_as(self._document.rows[other], column, self._names) if other in self._document.rows else None
            if back is not None and back.other == name and self._is_tensor(other):
                return other
        return None

    def _is_tensor(self, name: str) -> bool:
        return any(item.name == name and kind_of_type(item.type) == "tensor" for item in self._document.parameters)

    def _promised(self, topic: str, name: str, value: object, default: str | None = None) -> object:
        """A property's value with the code that the error table lists for this parameter."""
        if default is not None:
            covered = not self._checks.has(topic) or self._checks.names(topic, name)
            return value if covered else {"is": value, "strength": "limit"}
        return {"is": value, "status": _LISTED} if self._checks.names(topic, name) else value

    def _dtypes(self, name: str, row: Row, entry: dict[str, Any], earlier: Sequence[str]) -> None:
        other = self._same(name, row, ParameterColumn.DTYPE, earlier)
        found = dtypes_by_product(self._document, name, self._products)
        same = same_as(row, ParameterColumn.DTYPE, self._names)
        if found is None and other is None and same is not None:
            found = dtypes_by_product(self._document, same.other, self._products)
        if found is None and other in self._tables_of and self._checks.names(ErrorTopic.DTYPE, name):
            found = self._tables_of[other], ()
        if found is not None and all(found[0].values()):
            self._read[name] = found[1]
            self._tables_of[name] = found[0]
            entry["dtypes"] = self._promised(ErrorTopic.DTYPE, name, self._table(found[0]), default="dtypes")
        elif other is None:
            entry["dtypes"] = ["FLOAT"]
            self._leave(name, "dtypes", ParameterColumn.DTYPE, ParameterColumn.USAGE)
        self._leave_unjudged(name, entry, other)
        if other is not None:
            value: object = other
            if self._checks.names(ErrorTopic.SAME_DTYPE, name) and self._checks.has(ErrorTopic.DTYPE):
                value = {"is": other, "status": _LISTED, "group": "dtype"}
            elif self._checks.names(ErrorTopic.SAME_DTYPE, name):
                value = {"is": other, "status": _LISTED}
            entry["same_dtype_as"] = value
        elif "dtypes" in entry:
            self._related(name, row, entry, earlier)

    def _related(self, name: str, row: Row, entry: dict[str, Any], earlier: Sequence[str]) -> None:
        """How the dtype promotes with those of earlier tensors, or is cast from them."""
        tensors = [other for other in earlier if self._is_tensor(other)]
        rows = {other: self._document.rows[other] for other in tensors if other in self._document.rows}
        found = related_dtypes(row, self._names)
        kind, others = found if found is not None else (DtypeDependence.PROMOTES, ())
        if kind == DtypeDependence.PROMOTES:
            back = {other: related_dtypes(item, self._names) for other, item in rows.items()}
            others += tuple(
                other for other, said in back.items() if said is not None and said[0] == kind and name in said[1]
            )
        others = tuple(other for other in tensors if other in others)
        if not others:
            return
        key, topic = {
            DtypeDependence.PROMOTES: ("promotes_with", ErrorTopic.PROMOTION),
            DtypeDependence.CAST: ("casts_from", ErrorTopic.CAST),
            DtypeDependence.PROMOTED: ("same_dtype_as", ErrorTopic.PROMOTION),
        }[kind]
        value: object = f"promote({', '.join(others)})" if others[1:] else others[0]
        if self._checks.names(topic, name):
            value = {
                "is": value,
                "status": _LISTED,
                **({"group": "dtype"} if self._checks.has(ErrorTopic.DTYPE) else {}),
            }
        entry[key] = value

    def _leave_unjudged(self, name: str, entry: Mapping[str, Any], other: str | None) -> None:
        """Leave open where valid calls would take dtypes that cannot be judged yet: a list, a table, or an equality."""
        own = {dtype for words in self._tables_of.get(name, {}).values() for dtype in words}
        self._drawn[name] = self._drawn.get(other, set()) if other is not None else own
        judged = JUDGED_INPUTS if entry.get("role", _role_of_type(entry["type"])) == "input" else JUDGED_OUTPUTS
        if self._drawn[name] <= judged:
            return
        given = entry.get("dtypes")
        table = given["is"] if isinstance(given, dict) else given
        at = f"tables.{table}" if isinstance(table, str) else f"parameters.{name}.dtypes"
        if other is not None:
            at = f"parameters.{name}.dtype"
        if at not in {place.at for place in self.open}:
            self._open(at, self._read.get(name, ()))

    def _table(self, dtypes: Mapping[str, tuple[str, ...]]) -> object:
        """A list where all products have the same dtypes, else the name of a table."""
        lists = {frozenset(words) for words in dtypes.values()}
        if len(lists) == 1:
            return list(next(iter(dtypes.values())))
        for name, table in self._tables.items():
            if {key: set(words) for key, words in table.items()} == {key: set(words) for key, words in dtypes.items()}:
                return name
        names = ("floats", *(f"dtypes{number}" for number in range(2, 100)))
        name = names[len(self._tables)]
        self._tables[name] = dtypes
        return name

    def _formats(self, name: str, row: Row, entry: dict[str, Any], earlier: Sequence[str]) -> None:
        other = self._same(name, row, ParameterColumn.FORMAT, earlier)
        formats = formats_of(row)
        if other is not None:
            entry["same_format_as"] = self._promised(ErrorTopic.SAME_FORMAT, name, other)
        if formats is None and other is None:
            self._leave(name, "formats", ParameterColumn.FORMAT, ParameterColumn.USAGE)
        # ND alone excludes no other format, and is what a spec takes.
        if formats is None or formats == ("ND",):
            return
        entry["formats"] = self._promised(ErrorTopic.FORMAT, name, list(formats))
        ranks = ranks_of(row)
        tied = {_FORMAT_RANKS[item] for item in formats if item in _FORMAT_RANKS}
        if other is None and tied and (ranks is None or tied != {ranks.low} or tied != {ranks.high}):
            self._leave(name, "formats", ParameterColumn.FORMAT, ParameterColumn.RANK, ParameterColumn.USAGE)
        if len(formats) > 1:
            mixed = next((item for item in earlier if item in self._several), None)
            if other is None and mixed is not None:
                entry["same_format_as"] = {"is": mixed, "strength": "open"}
            self._several.append(name)

    def _shape(self, name: str, row: Row, entry: dict[str, Any], earlier: Sequence[str]) -> None:
        other = self._same(name, row, ParameterColumn.RANK, earlier) or self._compared_with(name, earlier)
        ranks = self._ranks(row)
        if other is not None and other in self._shaped:
            entry["same_shape_as"] = self._promised(ErrorTopic.SHAPE, name, other)
            # The shape says more than the rank; a rank without a code beside a shape with one would silence the code.
            if ranks is not None and (
                self._checks.names(ErrorTopic.RANK, name) or not self._checks.names(ErrorTopic.SHAPE, name)
            ):
                is_listed = self._checks.names(ErrorTopic.SHAPE, name)
                entry["rank"] = self._rank(name, ranks, few="open" if is_listed else "limit")
            return
        sizes = shape_of(row)
        if sizes is not None:
            entry["shape"] = f"[{', '.join(sizes)}]"
            for size in sizes:
                self._draw({"name": size, "in": [1, _LARGEST]} if not size.isdigit() else {})
        else:
            run, low, high = self._run(), *((ranks.low, ranks.high) if ranks is not None else (1, _RANK_LIMIT))
            entry["shape"] = f"[*{run}]"
            draw: dict[str, Any] = {"run": run, "length": [low, high], "sizes": [1, _LARGEST]}
            partner = self._broadcast_partner(name, row, earlier)
            if partner is not None:
                entry["broadcasts_with"] = self._promised(ErrorTopic.BROADCAST, name, partner)
                draw["broadcasts_with"] = self._runs[partner]
            self._runs[name] = run
            self._draws.append(draw)
        is_said = "shape" in row.text(ParameterColumn.USAGE) and same_as(row, ParameterColumn.RANK, self._names) is None
        is_free = not self._shaped and ranks is not None and not ranks.has_gaps and not is_said
        if sizes is None and not is_free:
            self._leave(name, "shape", ParameterColumn.RANK, ParameterColumn.USAGE)
        is_silencing = "broadcasts_with" in entry and self._checks.names(ErrorTopic.BROADCAST, name)
        if ranks is not None and (self._checks.names(ErrorTopic.RANK, name) or not is_silencing):
            entry["rank"] = self._rank(name, ranks, few="open" if is_silencing else "limit")
        if ranks is not None and ranks.has_gaps:
            self._leave(name, "rank", ParameterColumn.RANK)
        self._shaped[name] = True

    def _compared_with(self, name: str, earlier: Sequence[str]) -> str | None:
        """The one earlier tensor with which the error table alone compares the shape of this one."""
        pairs = (pair for pair in self._checks.pairs if name in pair)
        return next((other for pair in pairs for other in pair if other in earlier and other in self._shaped), None)

    def _broadcast_partner(self, name: str, row: Row, earlier: Sequence[str]) -> str | None:
        """The earlier tensor that this one broadcasts with, as the remarks on either say."""
        rows = {
            other: self._document.rows[other]
            for other in self._runs
            if other in earlier and other in self._document.rows
        }
        if (said := broadcasts_with(row, self._names)) in rows:
            return said
        return next((other for other, item in rows.items() if broadcasts_with(item, self._names) == name), None)

    def _ranks(self, row: Row) -> RankRange | None:
        """The numbers of dimensions that a tensor's cell states, or that of one with as many."""
        others = [self._document.rows[name] for name in same_rank_as(row, self._names) if name in self._document.rows]
        return next((ranks for item in (row, *others) if (ranks := ranks_of(item)) is not None), None)

    def _rank(self, name: str, ranks: RankRange, *, few: str = "limit") -> object:
        low, high = ranks.low, ranks.high
        if low > 0 and self._checks.names(ErrorTopic.RANK, name) and not {name, "*"} & self._checks.few:
            strength = {"strength": few} if few != "limit" else {}
            return [{"is": [0, high], "status": _LISTED}, {"id": "few", "is": [low, high], **strength}]
        return self._promised(ErrorTopic.RANK, name, low if low == high else [low, high])

    def _run(self) -> str:
        drawn = {draw.get("run") or draw.get("name") for draw in self._draws}
        used = drawn | self._sizes | set(self._names)
        return next(
            name
            for count in range(1, len(self._names) + 3)
            for name in (letter * count for letter in _RUNS)
            if name not in used
        )

    def _draw(self, draw: dict[str, Any]) -> None:
        known = {item.get("name") or item.get("run") for item in self._draws} | set(self._names)
        if draw and draw["name"] not in known:
            self._draws.append(draw)

    def _array(self, name: str, row: Row, entry: dict[str, Any]) -> None:
        run = self._run()
        length = length_of(row)
        entry["items"] = f"[*{run}]"
        if length is not None:
            is_listed = (name, length) in self._checks.lengths
            entry["length"] = {"is": length, "status": _LISTED} if is_listed else length
        self._draws.append(
            {
                "run": run,
                "length": [length, length] if length is not None else [1, _ARRAY_LIMIT],
                "sizes": [1, _LARGEST],
            }
        )
        self._leave(name, "items", ParameterColumn.DESCRIPTION, ParameterColumn.USAGE)

    def _number(self, item: CParameter, kind: str, row: Row, entry: dict[str, Any]) -> None:
        values = values_in(row) if kind == "int" else None
        if kind == "bool":
            self._draws.append({"name": item.name, "one_of": [False, True]})
        elif kind == "double":
            self._draws.append({"name": item.name, "one_of": [0.0, 1.0, -1.0]})
            self._leave(item.name, "range", ParameterColumn.DESCRIPTION, ParameterColumn.USAGE)
        elif values is not None:
            entry["range"] = self._promised(ErrorTopic.RANGE, item.name, list(values))
            self._draws.append({"name": item.name, "in": list(values)})
        else:
            low, high = C_RANGES[entry["type"].replace("const ", "")]
            self._draws.append({"name": item.name, "in": [low, high]})
            self._leave(item.name, "range", ParameterColumn.DESCRIPTION, ParameterColumn.USAGE)


def _role_of_type(c_type: str) -> str:
    """What a C type says of a parameter's role, as a spec reads it."""
    return {"const aclTensor *": "input", "aclTensor *": "output"}.get(c_type, "attribute")


def _has_few(item: Mapping[str, Any]) -> bool:
    """Whether a parameter may have too many dimensions with a code, and too few without one."""
    return isinstance(item.get("rank"), list) and isinstance(item["rank"][0], dict)


def _by_others(table: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """A table whose most frequent list is that of all other products."""
    lists = list(table.values())
    usual = max(lists, key=lists.count)
    rest = {product: list(words) for product, words in table.items() if words != usual}
    return {"others": list(usual), **rest}


def _entry(place: OpenPlace) -> dict[str, Any]:
    return {"at": place.at, **({"read": list(place.read)} if place.read else {})}


def _text(content: Mapping[str, Any]) -> str:
    """YAML with one line for each parameter, draw, table and open place, where the width allows it."""
    lines: list[str] = []
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines.append(f"{key}:")
            lines.extend(f"  - {_flow(item, 4)}" for item in value)
        elif isinstance(value, dict) and key != "document":
            lines.append(f"{key}:")
            for name, item in value.items():
                if isinstance(item, list) and item and isinstance(item[0], dict):
                    lines.append(f"  {name}:")
                    lines.extend(f"    - {_flow(entry, 6)}" for entry in item)
                else:
                    lines.append(f"  {name}: {_flow(item, 4)}")
        else:
            lines.append(f"{key}: {_flow(value, 2)}")
    return "\n".join(lines) + "\n"


def _flow(value: object, indent: int) -> str:
    """A value in flow style, its own items wrapped at the width; what is inside an item is not broken."""
    if isinstance(value, dict):
        return _wrapped("{", [f"{_scalar(key)}: {_flow(item, _WIDTH)}" for key, item in value.items()], "}", indent)
    if isinstance(value, list):
        return _wrapped("[", [_flow(item, _WIDTH) for item in value], "]", indent)
    return _scalar(value)


def _wrapped(opening: str, items: Sequence[str], closing: str, indent: int) -> str:
    lines = [opening]
    pieces = [item + (", " if number + 1 < len(items) else closing) for number, item in enumerate(items)]
    for text in (part for piece in pieces for part in _parts(piece, indent)):
        if indent < _WIDTH and len(lines[-1]) > 1 and indent + len(lines[-1]) + len(text.rstrip()) > _WIDTH:
            lines.append(" ")
        lines[-1] += text
    return ("\n" + " " * indent).join(line.rstrip() for line in lines) if items else opening + closing


def _parts(piece: str, indent: int) -> Sequence[str]:
    """An item, split behind its own commas where it is too long for a line."""
    return [piece] if indent + len(piece) < _WIDTH else re.split(r'(?<=, )(?=(?:[^"]*"[^"]*")*[^"]*\Z)', piece)


def _scalar(value: object) -> str:
    """One scalar as YAML writes it in a flow; what begins like a number is quoted, since readers differ there."""
    if isinstance(value, str) and value[:1].isdigit():
        return json.dumps(value, ensure_ascii=False)
    text: str = yaml.safe_dump([value], default_flow_style=True, allow_unicode=True, width=_ENDLESS)
    plain = text.strip()[1:-1]
    return json.dumps(value, ensure_ascii=False) if plain[:1] in ("'", '"') else plain
