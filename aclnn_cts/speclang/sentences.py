"""Stock sentences in English and Chinese, from `wording.yaml`: on rules, and on what valid calls take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from aclnn_cts.speclang.package import products, wording
from aclnn_cts.speclang.schema import Bilingual

Rule = Mapping[str, Any]
"""A constraint of the full form."""
Taken: TypeAlias = Literal["product", "dtype", "row", "rows", "format", "word"]
"""What valid calls take, as `wording.yaml` calls it."""
_TOGETHER = re.compile(r"(?:broadcast|promote)\(([^()]*)\)")
LANGUAGES: tuple[Literal["en", "zh"], ...] = ("en", "zh")


def listed(names: Sequence[str], language: str) -> str:
    """Names in a sentence: `x, y and z`."""
    if language == "zh" or len(names) < 2:
        return "、".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def on_rule(rule: Rule, *, is_error: bool) -> Bilingual | None:
    """The stock sentence on a rule; None where there is none: loss of accuracy, and most of what is left open."""
    words = wording()
    if is_error and rule["strength"] == "listed":
        return words.errors.get(_kind(rule))
    by_strength = {"listed": words.rules, "limit": words.rules, "open": words.open_rules}
    return by_strength.get(rule["strength"], {}).get(_kind(rule))


def _kind(rule: Rule) -> str:
    """Which sentence tells of a rule: mostly that of its kind."""
    if rule["kind"] == "shape" and re.fullmatch(r"\[\*[A-Za-z_]\w*\]", str(rule.get("is"))):
        return "same_shape"
    if rule["kind"] == "shape" and re.fullmatch(rf"\[\*{_TOGETHER.pattern}\]", str(rule.get("is"))):
        return "broadcast_shape"
    if rule["kind"] in ("cast", "same_dtype") and _TOGETHER.search(str(rule.get("as"))):
        return f"{rule['kind']}_promoted"
    if rule["kind"] == "structure":
        return str(rule.get("as"))
    return "dims_of" if rule["kind"] == "dims" and "axes" in rule else str(rule["kind"])


@dataclass(frozen=True, slots=True)
class Sentences:
    """The sentences of one file, which read its products and tables."""

    products: Sequence[str]
    tables: Mapping[str, Mapping[str, Sequence[str]]]

    def on_rules(self, rules: Sequence[Rule], on: Sequence[str], *, is_error: bool) -> dict[str, str] | None:
        """What rules that differ in their parameters alone say, on products where some are named; None: no words.

        The sentence on a shape tells of its number of dimensions as well.
        """
        shaped = {rule["of"] for rule in rules if rule["kind"] == "shape"}
        rules = [rule for rule in rules if rule["kind"] != "rank" or rule["of"] not in shaped]
        texts = on_rule(rules[0], is_error=is_error)
        if texts is None or len({(_kind(rule), rule["strength"]) for rule in rules}) > 1:
            return None
        alone = [self._fields([rule], on, "en") for rule in rules]
        if any(
            len({each[key] for each in alone}) > 1 for key in alone[0] if key != "name" and f"{{{key}}}" in texts.en
        ):
            return None
        made: dict[str, str] = {}
        for language in LANGUAGES:
            opening = getattr(wording().rules["on"], language).format(product=titles(on, language)) if on else ""
            made[language] = opening + getattr(texts, language).format(**self._fields(rules, on, language))
        return made

    def takes(
        self,
        what: Taken,
        on: Sequence[str] = (),
        **fields: str | tuple[str, ...],
    ) -> dict[str, str]:
        """What valid calls take, on some products where they are named."""
        texts = wording().takes[what]
        if on and what in ("dtype", "format"):
            texts = wording().takes["dtype_on" if what == "dtype" else "format_on"]
        return {
            language: getattr(texts, language).format(
                product=titles(on, language),
                **{key: listed(text, language) if isinstance(text, tuple) else text for key, text in fields.items()},
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

    def _fields(self, rules: Sequence[Rule], on: Sequence[str], language: str) -> dict[str, str]:
        """What the placeholders of a sentence on rules stand for."""
        rule = rules[0]
        names = [
            name
            for item in rules
            for name in (item["of"] if isinstance(item.get("of"), list) else [item.get("of", "")])
        ]
        status = rule.get("status") or []
        together = _TOGETHER.search(str(rule.get("is", rule.get("as"))))
        return {
            "name": listed([str(name) for name in dict.fromkeys(names)], language),
            "other": listed([name.strip() for name in together[1].split(",")], language)
            if together is not None and rule["kind"] in ("shape", "broadcast", "promotion", "cast", "same_dtype")
            else str(rule.get("is", ""))[2:-1]
            if rule["kind"] == "shape"
            else str(rule.get("as", "")).replace(" or ", ", else " if language == "en" else "，否则 "),
            "axes": listed([str(axis) for axis in rule.get("axes") or [rule.get("axis", "")]], language),
            "status": " / ".join(status if isinstance(status, list) else [status]),
            "values": self._values(rule, on, language),
        }

    def _values(self, rule: Rule, on: Sequence[str], language: str) -> str:
        """What a rule allows, in words."""
        if rule["kind"] in ("dtype", "format"):
            stated = on or self.products
            by_product = self.by_product(rule.get("in"))
            separator = ", " if language == "en" else "、"
            lists = {name: separator.join(values) for name, values in by_product.items() if name in stated}
            if len(set(lists.values())) <= 1:
                return next(iter(lists.values()), "")
            between, form = ("；", "{}（{}）") if language == "zh" else ("; ", "{} ({})")
            return between.join(form.format(values, titles([name], language)) for name, values in lists.items())
        if rule["kind"] == "layout" and isinstance(rule.get("in"), Mapping):
            comma, between = (", ", "; ") if language == "en" else ("、", "；")
            return between.join(f"{rank} {comma.join(names)}" for rank, names in rule["in"].items())
        if "is" in rule:
            return str(rule["is"])
        bounds = rule.get("in")
        if rule["kind"] == "word" and isinstance(bounds, list):
            return (", " if language == "en" else "、").join(f'"{word}"' for word in bounds)
        low, high = bounds if isinstance(bounds, list) and len(bounds) == 2 else (None, None)
        if low == high:
            return str(low)
        if low is None:
            return f"at most {high}" if language == "en" else f"不超过 {high}"
        if high is None:
            return f"at least {low}" if language == "en" else f"不小于 {low}"
        return f"{low} to {high}" if language == "en" else f"{low} 至 {high}"


def titles(names: Sequence[str], language: str) -> str:
    """Products by the names that documents give them."""
    known = products()
    return listed([getattr(known[name].title, language) if name in known else name for name in names], language)
