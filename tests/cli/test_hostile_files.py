"""Files that are too large, too deep or no files at all, and values beyond every C type: one short message, code 2."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.core import outside
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.outside import (
    JSON_CONTAINERS,
    JSON_DEPTH,
    JSON_DIGITS,
    JSON_ITEMS,
    MESSAGE_LIMIT,
    YAML_ITEMS,
    read_outside,
    strict_json,
)
from aclnn_cts.core.trial import Trial, trial_to_json
from tests.cli.conftest import Called, named
from tests.reports.synthetic import softmax_case

Call = Callable[..., Called]
FIXTURES = Path(__file__).parents[1] / "fixtures"
LONGEST = 1500
"""Characters of a message: a value of 200, and the words that were expected."""


def refused(called: Called) -> str:
    """The one message of a command that refused its input."""
    assert called.code == 2, str(called)
    [message, *rest] = called.err.splitlines()
    assert message.startswith("error: ")
    assert len(message) < LONGEST
    assert rest in ([], ["0 cases answered, 1 mistake in the files"])
    return message


def case_with(place: str, value: Any) -> dict[str, Any]:
    """A sound case of softmax, with one place changed: `gradOutput.strides`, say."""
    document = case_to_json(softmax_case())
    name, _, key = place.partition(".")
    document["arguments"][name]["tensor"][key] = value
    return document


def written(path: Path, document: Any) -> str:
    path.write_text(json.dumps(document))
    return str(path)


@named(
    ("place", "value"),
    [
        ("many_huge_sizes", "gradOutput.shape", [2**62] * 400),
        ("huge_sizes", "gradOutput.shape", [2**62] * 3),
        ("thousands_of_digits", "gradOutput.shape", [10**JSON_DIGITS]),
        ("beyond_int64", "gradOutput.shape", [10**30]),
        ("many_dimensions", "gradOutput.shape", [1] * 300_000),
        ("stride_of_minus_one", "gradOutput.strides", [3, -1]),
        ("stride_of_zero", "out.strides", [0, 1]),
        ("negative_offset", "gradOutput.offset", -5),
        ("small_storage", "gradOutput.storage_shape", [1]),
        ("negative_size", "out.shape", [2, -3]),
        ("negative_size_of_an_input", "gradOutput.shape", [-2, -3]),
        ("no_data", "gradOutput.data", None),
        ("huge_seed", "gradOutput.data", {"recipe": "normal", "seed": 10**30}),
        ("huge_axis", "gradOutput.data", {"recipe": "softmax", "axis": 2**63}),
        ("list_as_format", "gradOutput.format", ["ND"]),
        ("list_as_dtype", "gradOutput.dtype", [[]]),
    ],
)
def test_repro_refuses_what_no_program_can_hold(call: Call, tmp_path: Path, place: str, value: Any) -> None:
    file = written(tmp_path / "case.json", case_with(place, value))
    refused(call("repro", file, "-o", str(tmp_path / "repro.cpp")))
    assert not (tmp_path / "repro.cpp").exists()


def test_calls_before_a_trial_are_checked_like_its_own(call: Call, tmp_path: Path) -> None:
    document = trial_to_json(Trial("values", softmax_case()))
    earlier = case_to_json(softmax_case())
    del earlier["arguments"]["out"]
    file = written(tmp_path / "trial.json", document | {"after": [{"case": earlier}]})
    for words in (("validate", file), ("repro", file, "-o", str(tmp_path / "x.cpp"))):
        assert "($.after[0].case): $.arguments.out: missing" in refused(call(*words))
    other = written(
        tmp_path / "other.json", document | {"after": [{"case": case_to_json(softmax_case(product="atlas-training"))}]}
    )
    assert "$.after[0].case: made for another target" in refused(call("validate", other))


def test_validate_refuses_an_unknown_check(call: Call, tmp_path: Path) -> None:
    file = written(tmp_path / "trial.json", trial_to_json(Trial("valuse", softmax_case())))
    assert "did you mean 'values'?" in refused(call("validate", file))


@named(
    ("text", "key"),
    [
        ("top", '{"format": "aclnn-cts/case/1", "format": "aclnn-cts/case/1"}', "format"),
        ("spelled_otherwise", '{"a": 1, "\\u0061": 2}', "a"),
        ("inside", '{"x": [{"shape": [1], "y": {}, "shape": [2]}]}', "shape"),
    ],
)
def test_a_key_that_stands_twice_is_refused(call: Call, tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "case.json").write_text(text)
    assert f"the key '{key}' stands twice" in refused(call("validate", str(tmp_path / "case.json")))


@named(
    ("ranges", "reason"),
    [
        ("beyond_doubles", [0, 10**399], "no recipe"),
        ("one_beyond_doubles", 10**399, "larger than any double"),
        ("beyond_recipes", [-1e308, 0.25], "no recipe reaches so far"),
    ],
)
def test_atk_ranges_beyond_everything_are_not_carried_over(
    call: Call, tmp_path: Path, ranges: Any, reason: str
) -> None:
    [entry, *_] = json.loads((FIXTURES / "atk/softmax.json").read_bytes())
    entry["inputs"][0]["range_values"] = ranges
    file = written(tmp_path / "atk.json", [entry])
    called = call("import-atk", file, "-o", str(tmp_path / "cases.jsonl"), "--json")
    assert called.code == 0
    assert reason in called.lines[0]["reason"]


def test_atk_words_that_are_lists_are_not_carried_over(call: Call, tmp_path: Path) -> None:
    [entry, *_] = json.loads((FIXTURES / "atk/softmax.json").read_bytes())
    entry["inputs"][0] |= {"format": ["ND"], "type": ["tensor"]}
    file = written(tmp_path / "atk.json", [entry])
    called = call("import-atk", file, "-o", str(tmp_path / "cases.jsonl"), "--json")
    assert (called.code, called.lines[-1]["not_carried_over"]) == (0, 1)


def test_nul_in_the_path_of_a_pinned_case(call: Call, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(
        "subject: s\nwaivers:\n  - {id: a, reason: r, owner: o, expiry: 2099-01-01,"
        ' scope: {adapter: torch, kind: value, check: values}, cases: ["a\\0b"]}\n'
    )
    called = call("run", "--adapter", "reference", "--waivers", str(tmp_path / "w.yaml"), "-o", str(tmp_path / "run"))
    assert "NUL" in refused(called)


@named(
    ("text", "message"),
    [
        ("word", b'{"format": "' + b"x" * 20_000_000 + b'"}', "$.format: 'xxx"),
        ("operator", b'{"format": "aclnn-cts/case/1", "operator": "' + b"x" * 20_000_000 + b'"}', "$.arguments: None"),
        ("objects", b"[" + b"{}," * 1_600_000 + b"{}]", f"more than {JSON_CONTAINERS} lists and objects"),
        ("brackets", b"[" * 500_000, "not valid JSON"),
        ("deep", b"[" * (JSON_DEPTH + 1) + b"]" * (JSON_DEPTH + 1), f"nested deeper than {JSON_DEPTH} levels"),
        ("items", b"[" + b"0," * (JSON_ITEMS + 1) + b"0]", f"more than {JSON_ITEMS} items"),
        ("digits", b"[" + b"9" * (JSON_DIGITS + 1) + b"]", f"a number of more than {JSON_DIGITS} digits"),
        ("newlines", b"\n" * 60_000_000, "empty"),
    ],
)
def test_size_is_bounded_before_anything_is_built(call: Call, tmp_path: Path, text: bytes, message: str) -> None:
    (tmp_path / "case.json").write_bytes(text)
    assert message in refused(call("validate", str(tmp_path / "case.json")))


def test_empty_lines_are_bounded(call: Call, tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_bytes(b"\n" * 60_000_000)
    assert "more than 100000 empty lines" in refused(call("validate", str(tmp_path / "cases.jsonl")))


def test_brackets_in_strings_are_no_depth() -> None:
    assert strict_json(json.dumps(["[" * 500, '\\"[' * 50]).encode(), where="f") == ["[" * 500, '\\"[' * 50]


def test_a_spec_of_unknown_keys_has_bounded_messages(call: Call, tmp_path: Path) -> None:
    (tmp_path / "keys.yaml").write_text("".join(f"k{number}: 1\n" for number in range(80_000)))
    called = call("spec", "lint", str(tmp_path / "keys.yaml"))
    assert called.code == 1
    assert len(called.out.splitlines()) <= MESSAGE_LIMIT + 1
    assert max(map(len, called.out.splitlines())) < LONGEST


def test_a_yaml_file_of_too_many_values(call: Call, tmp_path: Path) -> None:
    (tmp_path / "items.yaml").write_text("x:\n" + "- 1\n" * (YAML_ITEMS + 1))
    called = call("spec", "lint", str(tmp_path / "items.yaml"))
    assert f"more than {YAML_ITEMS} values" in called.out


def test_a_pipe_that_nobody_writes_to_ends_with_a_message(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "SILENCE_SECONDS", 0.05)
    os.mkfifo(tmp_path / "pipe.json")
    assert "nothing came for 0.05 s" in refused(call("validate", str(tmp_path / "pipe.json")))
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "nothing came" in call("spec", "lint", str(tmp_path / "pipe.yaml")).out


def test_a_pipe_with_a_writer_is_read(call: Call, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    line = json.dumps(case_to_json(softmax_case())).encode() + b"\n"
    writer = threading.Thread(target=lambda: pipe.write_bytes(line * 2000))
    writer.start()
    called = call("validate", "--json", str(pipe))
    writer.join()
    assert (called.code, len(called.lines)) == (0, 2000)


@pytest.mark.skipif(sys.platform != "linux", reason="devices of Linux")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/null"])
def test_a_device_is_no_input(call: Call, device: str) -> None:
    assert "it is a device" in refused(call("validate", device))


def test_a_limit_is_one_byte_exact(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    assert read_outside(tmp_path / "f", limit=3, expected="three bytes") == b"abc"
    with pytest.raises(Exception, match="longer than 2 bytes"):
        read_outside(tmp_path / "f", limit=2, expected="two bytes")


@pytest.mark.parametrize("place", ["origin.kind", "target.soc", "parameters.note"])
def test_a_text_that_no_call_has_use_for_is_bounded(call: Call, tmp_path: Path, place: str) -> None:
    trial = trial_to_json(Trial("values", softmax_case()))
    where, name = place.split(".")
    owner = trial if where == "parameters" else trial["case"]
    owner[where] = {**owner.get(where, {}), name: "x" * 20_000_000}
    said = refused(call("validate", written(tmp_path / "trial.json", trial)))
    assert re.search(rf"\$\.{re.escape(place)}: .*(at most|length <=) (10000|200)", said)
    assert len(said) < 1000
