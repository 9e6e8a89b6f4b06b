"""`matrix`: runs side by side, and the evidence behind each verdict."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.reports.matrix import MatrixRun, matrix_bytes, matrix_of
from aclnn_cts.reports.model.build import acceptance
from tests.cli.conftest import Called
from tests.reports.synthetic import record, softmax_case, synthetic_run

Call = Callable[..., Called]


def test_a_verdict_opens_its_evidence(call: Call, tmp_path: Path) -> None:
    runs = [synthetic_run(tmp_path / name, [record(softmax_case())]) for name in ("one", "two")]
    out = tmp_path / "pages"
    called = call("matrix", *map(str, runs), "-o", str(out))
    assert (called.code, called.out) == (0, "")
    assert "operators 1, implementations 1, runs 2" in called.err
    page = (out / "index.html").read_text(encoding="utf-8")
    addresses = re.findall(r'<a class="[\w-]+" href="([^"#]+)#([^"]+)"', page)
    assert len(addresses) == 2, "the newest run, and the one before"
    for file, anchor in addresses:
        assert f'id="{anchor}"' in (out / file).read_text(encoding="utf-8")
    document = json.loads((out / "matrix.json").read_text(encoding="utf-8"))
    [cell] = document["cells"]
    assert (cell["operator"], len(cell["runs"])) == ("aclnnSoftmaxBackward", 2)


def test_pages_of_earlier_runs_are_removed_and_files_of_others_stay(call: Call, tmp_path: Path) -> None:
    runs = [str(synthetic_run(tmp_path / name, [record(softmax_case())])) for name in ("one", "two")]
    out = tmp_path / "pages"
    assert call("matrix", *runs, "-o", str(out)).code == 0
    (out / "03-mine.html").write_text("mine", encoding="utf-8")
    assert call("matrix", runs[1], "-o", str(out)).code == 0
    assert {path.name for path in out.iterdir()} == {"index.html", "matrix.json", "01-two.html", "03-mine.html"}


def test_runs_are_named_by_time_and_one_without_a_summary_is_marked(call: Call, tmp_path: Path) -> None:
    runs = [synthetic_run(tmp_path / name, [record(softmax_case())]) for name in ("one", "two")]
    for run in runs:
        (run / "summary.json").unlink()
    out = tmp_path / "pages"
    assert call("matrix", *map(str, runs), "-o", str(out)).code == 0
    page = (out / "index.html").read_text(encoding="utf-8")
    # Neither the newest nor the earlier one has the colour of a verdict.
    assert re.findall(r'<a class="([\w-]+)"', page) == ["unfinished", "unfinished"]
    assert "<b>did not end</b></a>\n<small>so far: conforms, 100%" in page
    assert re.search(r">\d\d-\d\d \d\d:\d\d \(did not end\)</a>", page)


def test_a_matrix_in_chinese(call: Call, tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "run", [record(softmax_case())])
    assert call("matrix", str(run), "-o", str(tmp_path / "pages"), "--lang", "zh").code == 0
    assert "各实现的算子结论" in (tmp_path / "pages" / "index.html").read_text(encoding="utf-8")


def test_a_run_that_did_not_end_is_marked_in_chinese(call: Call, tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "run", [record(softmax_case())])
    (run / "summary.json").unlink()
    assert call("matrix", str(run), "-o", str(tmp_path / "pages"), "--lang", "zh").code == 0
    page = (tmp_path / "pages" / "index.html").read_text(encoding="utf-8")
    assert '<a class="unfinished"' in page
    assert "<b>未正常结束</b></a>\n<small>截至中断：符合，100%" in page


def test_a_folder_that_is_no_run_is_refused(call: Call, tmp_path: Path) -> None:
    called = call("matrix", str(tmp_path), "-o", str(tmp_path / "pages"))
    assert called.code == 2
    assert str(tmp_path) in called.err


@pytest.fixture(name="run")
def make_run(tmp_path: Path) -> MatrixRun:
    [facts] = acceptance([synthetic_run(tmp_path / "run", [record(softmax_case())])]).runs
    return MatrixRun(run=facts, page="run.html")


def changed(item: MatrixRun, **fields: object) -> MatrixRun:
    manifest = msgspec.structs.replace(item.run.manifest, **fields)
    return dataclasses.replace(item, run=dataclasses.replace(item.run, manifest=manifest))


def test_implementations_have_columns_and_the_newest_run_comes_first(run: MatrixRun) -> None:
    later = changed(run, started="2030-01-01T00:00:00+00:00")
    other = changed(run, adapter="another")
    found = matrix_of([run, other, later])
    assert [column.adapter for column in found.columns] == sorted([run.run.manifest.adapter, "another"])
    [cells] = [cells for cells in found.cells.values() if len(cells) == 2]
    assert cells[0].started == "2030-01-01T00:00:00+00:00"


@pytest.mark.parametrize("how", [{"finished": False}, {"interrupted": True}])
def test_a_run_that_was_killed_or_interrupted_did_not_end(run: MatrixRun, how: dict[str, bool]) -> None:
    unfinished = dataclasses.replace(run, run=dataclasses.replace(run.run, **how))  # type: ignore[arg-type]  # flags
    [cells] = matrix_of([unfinished]).cells.values()
    assert [cell.finished for cell in cells] == [False]


def test_text_from_outside_is_no_markup(run: MatrixRun) -> None:
    page = matrix_bytes(matrix_of([changed(run, adapter="<script>alert(1)</script>")]), "en").decode()
    assert "<script" not in page
