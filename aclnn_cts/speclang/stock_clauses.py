"""The clauses of a spec: stock sentences from `wording.yaml`, and the spec's own between them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.core.printable import quote
from aclnn_cts.speclang.build_constraints import DtypeRows
from aclnn_cts.speclang.package import products, shared_file
from aclnn_cts.speclang.placeholders import expand_lists, fill_placeholders, placeholders
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import (
    ClauseModel,
    ConstraintModel,
    OperatorModel,
    ParameterModel,
    SentenceModel,
    WordingModel,
)
from aclnn_cts.speclang.shared_schema import Bilingual
from aclnn_cts.speclang.yaml_file import YamlPath

Taken: TypeAlias = Literal["product", "dtype", "row", "rows", "format", "word"]
"""What valid calls take, as `wording.yaml` calls it."""
_TOGETHER = re.compile(r"(?:broadcast|promote)\(([^()]*)\)")
LANGUAGES: tuple[Literal["en", "zh"], ...] = ("en", "zh")


@functools.cache
def wording() -> WordingModel:
    """The stock sentences of specs."""
    return shared_file("wording", WordingModel)


def join_names(names: Sequence[str], language: str) -> str:
    """Names in a sentence: `x, y and z`."""
    if language == "zh" or len(names) < 2:
        return "、".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def rule_sentence(rule: ConstraintModel, *, is_error: bool) -> Bilingual | None:
    """The stock sentence on a rule; None where there is none: loss of accuracy, and most of what is left open."""
    words = wording()
    if is_error and rule.strength == "listed":
        return words.errors.get(_kind(rule))
    by_strength = {"listed": words.rules, "limit": words.rules, "open": words.open_rules}
    return by_strength.get(rule.strength, {}).get(_kind(rule))


def _kind(rule: ConstraintModel) -> str:
    """Which sentence tells of a rule: mostly that of its kind."""
    if rule.kind == "shape" and re.fullmatch(r"\[\*[A-Za-z_]\w*\]", str(rule.is_)):
        return "same_shape"
    if rule.kind == "shape" and re.fullmatch(rf"\[\*{_TOGETHER.pattern}\]", str(rule.is_)):
        return "broadcast_shape"
    if rule.kind in ("cast", "same_dtype") and _TOGETHER.search(str(rule.as_)):
        return f"{rule.kind}_promoted"
    if rule.kind == "structure":
        return str(rule.as_)
    return "dims_of" if rule.kind == "dims" and rule.axes is not None else str(rule.kind)


@dataclass(frozen=True, slots=True)
class StockSentences:
    """The sentences of one file, which read its products and tables."""

    products: Sequence[str]
    tables: Mapping[str, Mapping[str, Sequence[str]]]

    def rules_sentence(
        self, rules: Sequence[ConstraintModel], products: Sequence[str], *, is_error: bool
    ) -> dict[str, str] | None:
        """What rules that differ in their parameters alone say, on products where some are named; None: no words.

        The sentence on a shape tells of its number of dimensions as well.
        """
        shaped = {rule.of for rule in rules if rule.kind == "shape"}
        rules = [rule for rule in rules if rule.kind != "rank" or rule.of not in shaped]
        texts = rule_sentence(rules[0], is_error=is_error)
        if texts is None or len({(_kind(rule), rule.strength) for rule in rules}) > 1:
            return None
        alone = [self._fields([rule], products, "en") for rule in rules]
        if any(
            len({each[key] for each in alone}) > 1 for key in alone[0] if key != "name" and f"{{{key}}}" in texts.en
        ):
            return None
        made: dict[str, str] = {}
        for language in LANGUAGES:
            opening = (
                getattr(wording().rules["on"], language).format(product=product_titles(products, language))
                if products
                else ""
            )
            made[language] = opening + getattr(texts, language).format(**self._fields(rules, products, language))
        return made

    def accepts_sentence(
        self,
        what: Taken,
        products: Sequence[str] = (),
        **fields: str | tuple[str, ...],
    ) -> dict[str, str]:
        """What valid calls take, on some products where they are named."""
        texts = wording().takes[what]
        if products and what in ("dtype", "format"):
            texts = wording().takes["dtype_on" if what == "dtype" else "format_on"]
        return {
            language: getattr(texts, language).format(
                product=product_titles(products, language),
                **{
                    key: join_names(text, language) if isinstance(text, tuple) else text for key, text in fields.items()
                },
            )
            for language in LANGUAGES
        }

    def by_product(self, value: object) -> Mapping[str, Sequence[str]]:
        """The name of a table, a list, or a list by product, as a list by product."""
        if isinstance(value, str):
            value = self.tables.get(value, {})
        by_product = dict.fromkeys(self.products, value) if isinstance(value, list) else value
        rows = by_product.items() if isinstance(by_product, Mapping) else ()
        return {name: tuple(map(str, row)) for name, row in rows if isinstance(row, list)}

    def _fields(self, rules: Sequence[ConstraintModel], products: Sequence[str], language: str) -> dict[str, str]:
        """What the placeholders of a sentence on rules stand for."""
        rule = rules[0]
        names = [
            name
            for item in rules
            for name in (item.of if isinstance(item.of, list) else ["" if item.of is None else item.of])
        ]
        status = rule.status or []
        together = _TOGETHER.search(str(rule.as_ if rule.is_ is None else rule.is_))
        return {
            "name": join_names([str(name) for name in dict.fromkeys(names)], language),
            "other": join_names([name.strip() for name in together[1].split(",")], language)
            if together is not None and rule.kind in ("shape", "broadcast", "promotion", "cast", "same_dtype")
            else str(rule.is_)[2:-1]
            if rule.kind == "shape"
            else str(rule.as_ or "").replace(" or ", ", else " if language == "en" else "，否则 "),
            "axes": join_names([str(axis) for axis in rule.axes or (rule.axis,)], language),
            "status": " / ".join(status if isinstance(status, list) else [status]),
            "values": self._values(rule, products, language),
        }

    def _values(self, rule: ConstraintModel, products: Sequence[str], language: str) -> str:
        """What a rule allows, in words."""
        if rule.kind in ("dtype", "format"):
            stated = products or self.products
            by_product = self.by_product(rule.in_)
            separator = ", " if language == "en" else "、"
            lists = {name: separator.join(values) for name, values in by_product.items() if name in stated}
            if len(set(lists.values())) <= 1:
                return next(iter(lists.values()), "")
            between, form = ("；", "{}（{}）") if language == "zh" else ("; ", "{} ({})")
            return between.join(form.format(values, product_titles([name], language)) for name, values in lists.items())
        if rule.kind == "layout" and isinstance(rule.in_, Mapping):
            comma, between = (", ", "; ") if language == "en" else ("、", "；")
            return between.join(f"{rank} {comma.join(names)}" for rank, names in rule.in_.items())
        if rule.is_ is not None:
            return str(rule.is_)
        bounds = rule.in_
        if rule.kind == "word" and isinstance(bounds, list):
            return (", " if language == "en" else "、").join(f'"{word}"' for word in bounds)
        low, high = bounds if isinstance(bounds, list) and len(bounds) == 2 else (None, None)
        if low == high:
            return str(low)
        if low is None:
            return f"at most {high}" if language == "en" else f"不超过 {high}"
        if high is None:
            return f"at least {low}" if language == "en" else f"不小于 {low}"
        return f"{low} to {high}" if language == "en" else f"{low} 至 {high}"


def product_titles(names: Sequence[str], language: str) -> str:
    """Products by the names that documents give them."""
    known = products()
    return join_names([getattr(known[name].title, language) if name in known else name for name in names], language)


_Clause = dict[str, Any]
_IMPLIED = "implied"
_HEADS = ("products", "prototype", "function", "params", "returns", "phase2", "limits", "example")
_RECEIVED = ("workspaceSize", "executor")
_ROLES = {"inputs": ("input", "inout"), "outputs": ("output", "inout"), "tensors": ("input", "output", "inout")}
"""Words before a rule's name that stand for that rule of several parameters."""
_KIND_WORDS = {
    "scalar": ["scalar", "dtypes"],
    "string": ["text", "words"],
    "int_array": ["array"],
    "bool_array": ["bool_array"],
    "float_array": ["float_array"],
}
"""What is implied of a parameter that is neither a tensor nor a number."""
_OVER = frozenset({"say", "of"})
"""What an entry says beside the fields of a clause."""
_FIELDS_OF_SENTENCES = msgspec.structs.fields(SentenceModel)
_FIELDS = frozenset(ClauseModel.__struct_fields__) - {*LANGUAGES}
_ENCODINGS = frozenset({"constraints", "check", "interface", "example", "untestable"})
_OF_A_CHECK = frozenset({"when", "output", "faults"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StockClauses:
    """Everything that the sentences of one file may speak of."""

    problems: Problems
    operator: OperatorModel
    parameters: Sequence[ParameterModel]
    """As valid calls draw them."""
    rows: DtypeRows
    kinds: Mapping[str, str]
    constraints: Sequence[ConstraintModel]
    sentences: StockSentences
    _known_values: dict[tuple[str, str], Mapping[str, object]] = field(default_factory=dict, init=False)
    """What `_of_parameter` has given: thousands of sentences speak of some dozen parameters."""

    def clauses(self) -> Iterator[tuple[ClauseModel, YamlPath]]:
        """Every clause with its address, in the order of the document, and where it comes from."""
        sections = self.operator.clauses
        known = self.sections()
        for section in sections:
            self.problems.known(section, known, ("clauses", section), "section")
        named = {name for section, entries in sections.items() for name in self._named(section, entries)}
        for section in known:
            number = 0
            for entry, path in self._entries(section, sections.get(section), named):
                for clause in self.clauses_of_entry(section, entry, path):
                    number = self._number(clause.pop("at", number + 1), path)
                    made = self.problems.read(ClauseModel, {"at": f"{section}.{number}", **clause}, path)
                    if made is not None:
                        yield made, path

    def _number(self, value: object, path: YamlPath) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        self.problems.add(path, f"at: {quote(value)}; expected a number: the section is the key above")
        return 0

    def sections(self) -> list[str]:
        """Every section that a document can have, in its order."""
        names = {
            "params": [f"params.{name}" for name in (*self.kinds, *_RECEIVED)],
            "phase2": [name for name in wording().sections if name.startswith("phase2.")],
        }
        return [section for head in _HEADS for section in names.get(head, [head])]

    def _entries(
        self, section: str, given: Sequence[object] | None, named: set[str]
    ) -> Iterator[tuple[object, YamlPath]]:
        """The entries of a section, with what it implies in the place of `implied`, or of the section."""
        for place, entry in enumerate([_IMPLIED] if given is None else given):
            path: YamlPath = ("clauses", section, place) if given is not None else ("parameters",)
            for word in self.implied(section, named) if entry == _IMPLIED else self._series(section, entry):
                yield word, path

    def _series(self, section: str, entry: object) -> Sequence[object]:
        """What an entry stands for: itself, the words of a series, or a rule of each parameter that has it."""
        if not isinstance(entry, str):
            return [entry]
        head, _, suffix = entry.partition(".")
        if head == "each":
            found = [rule for name in self.kinds for rule in self.constraints if rule.id == f"{name}.{suffix}"]
            is_code = section == "returns"
            return [rule.id for rule in found if rule.strength == "listed" or not is_code] or [entry]
        own = self.operator.sentences.get(entry)
        return own if isinstance(own, list) else wording().series.get(entry, [entry])

    def _named(self, section: str, entries: Sequence[object]) -> Iterator[str]:
        """The ids of the rules that written entries name: their sentence is not implied a second time.

        What the error table says of a limit is another sentence than the one where the parameter is described.
        """
        for entry in (word for written in entries for word in self._series(section, written)):
            keys = ("rules", "say", "constraints")
            word = next((entry[key] for key in keys if key in entry), None) if isinstance(entry, dict) else entry
            for name in word if isinstance(word, list) else [word]:
                for rule in self._rules(name, section.partition(".")[2]):
                    if section != "returns" or rule.strength != "limit":
                        yield rule.id

    def implied(self, section: str, named: set[str]) -> list[str]:
        """The words of a section that is left out, or that says `implied`."""
        head, _, name = section.partition(".")
        if head == "products":
            return [*self.operator.products, "no_other"]
        words = [word for word, entry in wording().sections.get(section, {}).items() if entry.implied]
        if head == "returns":
            codes = [rule for rule in self.constraints if rule.strength == "listed"]
            return [*words, *(rule.id for rule in codes if rule_sentence(rule, is_error=True))]
        if head != "params" or name not in self.kinds:
            return words
        parameter = next(item for item in self.parameters if item.name == name)
        words = _KIND_WORDS.get(self.kinds[name], ["number"])
        if self.kinds[name] in ("tensor", "tensor_list"):
            role = "list_" * (self.kinds[name] == "tensor_list") + str(parameter.role)
            words = [role, *(["strided"] if parameter.strided else []), "dtypes", "formats"]
        words = [*words, *(["optional"] if parameter.optional else [])]
        rules = [rule for rule in self.constraints if rule.of == name]
        computed = all(rule.when == parameter.present for rule in rules if rule.kind == "present")
        words += ["left_out"] if parameter.present is not None and not parameter.optional and computed else []
        own = [rule for rule in rules if rule.id not in named]
        codes = [rule for rule in own if rule.kind == "present" and rule.strength == "listed"]
        return [*words, *(rule.id for rule in own if rule not in codes and rule_sentence(rule, is_error=False))]

    def clauses_of_entry(self, section: str, entry: object, path: YamlPath) -> Iterator[_Clause]:
        """One entry of a section: a word, rules, a word with other fields, or a clause of the spec's own."""
        fields = expand_lists(entry) if isinstance(entry, dict) else {"say": entry}
        name = section.partition(".")[2]
        word = fields.get("say")
        own = self.operator.sentences.get(word) if isinstance(word, str) else None
        if isinstance(own, dict):
            own = expand_lists(own)
            used = placeholders(own)
            filled = fill_placeholders(own, self._values(name, fields, "en"))
            filled.update({"zh": fill_placeholders(own["zh"], self._values(name, fields, "zh"))} if "zh" in own else {})
            rest = {key: value for key, value in fields.items() if key != "say" and key not in used - _FIELDS}
            fields = {**filled, **rest}
            if "rules" in fields:
                fields["say"] = fields.pop("rules")
        if fields.get("contradicts"):
            fields.setdefault("certainty", "contradicted")
        if "say" not in fields:
            yield self._completed(fields, path)
            return
        for clause in list(self._stock(section, fields, path)):
            over = {key: value for key, value in fields.items() if key not in _OVER}
            yield self._completed({**clause, **over}, path)
            fields.pop("at", None)

    def _completed(self, clause: Mapping[str, Any], path: YamlPath) -> _Clause:
        """A clause with its check where that follows, and words replaced by what they stand for."""
        made = dict(clause)
        if _OF_A_CHECK & made.keys() and not _ENCODINGS & made.keys():
            made["check"] = "values"
        checks, reasons = wording().checks, wording().reasons
        if isinstance(made.get("check"), str) and made["check"] in checks:
            made.setdefault("faults", checks[made["check"]])
            made["check"] = "values"
        reason = made.get("untestable")
        if isinstance(reason, str) and self.problems.known(reason, reasons, (*path, "untestable"), "reason"):
            made["untestable"] = {**msgspec.to_builtins(reasons[reason]), "reason": reason}
        return made

    def _stock(self, section: str, fields: dict[str, Any], path: YamlPath) -> Iterator[_Clause]:
        """What a word, or rules, say in a section."""
        name = section.partition(".")[2]
        word = fields["say"]
        words = word if isinstance(word, list) and word else [word]
        stock = self._stock_words(section)
        names = _strings(fields.get("of")) or ([name] if name in self.kinds else [])
        if not isinstance(word, list):
            if not isinstance(word, str):
                self.problems.add(path, f"{quote(word)}; expected a word, a list of rules, or a clause with en and zh")
                return
            if word in stock and not any(rule.id == f"{name}.{word}" for rule in self.constraints):
                ids = _strings(fields.pop("rules", None)) or ()
                on = [rule for item in ids for rule in self._known(item, section, path)]
                sentence = self._sentence(stock[word], name, fields, path)
                yield {**(self._of_rules(on, section, sentence, path) if on else {}), **sentence}
                return
            if section == "products" and word in self.operator.products:
                yield {**self._takes("product", [word]), "check": "runs"}
                return
            if (found := self._taken(names, word, _strings(fields.get("products")))) is not None:
                yield from found
                return
        found_rules = [self._known(item, section, path) for item in words]
        if all(found_rules):
            yield self._of_rules([rule for rules in found_rules for rule in rules], section, fields, path)

    def _known(self, word: object, section: str, path: YamlPath) -> list[ConstraintModel]:
        """The rules that a word names; a mistake where it names none."""
        name = section.partition(".")[2]
        if not (found := self._rules(word, name)):
            known = [*self._stock_words(section), *(str(rule.id) for rule in self.constraints)]
            self.problems.known(str(word), known, path, f"word of the section {section}:")
        return found

    def _stock_words(self, section: str) -> Mapping[str, SentenceModel]:
        """The stock sentences of a section by their words."""
        return wording().sections.get("params" if section.partition(".")[2] in self.kinds else section, {})

    def _rules(self, word: object, name: str) -> list[ConstraintModel]:
        """Rules by an id, without the name of the parameter in that parameter's section, or by a word for several."""
        head, _, suffix = str(word).partition(".")
        ids = [f"{name}.{word}", str(word)]
        found = [rule for identifier in ids for rule in self.constraints if rule.id == identifier]
        if found or head not in _ROLES:
            return found[:1]
        ids = [f"{item.name}.{suffix}" for item in self.parameters if item.role in _ROLES[head]]
        return [rule for identifier in ids for rule in self.constraints if rule.id == identifier]

    def _sentence(self, sentence: SentenceModel, name: str, fields: dict[str, Any], path: YamlPath) -> _Clause:
        """A stock sentence with its placeholders filled; what fills them is taken from the fields of the entry."""
        written = {
            item.encode_name: value
            for item in _FIELDS_OF_SENTENCES
            if item.name != _IMPLIED and (value := getattr(sentence, item.name)) != item.default
        }
        made = {
            key: fill_placeholders(value, self._values(name, fields, "zh" if key == "zh" else "en"))
            for key, value in written.items()
        }
        for key in placeholders(made):
            self.problems.add(path, f"{quote(fields['say'])}: no {key}; add `{key}`")
        for key in (placeholders(written) - _FIELDS) & fields.keys():
            del fields[key]
        return made

    def _values(self, name: str, fields: Mapping[str, Any], language: str) -> dict[str, object]:
        """What the placeholders of a sentence stand for: the entry's own words first."""
        known = self._known_values.get((name, language))
        if known is None:
            known = self._known_values[name, language] = self._of_parameter(name, language)
        return {
            **known,
            "product": product_titles(_strings(fields.get("products")) or (), language),
            "of": fields.get("output"),
            **{key: value for key, value in fields.items() if key != "say"},
        }

    def _of_parameter(self, name: str, language: str) -> Mapping[str, object]:
        """Those that are the same in each sentence on a parameter."""
        tensors = [item.name for item in self.parameters if self.kinds[item.name] == "tensor"]
        outputs = [item.name for item in self.parameters if item.role in _ROLES["outputs"]]
        types = {item.name: item.type for item in self.parameters}
        const = [key for key, text in types.items() if key not in outputs and text.split()[0] == "const"]
        examples = self.operator.examples
        arguments = examples[0].arguments if examples else {}
        return {
            "name": name,
            "like": next((item.like for item in self.parameters if item.name == name), None),
            "type": types.get(name, ""),
            "first": tensors[0] if tensors else "",
            "last": outputs[-1] if outputs else "",
            "header": self.operator.header or "",
            "parameters": join_names(list(self.kinds), language),
            "outputs": join_names(outputs, language),
            "const": join_names(const, language),
            "call": "; ".join(f"{key} {_as_written(value)}" for key, value in arguments.items()),
        }

    def _taken(self, names: Sequence[str], word: str, on: Sequence[str] | None) -> list[_Clause] | None:
        """One sentence for each product and dtype, format or row that valid calls take; None for another word."""
        if word == "rows" and self.rows.parameters:
            return list(self._rows())
        if not names:
            return None
        if word in DTYPES:
            return [self._dtype(names, word, on)]
        if word in FORMATS:
            return [self._format(names[0], word, on)]
        if word == "formats":
            drawn = (item.formats for item in self.parameters if item.name == names[0])
            lists = self.sentences.by_product(next(drawn, None))
            formats = dict.fromkeys(name for row in lists.values() for name in row)
            where = {name: [product for product, row in lists.items() if name in row] for name in formats}
            everywhere = len(self.operator.products)
            return [self._format(names[0], name, on if len(on) < everywhere else None) for name, on in where.items()]
        if word == "words":
            listed_words = self._listed(names[0], "word") or ()
            return [
                self._takes("word", None, f'{names[0]} == "{text}"', name=names[0], word=text) for text in listed_words
            ]
        if word != "dtypes":
            return None
        lists = self._dtypes(names[0])
        if len({tuple(row) for row in lists.values()}) == 1 and len(lists) == len(self.operator.products):
            return [self._dtype(names, dtype, None) for dtype in next(iter(lists.values()))]
        stated = {product: row for product, row in lists.items() if not on or product in on}
        return [self._dtype(names, dtype, [product]) for product, row in stated.items() for dtype in row]

    def _takes(
        self, what: Taken, on: Sequence[str] | None, when: str | None = None, **fields: str | tuple[str, ...]
    ) -> _Clause:
        """The sentence on what valid calls take, on the products that list it; values show it in calls that do."""
        clause = {**self.sentences.accepts_sentence(what, on or (), **fields), **({"products": list(on)} if on else {})}
        return clause if when is None else {**clause, "check": "values", "when": when}

    def _format(self, name: str, word: str, on: Sequence[str] | None) -> _Clause:
        return self._takes("format", on, f"format({name}) == {word}", name=name, format=word)

    def _listed(self, name: str, kind: str) -> Any:  # noqa: ANN401 - a YAML value
        """What the first rule of a kind on a parameter lists; None where there is none."""
        rules = (rule.in_ for rule in self.constraints if rule.of == name and rule.kind == kind)
        return next(rules, None)

    def _dtype(self, names: Sequence[str], dtype: str, on: Sequence[str] | None) -> _Clause:
        """One dtype of a tensor, or of any of several, on the products that list it."""
        if on is None:
            on = [product for product, row in self._dtypes(names[0]).items() if dtype in row]
            on = [] if len(on) == len(self.operator.products) else on
        when = " or ".join(f"dtype({name}) == {dtype}" for name in names)
        return self._takes("dtype", on, when, name=tuple(names), dtype=dtype)

    def _dtypes(self, name: str) -> Mapping[str, Sequence[str]]:
        """The dtypes of a tensor by product, after its rule."""
        return self.sentences.by_product(self._listed(name, "dtype"))

    def _rows(self) -> Iterator[_Clause]:
        """One sentence for each product and row of `rows`, and one on all other rows."""
        names = self.rows.parameters
        columns = list(zip(*(row for rows in self.rows.by_product.values() for row in rows), strict=True))
        varying = [place for place, column in enumerate(columns) if len(set(column)) > 1]
        whole = [rule.id for rule in self.constraints if rule.kind == "dtype_rows"]
        for product, rows in self.rows.by_product.items():
            for row in rows:
                pairs = ", ".join(f"{name} {dtype}" for name, dtype in zip(names, row, strict=True))
                when = " and ".join(f"dtype({names[place]}) == {row[place]}" for place in varying)
                yield self._takes("row", [product], when, row=pairs)
            if whole:
                yield {**self._takes("rows", [product]), "constraints": whole}

    def _of_rules(
        self, rules: Sequence[ConstraintModel], section: str, fields: Mapping[str, Any], path: YamlPath
    ) -> _Clause:
        """A clause on rules: where it is stated follows from them, and what it says where they are of one kind."""
        made: _Clause = {"constraints": [rule.id for rule in rules]}
        on = rules[0].products or []
        if on and all(rule.products == on for rule in rules):
            made["products"] = on
        if all(rule.strength == "open" for rule in rules):
            made["certainty"] = "ambiguous"
        if {*LANGUAGES} <= fields.keys():
            return made
        stated = _strings(fields.get("products")) or made.get("products", ())
        texts = self.sentences.rules_sentence(rules, stated, is_error=section == "returns")
        self.problems.add_if(
            texts is None, path, f"{', '.join(made['constraints'])}: no stock sentence; write en and zh"
        )
        return {**made, **(texts or {})}


def _as_written(value: object) -> str:
    """An argument of an example as YAML has it."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _strings(value: object) -> list[str] | None:
    """A list of names; None for anything else, which the schema of a clause reports."""
    return value if isinstance(value, list) and value and all(isinstance(item, str) for item in value) else None
