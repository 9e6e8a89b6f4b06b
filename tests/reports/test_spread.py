"""Error against magnitude: from the records of a run to the panels and the table of the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.bundle.record_json import record_from_json, record_schema, record_to_json
from aclnn_cts.checks.laws import PREFIX
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.reports.figures import _apart, precision_figure
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.numbers import count_text
from aclnn_cts.reports.spread import spread_rows, spread_total
from aclnn_cts.reports.text import LANGUAGES, phrase
from aclnn_cts.store.run_directory import RunDirectory
from tests.reports.synthetic import record, softmax_case, synthetic_run


@pytest.fixture(scope="module")
def records(faulty_run: Path) -> list[Record]:
    with RunDirectory(faulty_run).results() as results:
        return [item for item in results.records() if not item.trial.promise.startswith(PREFIX)]


def test_failures_and_a_sample_are_counted_and_nothing_else(records: list[Record]) -> None:
    kinds = set()
    for item in records:
        sampled = int(item.trial_id[:2], 16) % 64 == 0
        for deviation in item.verdict.deviations:
            if deviation.magnitudes:
                assert item.verdict.result == Result.FAILED or sampled
                judged = tuple(map(sum, zip(*(entry.counts for entry in deviation.magnitudes), strict=True)))
                # Elements whose exact value is not finite have a share and no magnitude.
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


def test_the_page_draws_them_and_says_of_how_many_elements(faulty: Acceptance, faulty_page: str) -> None:
    section = faulty_page.partition('<section id="precision"')[2].partition("</section>")[0]
    [figure] = re.findall(r"<svg.*?</svg>", section, re.DOTALL)
    total = spread_total(faulty)
    assert f"{count_text(total.elements)} of {count_text(total.all)} elements" in section
    assert figure.count(" · n = ") == len(faulty.precision)
    for row in faulty.precision:
        elements = sum(sum(entry.counts) for entry in row.spread)
        assert f" · n = {count_text(elements)}<" in figure
    assert "#b42318" in figure
    assert "The right panels as a table" in section
    assert section.count('scope="rowgroup" rowspan') == sum(bool(row.spread) for row in faulty.precision)


def test_a_panel_without_anything_in_it_says_why(faulty: Acceptance) -> None:
    row = next(row for row in faulty.precision if row.spread and row.magnitudes and any(row.histogram))

    def drawn(**changes: Any) -> str:
        return precision_figure("x", [replace(row, **changes)], faulty.share_edges, faulty.magnitude_step)

    whole = drawn()
    empty: dict[str, dict[str, Any]] = {
        "not_sampled": {"spread": ()},
        "not_recorded": {"magnitudes": ()},
        "all_exact": {"magnitudes": tuple(replace(entry, error=0.0, bound=0.0) for entry in row.magnitudes)},
        "none_judged": {"histogram": tuple(0 for _ in row.histogram)},
    }
    for name, changes in empty.items():
        for language in LANGUAGES:
            text = phrase(f"precision.{name}", language)
            assert text not in whole
            assert text in drawn(**changes), name


@given(st.lists(st.floats(-50, 50), max_size=5), st.floats(0.1, 20))
def test_ticks_stand_apart(places: list[float], least: float) -> None:
    kept = [place for place, _ in _apart([(place, "") for place in places], least)]
    assert set(kept) <= set(places)
    assert all(after - before >= least for before, after in pairwise(kept))
    assert kept[:1] != [] or not places


def test_records_of_earlier_versions_have_none_and_the_page_says_so(tmp_path: Path) -> None:
    report = acceptance([synthetic_run(tmp_path / "run", [record(softmax_case())])])
    assert [row.spread for row in report.precision] == [()]
    assert "hold the histogram alone" in render_html(report)
