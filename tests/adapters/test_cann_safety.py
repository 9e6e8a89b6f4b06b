"""The list of what must never reach a real device: each entry is refused there, by trials and by session."""

from __future__ import annotations

import pytest

from aclnn_cts.adapters.protocol import Call, Inexpressible
from aclnn_cts.core.case import Argument, CallOptions, Case, Data, Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Result, SkipReason
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.generate.hazard import hazard_of
from aclnn_cts.sandbox.host import InProcessHost
from aclnn_cts.speclang.kinds_tensor import MAX_RANK
from aclnn_cts.trials.trial_runner import TrialRunner
from tests.adapters.recording_device import SPECS, RecordingDevice, open_session

A2 = Target(product="atlas-a2")
DATA = Data(recipe="zeros")


def softmax(**changes: Argument) -> Case:
    tensor = Tensor((2, 3), "FLOAT", data=DATA)
    arguments: dict[str, Argument] = {"gradOutput": tensor, "output": tensor, "dim": 1, "out": Tensor((2, 3), "FLOAT")}
    return Case("aclnnSoftmaxBackward", arguments | changes, A2)


def embedding(**changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "grad": Tensor((2, 3), "FLOAT", data=DATA),
        "indices": Tensor((2,), "INT64", data=Data(values=(1, 2))),
        "numWeights": 4,
        "paddingIdx": 0,
        "scaleGradByFreq": False,
        "out": Tensor((4, 3), "FLOAT"),
    }
    return Case("aclnnEmbeddingDenseBackward", arguments | changes, A2)


def upsample(**changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "gradOutput": Tensor((1, 1, 4), "FLOAT", format="NCL", data=DATA),
        "outputSizeOptional": (4,),
        "inputSize": (1, 1, 2),
        "scalesOptional": 2.0,
        "out": Tensor((1, 1, 2), "FLOAT", format="NCL"),
    }
    return Case("aclnnUpsampleNearestExact1dBackward", arguments | changes, A2)


def indices(*values: int) -> Tensor:
    return Tensor((2,), "INT64", data=Data(values=values))


def out(**layout: object) -> Tensor:
    return Tensor((2, 3), "FLOAT", **layout)  # type: ignore[arg-type]  # any of its fields


ALWAYS: dict[str, tuple[Case, str]] = {
    "an index beyond the table": (embedding(indices=indices(1, 4)), "outside its memory"),
    "a negative index": (embedding(indices=indices(-1, 2)), "outside its memory"),
    "drawn indices beyond the table": (
        embedding(indices=Tensor((2,), "INT64", data=Data(recipe="indices", low=0, high=9))),
        "outside its memory",
    ),
    "a table without rows": (embedding(numWeights=0, out=Tensor((0, 3), "FLOAT")), "lies outside out"),
    "a grad of rank 0": (embedding(grad=Tensor((), "FLOAT", data=DATA)), "without axes"),
    "a null outputSizeOptional": (upsample(outputSizeOptional=None), "ends the process"),
    "more dimensions than a shape holds": (
        softmax(output=Tensor((1,) * (MAX_RANK + 1), "FLOAT", data=DATA)),
        "hold 25 dimensions",
    ),
}
BOTH_PHASES: dict[str, tuple[Case, str]] = {
    "a storage that is too small": (softmax(out=out(storage_shape=(5,))), "reaches element 5 of a storage of 5"),
    "a view beyond its storage": (
        softmax(output=Tensor((2, 3), "FLOAT", strides=(4, 1), storage_shape=(6,), data=DATA)),
        "reaches element 6 of a storage of 6",
    ),
    "an offset beyond the storage": (softmax(out=out(offset=1, storage_shape=(6,))), "reaches element 6"),
    "a negative offset": (softmax(out=out(offset=-1, storage_shape=(9,))), "before the storage"),
    "an output without strides": (
        softmax(out=out(strides=(0, 1), storage_shape=(6,))),
        "several elements in one place",
    ),
    "a negative stride": (softmax(out=out(strides=(-3, 1), offset=3, storage_shape=(6,))), "negative stride"),
    "an output that overlaps itself": (softmax(out=out(strides=(1, 1), storage_shape=(6,))), "overlap"),
}


@pytest.mark.parametrize("name", ALWAYS)
def test_what_harms_in_phase_one_is_refused_in_both(name: str) -> None:
    case, words = ALWAYS[name]
    for both in (False, True):
        assert words in hazard_of(SPECS[case.operator], case, both_phases=both)


@pytest.mark.parametrize("name", BOTH_PHASES)
def test_what_harms_a_kernel_alone_is_refused_where_one_runs(name: str) -> None:
    case, words = BOTH_PHASES[name]
    assert words in hazard_of(SPECS[case.operator], case, both_phases=True)
    assert hazard_of(SPECS[case.operator], case, both_phases=False) == ""


@pytest.mark.parametrize(
    "case", [softmax(), embedding(), upsample(), softmax(output=Tensor((1,) * MAX_RANK, "FLOAT", data=DATA))]
)
def test_what_is_not_on_the_list_passes(case: Case) -> None:
    assert hazard_of(SPECS[case.operator], case, both_phases=True) == ""


@pytest.mark.parametrize("name", ALWAYS)
def test_a_session_on_hardware_refuses_them_whoever_calls(name: str) -> None:
    case, words = ALWAYS[name]
    first = Case(case.operator, case.arguments, case.target, CallOptions(phases=1))
    device = RecordingDevice()
    with pytest.raises(Inexpressible, match=f"never sent to a real device: .*{words}"):
        open_session(device, hardware=True).run([Call(first)])
    assert device.log == [], "nothing at all reached it"
    (outcome,) = open_session(device, hardware=False).run([Call(first)])
    assert outcome.phase_one == 0


def test_unsafe_is_refused_on_hardware() -> None:
    settings = RunnerSettings(adapter="cann", target=A2, unsafe=True)
    with pytest.raises(UsageError, match=r"--unsafe: .* is a real device; .*software devices alone"):
        TrialRunner(specs=SPECS, host=InProcessHost(open_session(RecordingDevice(), hardware=True)), settings=settings)
    TrialRunner(specs=SPECS, host=InProcessHost(open_session(RecordingDevice(), hardware=False)), settings=settings)


def test_without_unsafe_the_engine_skips_them_and_nothing_is_called() -> None:
    device = RecordingDevice()
    host = InProcessHost(open_session(device, hardware=True))
    runner = TrialRunner(specs=SPECS, host=host, settings=RunnerSettings(adapter="cann", target=A2))
    trials = [Trial("status", case) for case, _ in ALWAYS.values()]
    records = [record for judged in runner.run(trials) for record in judged.records]
    assert {(record.verdict.result, record.verdict.kind) for record in records} == {(Result.SKIPPED, SkipReason.UNSAFE)}
    assert all(words in record.verdict.message for record, (_, words) in zip(records, ALWAYS.values(), strict=True))
    assert device.log == []
