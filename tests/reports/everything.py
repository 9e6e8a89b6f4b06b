"""Runs in which everything stands that a page can show: each kind of fault, note, error, tolerance and change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.core.case import Origin
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.core.outcome import GROWN_BYTES, BufferState, CallEnd, Outcome
from aclnn_cts.core.trial import EarlierCall
from aclnn_cts.core.verdict import (
    ALONE_FACT,
    DISPUTE_FACT,
    OutOfScope,
    Record,
    Result,
    SkipReason,
    ToleranceFigure,
    ToleranceResult,
    ToleranceVerdict,
    ToleranceWhy,
)
from aclnn_cts.findings.waivers.file import read_waivers, shipped_waivers
from aclnn_cts.findings.waivers.matching import WaiverReport
from aclnn_cts.reports.text import words
from aclnn_cts.store.manifest import Fact, adapter_facts
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.summary import summary_to_json
from tests.reports.synthetic import record, softmax_case, synthetic_run

RECORDED = "a recorded message in plain English words"
FAULTS = [fault.value for fault in Fault]
ENDS = (CallEnd.SIGNAL, CallEnd.EXIT, CallEnd.MEMORY_LIMIT, CallEnd.DEVICE_FAULT)

ENVIRONMENT = {"machine.cpu": Fact("x"), "library.torch_npu": Fact(None, "unknown")} | adapter_facts(
    {
        "description": "software device (loopback) standing in for Ascend910B3, atlas-a2; no hardware",
        "device": "software device standing in for Ascend910B3",
        "RmsNormGrad": "autograd of rms_norm with the case's rstd: torch has no fused backward kernel for this device",
    },
    capabilities=Capabilities(
        environment_zh={"description": "软件设备", "device": "软件设备", "RmsNormGrad": "自动求导"}
    ),
)


def _failed(number: int, kind: str, **fields: Any) -> Record:
    outcome = fields.pop("outcome", None)
    case = softmax_case(number, dtype=fields.pop("dtype", "FLOAT"))
    plain: dict[str, Any] = {"result": Result.FAILED, "message": RECORDED, "output": "out", "error_ratio": 2.5}
    made = record(case, kind=kind, **(plain | fields))
    return msgspec.structs.replace(made, attempts=((outcome,),)) if outcome is not None else made


def _tolerances() -> dict[str, dict[str, ToleranceResult]]:
    names = [name.replace("{n}", "2") for name in words("tolerances")["figures"]]
    measured = ToleranceResult(
        tolerance="mixed",
        verdict=ToleranceVerdict.FAIL,
        message=RECORDED,
        figures=tuple(ToleranceFigure(name=name, value=0.5, limit=0.1) for name in names),
        source="the title of a work in English",
    )
    silent = {
        why: {"out": ToleranceResult(tolerance=why, verdict=ToleranceVerdict.NOT_APPLICABLE, message=RECORDED, why=why)}
        for name, why in vars(ToleranceWhy).items()
        if name.isupper()
    }
    old = ToleranceResult(tolerance="old", verdict=ToleranceVerdict.NOT_APPLICABLE, message=RECORDED)
    return {"mixed": {"out": measured}, "old": {"out": old}, **silent}


def _changed(number: int, **fields: Any) -> Record:
    """A trial that a comparison finds to have come back with other bytes, or not."""
    made = _failed(number, Fault.VALUE, dtype="BF16", **fields)
    state = BufferState(sha256=("ab" if number % 2 else "cd") * 32)
    return msgspec.structs.replace(made, attempts=((Outcome(phase_one=0, phase_two=0, buffers={"out": state}),),))


def _records() -> list[Record]:
    waiver = read_waivers(shipped_waivers())[0].id
    touched = BufferState(unwritten=4, guard_before=1, guard_after=3, gap=2, changed=9)
    found = [
        *(_failed(100 + n, kind) for n, kind in enumerate(FAULTS)),
        *(_failed(200 + n, kind, check="layout", dtype="FLOAT16") for n, kind in enumerate(FAULTS)),
        *(
            _failed(300 + n, kind, dtype="BF16", outcome=Outcome(phase_one=0, phase_two=0, buffers={"out": touched}))
            for n, kind in enumerate((Fault.UNWRITTEN, Fault.GUARD, Fault.INPUT))
        ),
        *(
            _failed(310 + n, Fault.CRASH, output=end, outcome=Outcome(ended=end, signal=6, message=RECORDED))
            for n, end in enumerate(ENDS)
        ),
        _failed(320, Fault.HANG, output="", outcome=Outcome(ended=CallEnd.TIME_LIMIT, seconds=7.5)),
        _failed(321, Fault.LEAK, output="", outcome=Outcome(phase_one=161001, facts={GROWN_BYTES: 2_000_000})),
        _failed(322, Fault.VALUE, output="", check="memory", waiver=waiver),
        msgspec.structs.replace(
            _failed(323, Fault.VALUE, output="", check="precision", facts={ALONE_FACT: "conforms"}),
            after=(EarlierCall(softmax_case(1)), EarlierCall(softmax_case(2), times=2)),
        ),
        _failed(324, Fault.VALUE, output="", check="boundary", facts={"second oracle": "agrees: 1.25"}),
        *(
            _failed(330 + n, Fault.STATUS, output="", check="status", outcome=Outcome(phase_one=status))
            for n, status in enumerate((0, 161001, None))
        ),
    ]
    ruled = msgspec.structs.replace(found[0].verdict, tolerances=_tolerances())
    found[0] = msgspec.structs.replace(found[0], verdict=ruled)
    broken = softmax_case(null="gradOutput", origin=Origin(kind="invalid", constraint="gradOutput.null", change="x"))
    found += [
        record(broken, check="status", status=161001),
        record(softmax_case(400), check="determinism"),
        record(softmax_case(401), check="life-cycle/cold-warm"),
    ]
    dispute = {"output": "out", "index": [0, 1], "first": "1.5", "second": ""}
    unjudged: list[tuple[str, str, dict[str, Any]]] = [
        (Result.SKIPPED, SkipReason.DISPUTE, {DISPUTE_FACT: dispute}),
        (Result.SKIPPED, SkipReason.DISPUTE, {}),
        (Result.ERROR, "", {}),
        *((Result.SKIPPED, value, {}) for name, value in vars(SkipReason).items() if name.isupper()),
        *((Result.OUT_OF_SCOPE, value, {}) for name, value in vars(OutOfScope).items() if name.isupper()),
    ]
    for number, (result, kind, facts) in enumerate(unjudged):
        found.append(record(softmax_case(500 + number), result=result, kind=kind, message=RECORDED, facts=facts))
    lost = _failed(600, "", result=Result.ERROR, message=RECORDED + " again", outcome=Outcome(ended=CallEnd.NOT_RUN))
    return [*found, lost, *(_changed(700 + number) for number in range(6))]


def everything(path: Path) -> Path:
    """The run; its summary has violations, problems and a total that does not add up."""
    run = synthetic_run(path, _records(), environment=ENVIRONMENT, changes={"harness": "9"})
    summary = RunDirectory(run).summary()
    waiver = read_waivers(shipped_waivers())[0]
    summary.violate(WaiverReport(expired=(waiver,), mended=(), unused=()).violations())
    summary.miss(summary.one_sided({"aclnnSoftmaxBackward": ["never.met"]}))
    summary.miss([Note("a problem that an earlier version of the harness has recorded")])
    summary.plan("aclnnSoftmaxBackward", "valid")
    assert {note.code for note in (*summary.notes, *summary.holes())} >= {
        NoteCode.EXPIRED,
        NoteCode.NEVER_HELD,
        NoteCode.TOTAL,
    }
    document = summary_to_json(summary) | {"interrupted": False, "seconds": 1.5, "blobs_refused": 0}
    (path / "summary.json").write_bytes(msgspec.json.encode(document))
    return run


def the_run_before(path: Path) -> Path:
    """A run of the same product that it can be compared with, in which some trials passed, some were not made."""
    before = []
    for number in range(6):
        made = _changed(700 + number)
        passed = msgspec.structs.replace(made.verdict, result=Result.PASSED, kind="", message="")
        item = msgspec.structs.replace(made, verdict=passed)
        if number == 0:
            item = msgspec.structs.replace(item, attempts=((Outcome(phase_one=0, phase_two=0),),))
        elif number == 1:
            item = msgspec.structs.replace(item, attempts=())
        elif number == 2:
            item = msgspec.structs.replace(
                item, verdict=msgspec.structs.replace(passed, facts={ALONE_FACT: "conforms"})
            )
        before.append(item)
    gone = _failed(900, Fault.VALUE, check="precision", dtype="FLOAT16", output="")
    was_skipped = record(softmax_case(400), check="determinism", result=Result.SKIPPED, kind=SkipReason.UNSAFE)
    return synthetic_run(path, [*before, before[3], _changed(703), gone, was_skipped], environment={"x": Fact("1")})
