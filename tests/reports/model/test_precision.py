"""Which precision was really used: told of an output only where the probes tell it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import PRECISION_FACT, Record, Result
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.model.precision import PrecisionRow, PrecisionTally
from aclnn_cts.reports.text import phrase
from aclnn_cts.trials.checks.precision_probe import CANDIDATES
from tests.reports.synthetic import record, renamed, softmax_case, synthetic_run

ALL = list(CANDIDATES)


def probe(names: Sequence[str], *, seed: int = 0, at_fault: str = "", outputs: Sequence[str] = ("a", "b")) -> Record:
    made = record(
        softmax_case(seed),
        check="precision",
        result=Result.FAILED if at_fault else Result.PASSED,
        kind=Fault.VALUE if at_fault else "",
        output=at_fault,
        facts={PRECISION_FACT: list(names)},
    )
    [deviation] = made.verdict.deviations
    deviations = tuple(renamed(deviation, output=name, beyond=int(name == at_fault)) for name in outputs)
    return msgspec.structs.replace(made, verdict=renamed(made.verdict, deviations=deviations))


def rows(*records: Record) -> dict[str, PrecisionRow]:
    tally = PrecisionTally("aclnnSoftmaxBackward")
    for item in records:
        tally.add(item)
    return {row.output: row for row in tally.rows()}


def test_a_probe_of_an_earlier_version_that_passes_speaks_for_every_output() -> None:
    found = rows(probe(ALL), probe(["FLOAT"]))
    assert {name: (row.used, row.told_apart) for name, row in found.items()} == {
        "a": (("FLOAT",), True),
        "b": (("FLOAT",), True),
    }


@pytest.mark.parametrize("names", [[], ["FLOAT16"]])
def test_a_probe_that_fails_says_nothing_of_another_output(names: list[str]) -> None:
    found = rows(probe(["FLOAT"]), probe(names, at_fault="b"))
    assert (found["a"].used, found["a"].told_apart) == (None, False)
    assert (found["b"].used, found["b"].told_apart) == ((), True)


def test_outputs_that_pass_and_have_no_format_together_are_not_told_apart() -> None:
    assert [row.told_apart for row in rows(probe([])).values()] == [False, False]


def test_an_output_alone_is_always_told() -> None:
    assert rows(probe([], outputs=["a"]))["a"].used == ()
    assert rows(probe([], outputs=["a"], at_fault="guards"))["a"].told_apart


def test_each_output_has_the_formats_that_its_own_probes_leave(tmp_path: Path) -> None:
    items = [probe([], seed=seed, at_fault="b") for seed in range(2)]
    facts = [{"a": ["FLOAT", "BF16"], "b": ["BF16"]}, {"a": ["FLOAT"], "b": ["BF16", "FLOAT16"]}]
    told = [
        renamed(item, verdict=renamed(item.verdict, facts={PRECISION_FACT: names}))
        for item, names in zip(items, facts, strict=True)
    ]
    found = rows(*told)
    assert {name: (row.used, row.told_apart) for name, row in found.items()} == {
        "a": (("FLOAT",), True),
        "b": (("BF16",), True),
    }
    # An output that a probe does not tell of is not probed by it.
    alone = renamed(items[0], verdict=renamed(items[0].verdict, facts={PRECISION_FACT: {"b": ["BF16"]}}))
    assert {name: row.used for name, row in rows(alone).items()} == {"a": None, "b": ("BF16",)}
    page = render_html(acceptance([synthetic_run(tmp_path / "run", told)]), sections=["precision"])
    assert phrase("precision.not_told_apart", "en") not in page


def test_what_was_not_probed_is_said_to_be_so() -> None:
    row = rows(record(softmax_case()))["out"]
    assert (row.used, row.told_apart) == (None, True)


def test_a_verdict_without_a_basis_is_no_unknown_one() -> None:
    without = record(softmax_case(1))
    without = msgspec.structs.replace(without, verdict=renamed(without.verdict, basis=""))
    assert rows(record(softmax_case()), without)["out"].bases == {"assumed": 1}


def test_the_page_says_so(tmp_path: Path) -> None:
    report = acceptance([synthetic_run(tmp_path / "run", [probe([], at_fault="b")])])
    page = render_html(report, sections=["precision"])
    for language in ("en", "zh"):
        assert page.count(phrase("precision.not_told_apart", language)) == 1
