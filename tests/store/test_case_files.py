from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.trial import Trial
from aclnn_cts.store.case_files import CaseEntry, read_case_file, read_entries, write_case_file
from aclnn_cts.store.output_file import OutputFile
from tests.support.build_records import make_record

TRIAL = make_record(1).trial
CASE = Case(operator="aclnnX", arguments={"x": Tensor((2,), "FLOAT"), "n": 3})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    assert write_case_file(OutputFile(path), [TRIAL, CASE]) == 2
    first, second = read_case_file(path)
    assert (first.where, second.where) == (f"{path}:1", f"{path}:2")
    assert isinstance(first.content, Trial)
    assert first.content.id == TRIAL.id
    assert second.content == CASE
    assert [file.name for file in tmp_path.iterdir()] == ["cases.jsonl"]


def test_one_document_a_file(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(json.dumps(case_to_json(CASE), indent=2), encoding="utf-8")
    [entry] = read_case_file(path)
    assert (entry.where, entry.content) == (str(path), CASE)


def test_blank_lines_count_and_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(f"\n{json.dumps(case_to_json(CASE))}\n\n", encoding="utf-8")
    assert [entry.where for entry in read_case_file(path)] == [f"{path}:2"]


GOOD = json.dumps(case_to_json(CASE))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.json", "", "c.json: empty; expected one JSON object"),
        ("c.jsonl", "\n \n", "c.jsonl: empty; expected one JSON object a line"),
        ("c.json", "{", "c.json: not valid JSON"),
        ("c.json", f"{GOOD}\n{GOOD}", "c.json: several lines, each with a JSON object; name such a file *.jsonl"),
        ("c.json", "[" * 100_000, "c.json: not valid JSON"),
        ("c.jsonl", f"{GOOD}\n{{", "c.jsonl:2: not valid JSON"),
        ("c.jsonl", f"{GOOD}\n[]", "c.jsonl:2: $: expected an object"),
        ("c.jsonl", '{"format": "x"}', "c.jsonl:1: $.format: 'x'; expected 'aclnn-cts/case/1'"),
        ("c.json", '"\ud800"', "c.json: not valid JSON"),
        ("c.json", " " * 3000, "c.json: longer than 2000 bytes; describe large data by a recipe"),
        ("c.jsonl", f"{GOOD}\n{' ' * 3000}", "c.jsonl:2: longer than 2000 bytes"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    limit = 1 << 20 if content.startswith("[[") else 2000
    with pytest.raises(UsageError) as caught:
        list(read_case_file(path, limit=limit))
    assert str(caught.value).startswith(f"{tmp_path}/{message}")


def test_what_is_no_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing\.json: cannot be read: No such file or directory; expected"):
        list(read_case_file(tmp_path / "nothing.json"))
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        list(read_case_file(tmp_path))


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    write_case_file(OutputFile(path), [CASE])
    before = path.read_bytes()

    def broken() -> Iterator[Case]:
        yield CASE
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_case_file(OutputFile(path, force=True), broken())
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["cases.jsonl"]


def test_no_space_is_an_error_of_the_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(HarnessError, match=r"a\.jsonl: cannot be written: No space left on device; free space"):
        write_case_file(OutputFile(tmp_path / "a.jsonl"), [CASE])
    assert list(tmp_path.iterdir()) == []


def test_the_lines_after_a_wrong_one_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{GOOD}\n{{\n[]\n{' ' * 3000}{GOOD}\n{GOOD}\n", encoding="utf-8")
    entries = list(read_entries(path, limit=2000))
    assert [isinstance(entry, UsageError) for entry in entries] == [False, True, True, True, False]
    last = entries[-1]
    assert isinstance(last, CaseEntry)
    assert last.where == f"{path}:5"
