"""Coverage maps: counts, what was never reached, and what cannot occur, in the plots and in the tables."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.reports.charts import LEAST
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_rows import CoverageMap
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.runs.possible import possible_cells
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.possible_cells import LAYOUTS
from tests.reports.synthetic import record, renamed, softmax_case, synthetic_run

SPECS = load_specs()


def of_rank(rank: int, seed: int) -> Case:
    case = softmax_case(seed)
    shape = (2,) * rank
    data = Data(recipe="normal", seed=seed)
    arguments = {**case.arguments, "dim": 0, "out": Tensor(shape, "FLOAT")}
    for name in ("gradOutput", "output"):
        arguments[name] = Tensor(shape, "FLOAT", data=data)
    return renamed(case, arguments=arguments)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Acceptance:
    """Softmax on Atlas training, which has no BF16: ranks 1 and 3, the latter often."""
    cases = [of_rank(1, 0), *(of_rank(3, seed) for seed in range(1, 32))]
    cases = [renamed(case, target=Target(product="atlas-training")) for case in cases]
    changes = {"target": Target(product="atlas-training")}
    return acceptance(
        [synthetic_run(tmp_path_factory.mktemp("map") / "run", list(map(record, cases)), changes=changes)]
    )


def map_of(report: Acceptance, kind: str) -> CoverageMap:
    [found] = [entry for entry in report.coverage if entry.kind == kind]
    return found


def cell(entry: CoverageMap, row: str, column: str) -> tuple[int, bool]:
    line, place = entry.rows.index(row), entry.columns.index(column)
    return entry.counts[line][place], entry.possible[line][place]


def test_what_was_reached_what_was_not_and_what_cannot_be(report: Acceptance) -> None:
    ranks = map_of(report, "rank")
    assert ranks.columns == tuple("012345678")
    assert ranks.rows == ("BF16", "FLOAT", "FLOAT16")
    assert cell(ranks, "FLOAT", "3") == (31, True)
    assert cell(ranks, "FLOAT", "1") == (1, True)
    assert cell(ranks, "FLOAT", "8") == (0, True)
    assert cell(ranks, "FLOAT16", "1") == (0, True)
    # The document wants at least one dimension, and its table for this product has no BF16.
    assert cell(ranks, "FLOAT", "0") == (0, False)
    assert cell(ranks, "BF16", "3") == (0, False)
    assert cell(map_of(report, "layout"), "FLOAT", "strided") == (0, True)
    sizes = map_of(report, "size")
    assert cell(sizes, "FLOAT16", sizes.columns[0]) == (0, True)
    assert cell(sizes, "BF16", sizes.columns[0]) == (0, False)


@pytest.mark.parametrize("operator", SPECS)
def test_whatever_a_document_s_product_has_can_occur(operator: str) -> None:
    spec = SPECS[operator]
    found = possible_cells(spec, Target(product=spec.products[-1]))
    assert found["contents"].cells
    assert found["rank"].cells
    assert {column for _, column in found["layout"].cells} <= set(LAYOUTS)
    assert found["rank"].reachable <= set(found["rank"].rows)


def test_what_was_reached_can_occur(faulty: Acceptance) -> None:
    for entry in faulty.coverage:
        for counts, possible in zip(entry.counts, entry.possible, strict=True):
            assert all(can for number, can in zip(counts, possible, strict=True) if number)


def test_the_table_says_how_often_each_cell_was_reached(report: Acceptance) -> None:
    section = render_html(report, sections=("coverage",)).partition("<main")[2]
    assert section.count('<table class="heat"') == len(report.coverage)
    impossible = sum(not can for entry in report.coverage for line in entry.possible for can in line)
    assert section.count("cannot occur</span>") == impossible
    assert 'lang="zh">不可能出现' in section
    reached = [number for entry in report.coverage for line in entry.counts for number in line]
    assert len(re.findall(r'<td class="n h[1-4]">', section)) == sum(number > 0 for number in reached)


def test_few_calls_are_a_number_and_no_map(report: Acceptance) -> None:
    few = replace(map_of(report, "rank"), counts=((0,) * 9, (LEAST - 1, *(0,) * 8), (0,) * 9))
    section = render_html(replace(report, coverage=(few,)), sections=("coverage",)).partition("<main")[2]
    assert "<table" not in section
    assert f"Valid calls judged: {LEAST - 1}, too few for a map." in section


def test_a_table_s_names_are_text(report: Acceptance) -> None:
    entry = map_of(report, "contents")
    hostile = replace(entry, columns=("$x<b>&amp;</b>", *entry.columns[1:]), rows=("<i>@@map.rank@@$", *entry.rows[1:]))
    section = render_html(replace(report, coverage=(hostile,)), sections=("coverage",)).partition("<main")[2]
    assert "<b>&" not in section
    assert "<i>@" not in section
    assert "$x&lt;b&gt;" in section


def test_what_a_campaign_has_covered_stands_beside_the_maps(tmp_path: Path, report: Acceptance) -> None:
    assert report.campaigns == ()
    assert "What campaigns have covered" not in render_html(report, sections=("coverage",))
    campaign = synthetic_run(tmp_path / "night", [record(softmax_case(2))], changes={"profile": "", "command": "fuzz"})
    document = json.loads((campaign / "summary.json").read_text(encoding="utf-8"))
    document["operators"]["aclnnSoftmaxBackward"]["coverage"] = {
        "constraints": {"met": 39, "of": 40, "apart": 0},
        "limits": {"met": 73, "of": 73, "apart": 31},
        "pairs": {"met": 1495, "of": 1497, "apart": 116},
    }
    (campaign / "summary.json").write_text(json.dumps(document), encoding="utf-8")
    [row] = acceptance([campaign]).campaigns
    assert (row.run, row.operator) == ("night", "aclnnSoftmaxBackward")
    assert row.sorts["limits"] == (73, 73, 31)
    page = render_html(acceptance([campaign]), sections=("coverage",))
    assert "What campaigns have covered" in page
    assert "模糊测试的覆盖情况" in page
    cells = re.findall(r'<td class="n">([^<]* / [^<]*)</td>', page)
    assert [re.sub(r"\s", "", cell) for cell in cells] == ["39/40", "73/73+31", "1495/1497+116"]
