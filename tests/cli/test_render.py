from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from aclnn_cts.cli.render import RepeatedView, TableView, TextLine, fill, show


@pytest.mark.parametrize(
    ("text", "fields", "filled"),
    [
        ("{a}", {"a": 0}, "0"),
        ("{a}", {"a": ""}, None),
        ("{a}", {"a": []}, None),
        ("{a}", {}, None),
        ("{a|none}", {"a": None}, "none"),
        ("{a.b.c}", {"a": {"b": {"c": 7}}}, "7"),
        ("{a.b}", {"a": 3}, None),
        ("{a}", {"a": ["x", 2]}, "x, 2"),
        ("{a:case}", {"a": 1}, "1 case"),
        ("{a:entry/entries}", {"a": ["x", "y"]}, "2 entries"),
        ("{a:case}", {"a": 0}, "0 cases"),
        ("{a:.1%}", {"a": 0.25}, "25.0%"),
        ("x[ and {a} more]", {"a": 0}, "x"),
        ("x[ and {a} more]", {"a": 2}, "x and 2 more"),
        ("x[{?a} yes][{!a} no]", {"a": True}, "x yes"),
        ("x[{?a} yes][{!a} no]", {}, "x no"),
        ("{?a}x", {"a": False}, None),
        ("{!a}x", {"a": ()}, "x"),
        ("shape [2, 3] of {a}", {"a": "{b}"}, "shape [2, 3] of {b}"),
    ],
)
def test_a_text_takes_the_fields_that_are_there(text: str, fields: Mapping[str, Any], filled: str | None) -> None:
    assert fill(text, fields) == filled


def test_what_a_field_holds_is_never_a_text_of_its_own() -> None:
    assert fill("[{a}]{b}", {"a": "[{c}]", "b": "{c}", "c": "secret"}) == "[{c}]{c}"


def test_json_and_text_come_from_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"name": "x", "rows": [{"a": number} for number in range(3)], "sizes": {"k": 1}}
    view = (
        TextLine("{name}", indent=2),
        RepeatedView("rows", ("{name} {a}",), most=2, title="all:"),
        TableView("sizes", {"KEY": "{key}", "VALUE": "{value}"}),
        RepeatedView("none", ("{a}",), title="nothing"),
    )
    show(document, view, as_json=True)
    assert json.loads(capsys.readouterr().out) == document
    show(document, view, {"name": "y"}, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        *("  y", "", "all:", "y 0", "y 1", "  and 1 more; --json has all"),
        *("KEY  VALUE", "k    1"),
    ]
