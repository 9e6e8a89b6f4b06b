"""What holds for every tolerance, and the registry."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.rounding import to_dtype, widen
from aclnn_cts.core.verdict import TOLERANCE_FACT, Result, ToleranceResult, ToleranceVerdict, Verdict
from aclnn_cts.judgement.tolerances.double_benchmark import DUAL_LEVELS, DUAL_ROWS
from aclnn_cts.judgement.tolerances.protocol import conclude, figure, headroom, make_pair
from aclnn_cts.judgement.tolerances.registry import (
    TOLERANCES,
    check_names,
    installed_tolerances,
    measure,
    with_gate,
)
from aclnn_cts.judgement.tolerances.single_benchmark import MERE_LIMITS, MIXED_ROWS, Mixed
from aclnn_cts.judgement.verdict import OUTPUT_FACT
from tests.judgement.tolerances.pairs import pair

DTYPES = ("FLOAT16", "BF16", "FLOAT")
DOCUMENT = Path(__file__).parents[3] / "docs" / "tolerances.md"

numbers = arrays(np.float64, st.integers(1, 20), elements=st.floats(-1000, 1000, width=32))


def stored(values: np.ndarray, dtype: str) -> np.ndarray:
    return widen(to_dtype(values, dtype))


def test_the_names_are_stable() -> None:
    assert tuple(TOLERANCES) == (
        "mixed",
        "mere-mare",
        "dual-l0",
        "dual-l1",
        "dual-l2",
    )
    assert all(name == tolerance.name and tolerance.source for name, tolerance in TOLERANCES.items())


def test_an_installed_package_adds_a_tolerance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/tolerances.md says."""
    page = DOCUMENT.read_text(encoding="utf-8").partition("\n## Adding a tolerance\n")[2]
    module, toml = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.DOTALL)[:2]
    (tmp_path / "house_rules.py").write_text(module, encoding="utf-8")
    entry = re.search(r"^half-ulp = \"(.*)\"$", toml, re.MULTILINE)
    assert entry is not None
    folder = tmp_path / "house_rules-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: house-rules\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(f"[aclnn_cts.tolerances]\nhalf-ulp = {entry[1]}\n")
    monkeypatch.syspath_prepend(tmp_path)
    [tolerance] = installed_tolerances()
    assert tolerance.measure(pair([1.0], [1.0 + 2.0**-26])).verdict == ToleranceVerdict.PASS
    assert tolerance.measure(pair([1.0], [1.0 + 2.0**-23])).verdict == ToleranceVerdict.FAIL
    assert tolerance.measure(pair([1], [1], dtype="INT32")).verdict == ToleranceVerdict.PASS


def test_unknown_names_are_told_with_the_nearest_one() -> None:
    with pytest.raises(
        UsageError, match=r"--tolerance: 'mixd' is not a tolerance; expected any of .*did you mean 'mixed'\?"
    ):
        check_names(["dual-l0", "mixd"], where="--tolerance")
    assert check_names(["dual-l0", "mixed", "dual-l0"], where="--tolerance") == ("mixed", "dual-l0")


@settings(max_examples=60, deadline=None)
@given(values=numbers, dtype=st.sampled_from(DTYPES))
def test_identical_arrays_pass_every_tolerance(values: np.ndarray, dtype: str) -> None:
    values = stored(values, dtype)
    for name, tolerance in TOLERANCES.items():
        result = tolerance.measure(pair(values, values, values, dtype=dtype))
        assert result.verdict == ToleranceVerdict.PASS, (name, result)
        assert 0.0 <= float(result.headroom) <= 1.0


@settings(max_examples=60, deadline=None)
@given(values=numbers, noise=st.integers(0, 2**32 - 1), dtype=st.sampled_from(DTYPES))
def test_signs_and_order_do_not_matter(values: np.ndarray, noise: int, dtype: str) -> None:
    generator = np.random.default_rng(noise)
    got, other = (stored(values * (1 + generator.normal(size=values.shape) * 2.0**-9), dtype) for _ in range(2))
    order = generator.permutation(values.size)
    for tolerance in TOLERANCES.values():
        result = tolerance.measure(pair(got, values, other, dtype=dtype))
        mirrored = tolerance.measure(pair(-got, -values, -other, dtype=dtype))
        assert (mirrored.verdict, mirrored.figures) == (result.verdict, result.figures)
        shuffled = tolerance.measure(pair(got[order], values[order], other[order], dtype=dtype))
        assert shuffled.verdict == result.verdict


@settings(max_examples=60, deadline=None)
@given(values=numbers, dtype=st.sampled_from(DTYPES), far=st.sampled_from([1e3, np.inf, np.nan]))
def test_one_wild_element_fails_every_tolerance_that_has_no_quota(values: np.ndarray, dtype: str, far: float) -> None:
    golden = stored(values, dtype)
    golden[0] = 1.0  # no small value, of which the dual rules admit one
    got = golden.copy()
    got[0] = stored(np.array([far]), dtype)[0]
    for name, tolerance in TOLERANCES.items():
        result = tolerance.measure(pair(got, golden, golden, dtype=dtype))
        assert result.verdict == ToleranceVerdict.FAIL, (name, result)
        assert result.headroom == "-inf" or float(result.headroom) <= 0.0


@pytest.mark.parametrize("dtype", ["FLOAT16", "BF16", "FLOAT", "DOUBLE", "INT32"])
def test_an_output_without_elements_fails_nothing(dtype: str) -> None:
    made = pair([], [], [], dtype=dtype)
    assert {tolerance.measure(made).verdict for tolerance in TOLERANCES.values()} <= {
        ToleranceVerdict.PASS,
        ToleranceVerdict.NOT_APPLICABLE,
    }
    assert TOLERANCES["mere-mare"].measure(pair([], [])).message == "there are no elements to measure"


def test_open_elements_are_left_out() -> None:
    got = np.array([[1.0, 99.0], [1.0, np.nan]], dtype=np.float32)
    made = make_pair(
        output="out", dtype="FLOAT", got=got, golden=np.ones((1, 1)), unsettled=np.array([False, True]), benchmark=got
    )
    assert made.got.tolist() == [1.0, 1.0]
    assert {tolerance.measure(made).verdict for tolerance in TOLERANCES.values()} == {ToleranceVerdict.PASS}


def test_a_golden_beyond_the_dtype_is_inf() -> None:
    made = pair([np.inf, -np.inf, 65504.0], [65520.0, -1e30, 65519.0], dtype="FLOAT16")
    assert made.golden.tolist() == [np.inf, -np.inf, 65519.0]
    assert made.error.tolist() == [0.0, 0.0, 15.0]


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        (figure("error", 0.25, 1.0), 0.75),
        (figure("error", 1.0, 1.0), 0.0),
        (figure("error", 3.0, 1.0), -2.0),
        (figure("error", np.inf, 1.0), -np.inf),
        (figure("error", np.nan, 1.0), -np.inf),
        (figure("count", 0, 0), 1.0),
        (figure("count", 1, 0), -np.inf),
        (figure("share", 1.0, 0.99, ">="), 1.0),
        (figure("share", 0.99, 0.99, ">="), 0.0),
        (figure("share", 0.98, 0.99, ">="), -1.0),
    ],
)
def test_headroom_is_what_is_left_of_the_limit(entry: object, left: float) -> None:
    assert headroom(entry) == pytest.approx(left)  # type: ignore[arg-type]  # any tolerance's entry


def test_limits_that_are_met_and_limits_to_stay_below() -> None:
    met = conclude(Mixed(), [figure("error", 1.0, 1.0)])
    below = conclude(Mixed(), [figure("error", 1.0, 1.0, "<")])
    assert (met.verdict, met.message) == (ToleranceVerdict.PASS, "error 1 <= 1")
    assert (below.verdict, below.message) == (ToleranceVerdict.FAIL, "error 1, not < 1")
    assert conclude(Mixed(), [figure("error", np.nan, 1.0)]).message == "error nan, not <= 1"
    near = conclude(Mixed(), [figure("error", 1.0000001, 1.0)])
    assert near.message == "error 1.0000001, not <= 1", "digits enough to tell them apart"
    assert conclude(Mixed(), [figure("a", 2, 1), figure("b", 9, 1)]).message.startswith("b 9")


def test_results_survive_a_record() -> None:
    made = pair([np.inf, 1.0], [1.0, 1.0], [1.0, 1.0])
    tolerances = measure(TOLERANCES, [made])
    verdict = Verdict(result=Result.PASSED, tolerances=tolerances)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(verdict), type=Verdict) == verdict
    assert b"null" not in msgspec.json.encode(tolerances), "JSON has a word for every number"


def test_a_gate_fails_what_the_bound_passed_and_nothing_else() -> None:
    tolerances = measure(TOLERANCES, [pair([2.0], [1.0])])
    passed = Verdict(result=Result.PASSED, basis="assumed", tolerances=tolerances, facts={"finer than asked": True})
    failed = with_gate(passed, ("mixed", "mere-mare"))
    assert (failed.result, failed.kind, failed.basis) == (Result.FAILED, Fault.TOLERANCE, "assumed")
    said = "the tolerance mixed fails on out: largest absolute error 1, not <= 0.01; also failing: mere-mare on out"
    assert failed.message == said
    assert failed.facts == {"finer than asked": True, OUTPUT_FACT: "out", TOLERANCE_FACT: "mixed"}
    assert with_gate(passed, ()) is passed
    assert with_gate(passed, ("dual-l0",)) is passed, "not applicable is no failure"
    other = msgspec.structs.replace(passed, result=Result.FAILED, kind=Fault.VALUE, message="wrong")
    assert with_gate(other, ("mixed",)) is other


def cells(section: str, header: str) -> dict[str, list[float]]:
    """A table of the document: numbers by the names in its first column."""
    text = DOCUMENT.read_text(encoding="utf-8")
    body = text.partition(f"\n## {section}")[2].partition("\n## ")[0].partition(f"| {header} |")[2]
    rows: dict[str, list[float]] = {}
    for line in body.splitlines()[2:]:
        if not line.startswith("|"):
            break
        first, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        for name in first.split(", "):
            rows[name] = [number(cell) for cell in rest if cell != "-"]
    return rows


def number(cell: str) -> float:
    power = re.fullmatch(r"2\^(-?\d+)", cell)
    return 2.0 ** int(power[1]) if power else float(cell)


@pytest.mark.parametrize(
    ("section", "header", "table"),
    [
        ("`mixed`", "dtype", {name: [row.rtol, row.atol, row.largest] for name, row in MIXED_ROWS.items()}),
        ("`mere-mare`", "dtype", {name: [limit] for name, limit in MERE_LIMITS.items()}),
        (
            "`dual-l0`",
            "level",
            {name.upper(): [float(row.mare), row.mere, row.rmse] for name, row in DUAL_LEVELS.items()},
        ),
        ("`dual-l0`", "dtype", {name: [row.small, row.error] for name, row in DUAL_ROWS.items()}),
    ],
)
def test_the_document_has_the_numbers_that_are_used(section: str, header: str, table: dict[str, list[float]]) -> None:
    assert cells(section, header) == table


def test_the_document_names_every_tolerance() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert all(re.search(rf"^##.*`{name}`", text, re.MULTILINE) for name in TOLERANCES)
    assert isinstance(TOLERANCES["mixed"].measure(pair([1.0], [1.0])), ToleranceResult)
