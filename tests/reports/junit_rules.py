"""The element rules of JUnit XML as CI systems read it (the XSD of Jenkins' xUnit plugin, and what pytest writes)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

_COUNT, _TEXT, _NAME = r"\d+", r"(?s).*", r"(?s).+"
_SECONDS, _MOMENT = r"\d+(\.\d+)?", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"


@dataclass(frozen=True, slots=True)
class Rule:
    """Attributes that must stand and that may, with what they hold; children, with how many there may be."""

    needed: Mapping[str, str]
    allowed: Mapping[str, str]
    children: Mapping[str, int | None]
    """None: any number."""
    text: bool = False


_COUNTS = dict.fromkeys(("tests", "failures", "errors"), _COUNT)
_TOLD = {"message": _TEXT, "type": _TEXT}

RULES: Mapping[str, Rule] = {
    "testsuites": Rule({}, {"name": _TEXT, "time": _SECONDS, "skipped": _COUNT} | _COUNTS, {"testsuite": None}),
    "testsuite": Rule(
        {"name": _NAME} | _COUNTS,
        {"skipped": _COUNT, "time": _SECONDS, "timestamp": _MOMENT, "hostname": _NAME, "id": _TEXT, "package": _TEXT},
        {"properties": 1, "testcase": None, "system-out": 1, "system-err": 1},
    ),
    "properties": Rule({}, {}, {"property": None}),
    "property": Rule({"name": _NAME, "value": _TEXT}, {}, {}),
    "testcase": Rule(
        {"name": _NAME, "classname": _NAME},
        {"time": _SECONDS, "file": _TEXT, "line": _COUNT},
        {"properties": 1, "skipped": 1, "error": 1, "failure": 1, "system-out": 1, "system-err": 1},
    ),
    "failure": Rule({"type": _NAME}, _TOLD, {}, text=True),
    "error": Rule({"type": _NAME}, _TOLD, {}, text=True),
    "skipped": Rule({}, _TOLD, {}, text=True),
    "system-out": Rule({}, {}, {}, text=True),
    "system-err": Rule({}, {}, {}, text=True),
}
_ENDS = ("failure", "error", "skipped")


def problems(root: Element) -> list[str]:
    """What is against the rules; nothing for a document that keeps them."""
    found = [] if root.tag == "testsuites" else [f"the root is <{root.tag}>"]
    return [*found, *_element(root), *_counts(root)]


def _element(node: Element) -> Iterator[str]:
    rule = RULES.get(node.tag)
    if rule is None:
        yield f"<{node.tag}> is unknown"
        return
    yield from _attributes(node, rule)
    if not rule.text and (node.text or "").strip():
        yield f"<{node.tag}> holds text"
    yield from _children(node, rule)
    for child in node:
        yield from _element(child)


def _attributes(node: Element, rule: Rule) -> Iterator[str]:
    for name in rule.needed.keys() - node.attrib.keys():
        yield f"<{node.tag}> has no {name}"
    for name, value in node.attrib.items():
        form = rule.needed.get(name) or rule.allowed.get(name)
        if form is None:
            yield f"<{node.tag}> has an unknown attribute {name}"
        elif not re.fullmatch(form, value):
            yield f"<{node.tag} {name}={value!r}>"


def _children(node: Element, rule: Rule) -> Iterator[str]:
    tags = [child.tag for child in node]
    for tag in dict.fromkeys(tags):
        most = rule.children.get(tag, 0)
        if most is not None and tags.count(tag) > most:
            yield f"<{node.tag}> holds {tags.count(tag)} <{tag}>"
    order = [list(rule.children).index(tag) for tag in tags if tag in rule.children]
    if order != sorted(order):
        yield f"<{node.tag}> holds its children in another order: {tags}"
    if node.tag == "testcase" and sum(tags.count(tag) for tag in _ENDS) > 1:
        yield "<testcase> has several ends"


def _counts(root: Element) -> Iterator[str]:
    for suite in (root, *root.iter("testsuite")):
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if suite.get(name) not in (None, str(len(list(suite.iter(tag))))):
                yield f"<{suite.tag} {name}={suite.get(name)!r}> and {len(list(suite.iter(tag)))} <{tag}>"
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    if len(names) != len(set(names)):
        yield "two tests have one name"
