"""Shrinking: what it reaches, what it leaves alone, and how few executions it takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.core.case import Argument, Case, Data, Origin, Tensor
from aclnn_cts.core.case_json import case_from_json
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial, trial_from_json
from aclnn_cts.core.verdict import Record, Result, Verdict
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.corner_walk import corner_cases
from aclnn_cts.generate.negative import invalid_cases
from aclnn_cts.generate.recover import recover_drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.verdict import fingerprint
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.case_files import write_case_file
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.triage.shrink import shrink, structure_of
from aclnn_cts.trials.checks.registry import derived_trial
from tests.support.ran import Ran
from tests.support.targets import HUGE, LEAST_COLUMNS, targets

pytestmark = pytest.mark.mechanism

SPECS = load_specs()
ALL = targets()
Run = Callable[..., Ran]


def drawn(sampler: Sampler, index: int) -> Case:
    return sampler.case(sampler.draw(StreamChoices(7, "shrinking", index)))


def record(trial: Trial, *, fails: bool) -> Record:
    verdict = Verdict(result=Result.FAILED if fails else Result.PASSED, kind="value" if fails else "")
    made = fingerprint(verdict, operator=trial.case.operator, check="values")
    return Record(trial_id=trial.id, trial=trial, attempts=(), verdict=verdict, fingerprint=made)


def shrunk(sampler: Sampler, trial: Trial, fails: Callable[[Case], bool], executions: int = 200) -> tuple[Trial, int]:
    tried: list[Trial] = []

    def execute(trial: Trial) -> Record:
        tried.append(trial)
        return record(trial, fails=fails(trial.case))

    found = shrink(
        trial,
        sampler=sampler,
        execute=execute,
        same=lambda item: item.verdict.result == Result.FAILED,
        executions=executions,
    )
    assert found.executions == len(tried) <= executions
    broken = {item.id for item in evaluate(sampler.spec, trial.case).broken}
    for each in tried:
        assert {item.id for item in evaluate(sampler.spec, each.case).broken} == broken
    assert fails(found.trial.case)
    return found.trial, found.executions


@pytest.mark.parametrize(("spec", "product"), ALL)
def test_every_drawn_case_is_recovered(spec: Spec, product: str) -> None:
    sampler = Sampler(spec, Target(product=product))
    found = [recover_drawing(sampler, drawn(sampler, index)) is not None for index in range(40)]
    assert all(found) or (spec.stem in BLOCKS and any(found))


BLOCKS = {"nsa_selected_attention_grad", "sparse_lightning_indexer_grad_kl_loss"}
"""Operators of whose calls some are not recovered: sizes and lengths of sequences are products of several draws."""
NOT_PUT_TOGETHER = {"repeat_interleave_grad", *BLOCKS}
"""Of some calls: the number of repeats follows from their contents."""


@pytest.mark.parametrize(("spec", "product"), ALL)
def test_a_structure_puts_its_own_trial_together_again(spec: Spec, product: str) -> None:
    sampler = Sampler(spec, Target(product=product))
    cases = [drawn(sampler, index) for index in range(20)]
    if spec.stem in NOT_PUT_TOGETHER:
        return
    for case in (*cases, *corner_cases(sampler, seed=1, first=0, count=6)):
        trial = Trial("values", case)
        found = structure_of(sampler, trial)
        assert found is not None
        again = found.trial(lambda low, high, was: was)
        assert again is not None
        assert again.id == trial.id


TIED = {("upsample_bicubic2d_backward", "NHWC")}
"""Valid calls have C, H and W equal there: few of their shapes are those of a valid call in ND."""


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "product"), ALL)
def test_a_large_first_input_shrinks_to_the_fewest_elements(spec: Spec, product: str) -> None:
    sampler = Sampler(spec, Target(product=product))
    first = spec.inputs[0]

    def fails(case: Case) -> bool:
        tensor = case.arguments[first]
        return isinstance(tensor, Tensor) and tensor.numel >= 6

    number = 0
    for index in range(480):
        case = drawn(sampler, index)
        if number == 4:
            break
        if fails(case):
            number += 1
            small, _ = shrunk(sampler, Trial("values", case), fails)
            tensor = small.case.arguments[first]
            assert isinstance(tensor, Tensor)
            # The inference series takes no fewer than 16 elements in RmsNormGrad.
            # Heads of 64 by 128, and of seven by 128, are the least of some.
            least = 64 * 128 + 1 if spec.stem in HUGE else max(10, 2 * LEAST_COLUMNS.get(spec.stem, 0))
            assert tensor.numel < least or product == "atlas-inference"
            assert tensor.strides is None
            assert tensor.data is not None
            assert tensor.data.recipe == "zeros"
            parameter = spec.parameter(first)
            listed = parameter.formats.get(product, ("ND",))
            assert tensor.format in listed
            plain = "ND" in listed and "ND" in parameter.layouts.get(len(tensor.shape), ("ND",))
            assert tensor.format == "ND" or not plain or (spec.stem, tensor.format) in TIED
    assert number == 4


def test_values_shrink_to_the_one_that_matters() -> None:
    spec = SPECS["aclnnSoftmaxBackward"]
    sampler = Sampler(spec, Target(spec.usual_product))
    values = (0.5, -3.25, 7.0, 11.5, 2.0, 9.75)
    case = Case(
        spec.operator,
        {
            "gradOutput": Tensor((2, 3), "FLOAT", data=Data(values=values)),
            "output": Tensor((2, 3), "FLOAT", data=Data(recipe="normal", seed=5)),
            "dim": -1,
            "out": Tensor((2, 3), "FLOAT"),
        },
    )

    def fails(case: Case) -> bool:
        tensor = case.arguments["gradOutput"]
        assert isinstance(tensor, Tensor)
        assert tensor.data is not None
        return tensor.data.values is not None and any(
            isinstance(value, float | int) and value > 10 for value in tensor.data.values
        )

    small, executions = shrunk(sampler, Trial("values", case), fails)
    tensor = small.case.arguments["gradOutput"]
    assert isinstance(tensor, Tensor)
    assert tensor.data is not None
    assert tensor.data.values is not None
    # The one that matters, rounded to an integer; the others are zeros, and what cannot be cut away stays.
    assert sorted(set(tensor.data.values), key=float) == [0, 12]
    assert small.case.arguments["dim"] == 0
    assert executions <= 60


def test_a_case_that_breaks_a_constraint_keeps_breaking_it() -> None:
    spec = SPECS["aclnnConvTbcBackward"]
    sampler = Sampler(spec, Target(spec.usual_product))
    constraint = next(item for item in spec.constraints if item.id == "weight.null")
    derived = next(iter(invalid_cases(sampler, constraint, seed=3, count=1)))
    trial = derived_trial("status", derived)
    small, _ = shrunk(sampler, trial, lambda case: True)
    assert small.case.arguments["weight"] is None
    assert {item.id for item in evaluate(spec, small.case).broken} == {"weight.null"}
    assert sum(tensor.numel for _, tensor in small.case.tensors()) <= 6
    assert not evaluate(spec, recovered_twin(small)).broken


def recovered_twin(trial: Trial) -> Case:
    return case_from_json(trial.parameters["twin"], where="twin")


def test_the_limit_is_kept() -> None:
    sampler = Sampler(SPECS["aclnnConvTbcBackward"], Target())
    _, executions = shrunk(sampler, Trial("values", drawn(sampler, 1)), lambda case: True, executions=7)
    assert executions <= 7


def softmax(shape: tuple[int, ...], dtype: str = "FLOAT16") -> Trial:
    data = Data(recipe="normal", seed=4)
    arguments: dict[str, Argument] = {
        "gradOutput": Tensor(shape, dtype, data=data),
        "output": Tensor(shape, dtype, data=data),
        "dim": 0,
        "out": Tensor(shape, dtype),
    }
    return Trial("values", Case("aclnnSoftmaxBackward", arguments, origin=Origin(kind="mine")))


@pytest.mark.slow
def test_the_command(ran: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from aclnn_cts.cli.main import main  # noqa: PLC0415 - ran has set the folder and the path

    file, small = tmp_path / "one.json", tmp_path / "small.json"
    write_case_file(OutputFile(file), [softmax((5, 11))])
    assert main(["shrink", str(file), "--adapter", "rare_adapter:Rare,fault=tail", "-o", str(small)]) == 1
    told = capsys.readouterr().out
    assert "165 elements before, 27 now" in " ".join(told.split())
    trial = trial_from_json(json.loads(small.read_text()), where=str(small))
    assert isinstance(trial, Trial)
    assert dict(trial.case.tensors())["out"].numel == 9
    again = ran("replay", str(small), "--adapter", "rare_adapter:Rare,fault=tail")
    assert again.code == 1
    nothing = tmp_path / "nothing.json"
    assert main(["shrink", str(file), "--adapter", "reference", "-o", str(nothing)]) == 0
    assert not nothing.exists()
    assert main(["shrink", str(file), "--adapter", "reference", "-o", str(tmp_path / "no" / "x.json")]) == 2
    assert f"{tmp_path / 'no'} is no folder; make it first" in capsys.readouterr().err
