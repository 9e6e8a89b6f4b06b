from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.cli.report import FORMS
from aclnn_cts.reports.signing import browser
from tests.cli.conftest import Called
from tests.reports.synthetic import record, softmax_case, synthetic_run

Call = Callable[..., Called]


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    return synthetic_run(tmp_path / "run", [record(softmax_case())])


def test_a_file_is_of_the_form_that_its_suffix_says(call: Call, run_path: Path, tmp_path: Path) -> None:
    starts = {
        ".html": b"<!DOCTYPE html>",
        ".sarif": b"{",
        ".xml": b"<?xml",
        ".csv": b"\xef\xbb\xbfrun,",
        ".xlsx": b"PK",
        ".md": b"## ",
    }
    for suffix, start in starts.items():
        out = tmp_path / "made" / f"report{suffix}"
        called = call("report", str(run_path), "-o", str(out))
        assert (called.code, called.out, called.err) == (0, "", f"{out}: written\n")
        assert out.read_bytes().startswith(start)
    assert len(list((tmp_path / "made").iterdir())) == len(starts)


def test_a_folder_takes_all_forms(call: Call, run_path: Path, tmp_path: Path) -> None:
    assert call("report", str(run_path), "-o", str(tmp_path / "all")).code == 0
    printed = {"signing.pdf"} if browser() is None else set()
    assert {path.name for path in (tmp_path / "all").iterdir()} == {form.file for form in FORMS.values()} - printed
    assert call("report", str(run_path), "-o", str(tmp_path / "two"), "--format", "junit,sarif").code == 0
    assert {path.name for path in (tmp_path / "two").iterdir()} == {"junit.xml", "report.sarif"}


def test_a_form_may_be_named(call: Call, run_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.md"
    assert call("report", str(run_path), "-o", str(out), "--format", "outline").code == 0
    assert "测试结论" in out.read_text(encoding="utf-8")


def test_the_language_is_the_one_that_it_opens_in(call: Call, run_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert call("report", str(run_path), "-o", str(out), "--lang", "zh").code == 0
    assert '<html lang="zh">' in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ("-o", "x.json"),
            "x.json: no format has this suffix; expected one of .html, .pdf, .xml, .sarif, .csv, ",
        ),
        (("-o", "x.html", "--format", "html,csv"), "give a folder"),
        (("-o", "x", "--format", "htm"), "did you mean 'html'"),
        (("-o", "x.html", "--baseline", "nowhere"), "nowhere: holds no manifest.json"),
        (("-o", "x.html", "--waivers", "nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_mistakes_are_said_and_nothing_is_written(
    call: Call, run_path: Path, tmp_path: Path, words: tuple[str, ...], expected: str
) -> None:
    before = set(tmp_path.iterdir())
    called = call("report", str(run_path), *words)
    assert called.code == 2
    assert expected in called.err
    assert set(tmp_path.iterdir()) == before


def test_what_is_no_run_is_refused(call: Call, tmp_path: Path) -> None:
    called = call("report", str(tmp_path), "-o", "x.html")
    assert called.code == 2
    assert "holds no manifest.json; expected the directory that a run wrote" in called.err
    assert call("report", "-o", "x.html").code == 2


def test_a_missing_library_is_named_with_its_extra(call: Call, run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    monkeypatch.delitem(sys.modules, "aclnn_cts.reports.workbook", raising=False)
    called = call("report", str(run_path), "-o", "x.xlsx")
    assert called.code == 3
    assert "needs xlsxwriter, which is not installed; pip install 'aclnn-cts[report]'" in called.err


def test_a_killed_run_can_be_reported(call: Call, tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "killed", [record(softmax_case())], finish=False)
    assert call("report", str(run), "-o", "x.md").code == 0
    assert "did not come to its end" in (tmp_path / "x.md").read_text(encoding="utf-8")
