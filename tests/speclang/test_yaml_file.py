"""The YAML that is read: data alone, bounded, and nothing that means something else than it says."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclnn_cts.core.outside import YAML_BYTES, YAML_DEPTH
from aclnn_cts.speclang.yaml_file import YamlError, parse_yaml, read_yaml


def content(text: str) -> object:
    return parse_yaml(text, name="f.yaml").content


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("-7", -7),
        ("+7", 7),
        ("0", 0),
        ("2147483647", 2147483647),
        ("1" * 40, int("1" * 40)),
        ("1.5", 1.5),
        ("1.0e-6", 1e-6),
        (".5", 0.5),
        ("1.", 1.0),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("True", "True"),
        ("NULL", "NULL"),
        ("12:30:45", "12:30:45"),
        ("2024-01-02", "2024-01-02"),
        ('"1"', "1"),
        ("'true'", "true"),
        ("<<", "<<"),
        ("=", "="),
        ("1.2.3", "1.2.3"),
        ("1e5", 1e5),
    ],
)
def test_scalars_are_those_of_the_core_schema(text: str, expected: object) -> None:
    found = content(f"a: {text}")
    assert found == {"a": expected}
    assert type(found["a"]) is type(expected)


def test_nan_is_read() -> None:
    found = content("a: .nan")
    assert isinstance(found, dict)
    assert math.isnan(found["a"])


@pytest.mark.parametrize("text", ["0x10", "-0x10", "0o17", "0b101", "017", "1_000", "-017", "0xFF"])
def test_numbers_that_others_read_otherwise_are_refused(text: str) -> None:
    with pytest.raises(YamlError) as caught:
        content(f"a:\n  - {text}")
    assert str(caught.value) == (
        f"f.yaml:2: {text!r} is no decimal number that is taken here; quote it or write it in decimal"
    )
    assert content(f'a: "{text}"') == {"a": text}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &b 1", "f.yaml:1: anchor &b; anchors and aliases are refused"),
        ("a: &b [1]\nc: 2", "f.yaml:1: anchor &b"),
        ("a: 1\nb: *a", "f.yaml:2: alias *a; anchors and aliases are refused"),
        (
            "a: !!python/object/apply:os.system ['true']",
            "f.yaml:1: tag tag:yaml.org,2002:python/object/apply:os.system",
        ),
        ("a: !!str 1", "f.yaml:1: tag tag:yaml.org,2002:str; tags are refused"),
        ("a: !own 1", "f.yaml:1: tag !own"),
        ("!!map {a: 1}", "f.yaml:1: tag tag:yaml.org,2002:map"),
        ("a: 1\nb: 2\na: 3", "f.yaml:3: key 'a' stands twice; keep one"),
        ("a:\n  b: 1\n  b: 2", "f.yaml:3: key 'b' stands twice"),
        ("{a: 1, a: 2}", "f.yaml:1: key 'a' stands twice"),
        ("a: 1\n---\nb: 2", "f.yaml:2: a second document"),
        ("? [1]\n: 2", "f.yaml:1: a key that is a list or a mapping"),
        ("? {a: 1}\n: 2", "f.yaml:1: a key that is a list or a mapping"),
        ("a: [1", "f.yaml:2: not valid YAML"),
        ("a: b: c", "f.yaml:1: not valid YAML"),
        ("a:\n\t- 1", "f.yaml:2: not valid YAML"),
        ("a: \x00", "f.yaml:1: not valid YAML"),
        ("%YAML 9.9\n---\na: 1", "f.yaml:1: not valid YAML"),
    ],
)
def test_what_is_refused_names_its_line(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        content(text)
    assert str(caught.value).startswith(message)


def test_depth_is_bounded_without_the_stack() -> None:
    assert content("[" * YAML_DEPTH + "]" * YAML_DEPTH) is not None
    for text in ("[" * (YAML_DEPTH + 1) + "]" * (YAML_DEPTH + 1), "{a: " * 5000 + "1" + "}" * 5000):
        with pytest.raises(YamlError, match=f"f.yaml:1: nested deeper than {YAML_DEPTH} levels"):
            content(text)


def test_numbers_that_no_type_holds_are_refused() -> None:
    with pytest.raises(YamlError, match="no decimal number"):
        content("a: " + "9" * 5000)
    for text in ("1e999", "9" * 400 + ".0"):
        with pytest.raises(YamlError, match="larger than any double"):
            content(f"a: {text}")


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    with pytest.raises(YamlError, match=r"a\.yaml: cannot be read: No such file or directory"):
        read_yaml(path)
    path.write_bytes(b"a: \xff")
    with pytest.raises(YamlError, match="byte 3 is not UTF-8"):
        read_yaml(path)
    path.write_bytes(b"#" * (YAML_BYTES + 1))
    with pytest.raises(YamlError, match=f"longer than {YAML_BYTES} bytes"):
        read_yaml(path)
    with pytest.raises(YamlError, match="cannot be read"):
        read_yaml(tmp_path)
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: [1,\r\n 2]\r\n")
    assert read_yaml(path).content == {"a": 1, "b": [1, 2]}


def test_lines_are_those_of_the_file() -> None:
    file = parse_yaml("a:\n  - b: 1\n    c: 2\n  - {d: [3,\n     4]}\n", name="f.yaml")
    assert file.location_of(("a", 0, "c")) == "f.yaml:3"
    assert file.location_of(("a", 1, "d", 1)) == "f.yaml:5"
    assert file.location_of(("a", 1, "d", 7, "nowhere")) == "f.yaml:4"
    assert file.location_of(("nowhere",)) == "f.yaml:1"


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab:-[]{},&*!|>\"'#%@`?\n 01.", max_size=40))
def test_any_text_is_values_or_a_message(text: str) -> None:
    try:
        file = parse_yaml(text, name="f.yaml")
    except YamlError as error:
        assert str(error).startswith("f.yaml:")  # noqa: PT017 - either end is right
    else:
        assert isinstance(file.content, (dict, list, str, int, float, bool, type(None)))
