"""Error against magnitude: from the records of a run to the panels and the table of the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import msgspec
import pytest

from aclnn_cts.bundle.records import record_from_json, record_schema, record_to_json
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.reports.charts import LEAST, history, ratio_charts, spread_rows, spread_total
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.text import count_text
from aclnn_cts.store.run_directory import RunDirectory
from tests.reports.synthetic import record, softmax_case, synthetic_run


@pytest.fixture(scope="module")
def records(faulty_run: Path) -> list[Record]:
    with RunDirectory(faulty_run).results() as results:
        return list(results.records())


def test_failures_and_a_sample_are_counted_and_nothing_else(records: list[Record]) -> None:
    kinds = set()
    for item in records:
        sampled = int(item.trial_id[:2], 16) % 64 == 0
        for deviation in item.verdict.deviations:
            if deviation.magnitudes:
                assert item.verdict.result == Result.FAILED or sampled
                judged = tuple(map(sum, zip(*(entry.counts for entry in deviation.magnitudes), strict=True)))
                # Elements whose exact value is not finite have an error ratio and no magnitude.
                assert all(mine <= whole for mine, whole in zip(judged, deviation.histogram, strict=True))
                kinds.add((item.verdict.result, sampled))
            elif sampled and item.verdict.result == Result.PASSED:
                assert deviation.elements == 0 or deviation.open
    assert (Result.FAILED, False) in kinds


def test_a_record_with_them_keeps_to_its_schema_and_comes_back(records: list[Record]) -> None:
    item = next(item for item in records if any(deviation.magnitudes for deviation in item.verdict.deviations))
    document = json.loads(json.dumps(record_to_json(item), allow_nan=False))
    jsonschema.validate(document, record_schema(), cls=jsonschema.Draft202012Validator)
    again = record_from_json(document, where="here")
    assert again.verdict.deviations[0].magnitudes == item.verdict.deviations[0].magnitudes


def test_the_figures_are_the_records_own(faulty: Acceptance, records: list[Record]) -> None:
    counted = [deviation for item in records for deviation in item.verdict.deviations if deviation.magnitudes]
    total = spread_total(faulty)
    assert total.elements == sum(sum(entry.counts) for item in counted for entry in item.magnitudes) > 0
    assert total.passed + total.failed == len(counted)
    assert total.all == sum(row.elements for row in faulty.precision)
    for rows in spread_rows(faulty).values():
        for row, bins in rows:
            assert sum(item.elements for item in bins) == sum(sum(entry.counts) for entry in row.spread)
            assert sum(item.beyond for item in bins) <= row.beyond
    assert any(item.beyond for rows in spread_rows(faulty).values() for _, bins in rows for item in bins)


def test_the_page_has_them_as_a_table_and_says_of_how_many_elements(faulty: Acceptance, faulty_page: str) -> None:
    section = faulty_page.partition('<section id="precision"')[2].partition("</section>")[0]
    total = spread_total(faulty)
    assert f"{count_text(total.elements)} of {count_text(total.all)} elements" in section
    assert section.count('scope="rowgroup" rowspan') == sum(bool(row.spread) for row in faulty.precision)


def test_the_chart_counts_every_element_and_leaves_out_few_values(faulty: Acceptance) -> None:
    [chart] = ratio_charts(faulty).values()
    for row, cells in chart.rows:
        assert sum(number for number, _, _ in cells) == sum(row.histogram) >= LEAST
        assert sum(number for number, _, over in cells if over) == row.beyond
        assert all((tone > 0) == (number > 0) for number, tone, _ in cells)
    assert chart.left_out == sum(sum(row.histogram) < LEAST for row in faulty.precision)
    few = replace(faulty.precision[0], histogram=(LEAST - 1, *(0 for _ in faulty.precision[0].histogram[1:])))
    [chart] = ratio_charts(replace(faulty, precision=(few,))).values()
    assert (chart.rows, chart.left_out) == ((), 1)


def test_several_runs_have_a_history(faulty: Acceptance) -> None:
    assert history(faulty) == []
    run = faulty.runs[0]
    manifest = msgspec.structs.replace(run.manifest, started="2001-01-01T00:00:00+00:00")
    earlier = replace(run, name="earlier", manifest=manifest)
    bars = history(replace(faulty, runs=(*faulty.runs, earlier)))
    assert [run.name for run, _ in bars] == ["earlier", faulty.runs[0].name]
    for run, parts in bars:
        assert sum(number for _, number, _ in parts) == run.ends.cases
        assert abs(sum(float(width) for _, _, width in parts) - 100) < 0.1


def test_records_of_earlier_versions_have_none(tmp_path: Path) -> None:
    report = acceptance([synthetic_run(tmp_path / "run", [record(softmax_case())])])
    assert [row.spread for row in report.precision] == [()]
    assert ' rowspan="' not in render_html(report, sections=("precision",))
