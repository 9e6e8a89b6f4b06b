"""Leak probes: the precision that was really used is named, and what is coarser than promised is a fault."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import pytest

from aclnn_cts.adapters.protocol import Adapter
from aclnn_cts.cli.main import main
from aclnn_cts.cli.output import console
from aclnn_cts.cli.screen import show_end
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import FINER_FACT, PRECISION_FACT, Record, Result, SkipReason, formats_of
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.trials.checks.precision_probe import CANDIDATES, PROBES, PrecisionCheck
from aclnn_cts.trials.plan import Part
from tests.generate.test_multiples import built
from tests.reports.runs import small_run
from tests.support.emulated import GRADIENTS
from tests.support.leaky_adapter import Leaky
from tests.support.targets import first_fast
from tests.support.trial_runs import bench, specs

pytestmark = pytest.mark.mechanism

CONV = "aclnnConvTbcBackward"
COARSER = {
    "KEEP_DTYPE": {"HFLOAT32 with 11 stored bits", "HFLOAT32 with 10 stored bits", "FLOAT16", "BF16"},
    "ALLOW_FP32_DOWN_PRECISION": {"FLOAT16", "BF16"},
    "USE_HF32": {"FLOAT16", "BF16"},
    "USE_FP16": {"BF16"},
}
"""On FLOAT operands, by mode: the formats that promise less than it does."""


def probed(adapter: Adapter, operator: str, target: Target) -> list[Record]:
    made = bench(adapter, target)
    trials = list(made.expand(Part(operator, PrecisionCheck().id, "valid"), seed=3))
    assert trials
    return [item for judged in made.run(trials) for item in judged.records]


WIDE = """\
operator: aclnnWideGrad
document: {title: aclnnWideGrad, language: en}
products: [atlas-a2]
defaults: {dtypes: [FLOAT]}
parameters:
  - {name: x, type: const aclTensor *, shape: "[X, G]"}
  - {name: out, type: aclTensor *, same_shape_as: x, same_dtype_as: x}
draws:
  - {name: X, in: [1, null]}
  - {name: H, in: [1073741823, 2147483646]}
  - {name: G, is: 2*H}
"""


def test_what_cannot_be_written_out_is_not_probed() -> None:
    sampler = Sampler(built(WIDE), Target(product="atlas-a2"))
    assert not list(PrecisionCheck().trials(Part("aclnnWideGrad", PrecisionCheck().id, "valid"), sampler, seed=0))


@cache
def leaked(form: str) -> list[Record]:
    return probed(Leaky(form.replace(" ", "_")), CONV, Target(product="atlas-a2"))


def of_mode(records: list[Record], mode: str) -> list[Record]:
    return [item for item in records if item.verdict.mode == mode and item.fingerprint.dtype == "FLOAT"]


def named(records: list[Record]) -> set[str]:
    """The formats that every probe leaves possible."""
    sets = [alike_of(item) for item in records if PRECISION_FACT in item.verdict.facts]
    assert sets
    return set(CANDIDATES).intersection(*sets)


def alike_of(record: Record) -> set[str]:
    """The formats that a probe leaves possible for all of its outputs."""
    names = record.verdict.facts[PRECISION_FACT]
    assert names
    return set(CANDIDATES).intersection(*names.values())


@pytest.mark.parametrize("operator", specs())
def test_probes_and_so_their_answer_do_not_depend_on_the_seed(operator: str) -> None:
    made = bench(Leaky("FLOAT"), Target(product="atlas-a2"))
    first, second = (list(made.expand(Part(operator, PrecisionCheck().id, "valid"), seed=seed)) for seed in (1, 2))
    assert [trial.id for trial in first] == [trial.id for trial in second]


@pytest.mark.parametrize(
    ("mode", "form"),
    first_fast(itertools.product(COARSER, CANDIDATES), of=lambda pair: (pair[0], pair[1] in COARSER[pair[0]])),
)
def test_the_format_that_was_used_is_named_and_too_coarse_a_one_is_a_fault(mode: str, form: str) -> None:
    records = of_mode(leaked(form), mode)
    assert named(records) == {form}
    failed = [item for item in records if item.verdict.result == Result.FAILED]
    assert bool(failed) == (form in COARSER[mode])
    assert all(item.verdict.facts["output"] in ("gradInput", "gradWeight") for item in failed)


@pytest.mark.parametrize("mode", ["ALLOW_FP32_DOWN_PRECISION", "USE_HF32", "USE_FP16"])
def test_finer_than_asked_is_a_fact(mode: str) -> None:
    finer = of_mode(leaked("FLOAT"), mode)
    assert all(item.verdict.result == Result.PASSED for item in finer)
    assert any(item.verdict.facts.get(FINER_FACT) for item in finer)
    promised = "FLOAT16" if mode == "USE_FP16" else "HFLOAT32 with 10 stored bits"
    assert not any(item.verdict.facts.get(FINER_FACT) for item in of_mode(leaked(promised), mode))


def test_formats_that_answer_alike_are_named_together() -> None:
    """2049 comes out of ten stored bits as it comes out of FLOAT16 and BF16; the range tells the first two apart."""
    records = of_mode(leaked("FLOAT16"), "USE_FP16")

    def alike(probe: str) -> set[frozenset[str]]:
        return {
            frozenset(alike_of(item))
            for item in records
            if PRECISION_FACT in item.verdict.facts and PROBES[probe] in values(item)
        }

    assert frozenset({"HFLOAT32 with 10 stored bits", "FLOAT16", "BF16"}) in alike("12 bits")
    assert frozenset({"FLOAT16"}) in alike("above 65504")
    assert frozenset({"FLOAT16"}) in alike("below 2^-25")
    assert named(records) == {"FLOAT16"}


RMS = "aclnnRmsNormGrad"


@pytest.mark.parametrize("coarse", ["dxOut", "dgammaOut"])
def test_each_output_has_the_format_that_it_shows_itself(coarse: str) -> None:
    records = probed(Leaky("BF16", coarse), RMS, Target(product="atlas-a2"))
    records = [item for item in records if item.fingerprint.dtype == "FLOAT" and PRECISION_FACT in item.verdict.facts]
    [fine] = {"dxOut", "dgammaOut"} - {coarse}
    for output, form in ((coarse, "BF16"), (fine, "FLOAT")):
        named_of = [set(names) for item in records if (names := formats_of(item, output)) is not None]
        assert set(CANDIDATES).intersection(*named_of) == {form}
    # Both outputs together fit no format, which the fact does not say of either.
    assert any(not alike_of(item) for item in records)


def test_both_outputs_at_fault_are_told_each_by_itself() -> None:
    records = probed(Leaky("FLOAT16"), RMS, Target(product="atlas-a2"))
    failed = [item for item in records if item.verdict.result == Result.FAILED and item.fingerprint.dtype == "FLOAT"]
    both = [item for item in failed if all(part.beyond for part in item.verdict.deviations)]
    assert both
    for item in both:
        for deviation in item.verdict.deviations:
            names = formats_of(item, deviation.output)
            assert names is None or "FLOAT16" in names


def test_a_run_tells_outputs_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunDirectory(
        small_run(tmp_path / "run", "rms_norm_grad", adapter="leaky_adapter:Leaky,form=BF16,output=dxOut")
    )
    show_end(console(), run.summary(), run.path, specs())
    told = " ".join(capsys.readouterr().out.split())
    assert "RmsNormGrad dxOut (FLOAT): BF16" in told
    assert "dgammaOut (FLOAT)" not in told
    rows = {(row.output, row.dtype): row for row in acceptance([run.path]).precision}
    assert (rows["dxOut", "FLOAT"].used, rows["dxOut", "FLOAT"].told_apart) == (("BF16",), True)


def values(record: Record) -> set[float]:
    """The numbers that a probe's inputs hold."""
    found: set[float] = set()
    for _, tensor in record.trial.case.tensors():
        if tensor.data is not None and tensor.data.values is not None:
            found |= {float(value) for value in tensor.data.values}
    return found


@pytest.mark.parametrize(
    ("operator", "product"),
    [(operator, product) for operator in GRADIENTS for product in specs()[operator].products],
)
def test_float_is_told_from_every_other_format(operator: str, product: str) -> None:
    records = [
        item for item in probed(Leaky("FLOAT"), operator, Target(product=product)) if item.fingerprint.dtype == "FLOAT"
    ]
    assert any(item.verdict.result == Result.PASSED for item in records)
    # A small drawing may have elements alone that the document leaves open.
    assert all(item.verdict.result == Result.PASSED or item.verdict.kind == SkipReason.OPEN for item in records)
    for mode in {item.verdict.mode for item in records}:
        assert named([item for item in records if item.verdict.mode == mode]) == {"FLOAT"}


@pytest.mark.slow
def test_a_run_names_the_precision_of_each_mode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "support"))
    adapter = "leaky_adapter:Leaky,form=HFLOAT32_with_10_stored_bits"
    code = main(["run", "conv_tbc_backward", "--adapter", adapter, "-o", str(tmp_path / "run")])
    assert code == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "Precision really used, as far as probes can tell formats apart:" in told
    assert "ConvTbcBackward (FLOAT): HFLOAT32 with 10 stored bits" in told
