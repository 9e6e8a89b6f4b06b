"""What a finding's card says of its case: how small it is, which file and which programs show it, and what cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.finding import Confirmation, Finding
from aclnn_cts.core.outcome import BufferState, Outcome
from aclnn_cts.core.trial import EarlierCall, Trial
from aclnn_cts.core.verdict import ALONE_FACT, Record, Result
from aclnn_cts.reports.exporters import finding_text
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.markdown import markdown_bytes
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_rows import FindingCard, ReproductionProgram
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.model.findings import on_one_page
from aclnn_cts.reports.text import pair
from aclnn_cts.runs.programs import program_maker
from aclnn_cts.speclang.load import load_specs, package_folder
from aclnn_cts.store.programs import NoProgram
from aclnn_cts.store.run_writer import create_run
from aclnn_cts.trials.checks.registry import check_by_id
from tests.reports.synthetic import record, renamed, softmax_case, synthetic_run
from tests.support.build_records import SOFTMAX, make_manifest

GOOD = Outcome(phase_one=0, phase_two=0)
STRAY = Outcome(phase_one=0, phase_two=0, buffers={"out": BufferState(guard_after=4)})


def of_size(rows: int, seed: int = 0) -> Case:
    case = softmax_case(seed)
    data = Data(recipe="normal", seed=seed)
    arguments = {**case.arguments, "out": Tensor((rows, 3), "FLOAT")}
    for name in ("gradOutput", "output"):
        arguments[name] = Tensor((rows, 3), "FLOAT", data=data)
    return renamed(case, arguments=arguments)


def failed(case: Case, *outcomes: Outcome, kind: str = Fault.VALUE, name: str = "values") -> Record:
    made = record(case, check=name, result=Result.FAILED, kind=kind, output="out", error_ratio=2.0)
    return msgspec.structs.replace(made, attempts=(outcomes or (GOOD,),))


def card_and_text(report: Acceptance) -> tuple[FindingCard, str]:
    [card] = report.findings
    page = render_html(report, sections=("findings",))
    return card, page[page.index("<article") : page.index("</article>")]


def test_a_failure_in_company_is_shown_with_its_company(tmp_path: Path) -> None:
    alone = msgspec.structs.replace(failed(of_size(4)).verdict, facts={ALONE_FACT: "conforms"})
    small = msgspec.structs.replace(failed(of_size(4)), verdict=alone)
    shown = msgspec.structs.replace(
        failed(of_size(9)), after=(EarlierCall(of_size(2)), EarlierCall(of_size(3), times=2))
    )
    card, text = card_and_text(acceptance([synthetic_run(tmp_path / "run", [small, shown, failed(of_size(5))])]))
    assert (card.trial_id, card.after, card.figures_of) == (shown.reproducing_trial.id, 3, "")
    assert "make first what it needs: 3." in text
    assert "必需的部分" in text
    assert "One of 3 failures that reproduces in isolation; not shrunk." in text


def test_a_recorded_case_says_that_it_was_not_shrunk_and_how_to(tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "run", [failed(of_size(9)), failed(of_size(4)), failed(of_size(6))])
    card, text = card_and_text(acceptance([run]))
    assert card.trial_id == failed(of_size(4)).trial_id
    assert not card.shrunk
    assert "The smallest of 3 failures; not shrunk." in text
    assert "3 个失败中最小的用例" in text
    assert card.shrink == f"aclnn-cts shrink {run}"
    assert card.shrink in text
    # The run wrote the first failure down, and the smallest when it ended.
    assert card.file_is_case


def test_an_unfinished_run_has_the_first_failure_in_its_trial_file_and_no_program(tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "run", [failed(of_size(9)), failed(of_size(4))], finish=False)
    card, text = card_and_text(acceptance([run]))
    assert not card.file_is_case
    assert "the trial file holds the first failure of its sort" in text
    assert (card.made.programs, card.made.missing) == ((), NoProgram.UNSTORED)
    assert "The run keeps no program of this trial" in text


def campaign(path: Path, recorded: Record, small: Trial, *more: Record, **known: Any) -> Path:
    """A campaign that met one finding and made it smaller."""
    finding = Finding(
        key=recorded.key,
        **{"counts": ((recorded.fingerprint, 40),), **known},
        trial=small,
        message="the small one",
        shrunk=True,
        executions=12,
    )
    manifest = make_manifest(command="fuzz", adapter="torch")
    spec = (package_folder() / "softmax_backward.yaml").read_bytes()
    programs = program_maker(load_specs(), ())
    with create_run(path, manifest=manifest, specs={"softmax_backward.yaml": spec}, programs=programs) as writer:
        writer.summary.plan(SOFTMAX, "valid")
        writer.append([recorded, *more], state={"finding/1": finding})
        writer.replace_failure(recorded.key, small)
        writer.finish(seconds=1.0)
    return path


def test_a_campaign_s_case_is_the_one_that_it_shrank(tmp_path: Path) -> None:
    recorded, small = failed(of_size(40)), Trial("values", of_size(2))
    card, text = card_and_text(acceptance([campaign(tmp_path / "run", recorded, small)]))
    assert card.shrunk
    # Of a case whose record was not kept, the failure that was recorded feeds every text of the card.
    assert (card.trial_id, card.message) == (small.id, recorded.verdict.message)
    assert card.file_is_case
    assert dict(card.case)["gradOutput"].count("[2, 3]") == 1
    assert json.loads(card.trial)["case"]["arguments"]["out"]["tensor"]["shape"] == [2, 3]
    assert "Shrunk in 12 executions; failures: 40." in text
    assert "not shrunk" not in text
    # Its figures are of the case whose record is kept, and say so.
    assert card.figures_of == recorded.trial_id
    assert recorded.trial_id in text
    assert card.made.programs
    same = failed(of_size(40))
    card, text = card_and_text(acceptance([campaign(tmp_path / "same", same, same.trial)]))
    assert card.figures_of == ""
    assert "No record of the case that the campaign shrank" not in text


@pytest.mark.parametrize(
    ("known", "english", "chinese"),
    [
        (
            {"confirmed": Confirmation.ALWAYS, "alone": (3, 3)},
            "Always: run again alone, each time in a fresh process, it failed 3 times of 3.",
            "必现",
        ),
        (
            {"confirmed": Confirmation.FLAKY, "alone": (0, 3), "note": "it failed, then not"},
            "Flaky: run again alone, each time in a fresh process, it failed 0 times of 3.",
            "偶现",
        ),
        (
            {"confirmed": Confirmation.ORDER, "alone": (0, 6), "note": "alone it conforms"},
            "Order-dependent: run again alone it conformed 6 times of 6; it failed again after the calls",
            "与调用次序有关",
        ),
        (
            {"confirmed": Confirmation.DEVICE, "alone": (3, 3), "elsewhere": (0, 3), "slot": "worker 1"},
            "Only on this device: it always fails on worker 1, and conformed 3 times of 3 on another one.",
            "仅在此设备上出现",
        ),
        (
            {"confirmed": Confirmation.UNKNOWN, "note": "the worker was lost"},
            "Not confirmed: it could not be made to fail again.",
            "未确认",
        ),
        ({}, "It was not run again: a waiver accepts it", "模糊测试在此之前已结束"),
    ],
)
def test_a_campaign_s_card_tells_how_reliable_its_finding_is(
    tmp_path: Path, known: dict[str, Any], english: str, chinese: str
) -> None:
    recorded = failed(of_size(9))
    report = acceptance([campaign(tmp_path / "run", recorded, recorded.trial, **known)])
    card, text = card_and_text(report)
    [(_, entry)] = card.campaigns
    assert (entry.failures, entry.confirmed) == (40, known.get("confirmed", ""))
    assert english in text
    assert chinese in text
    assert "Failures that the campaign counted: 40." in text
    assert known.get("note", "") in text
    # How many trials a campaign judged of the same sort its few records do not tell.
    assert "judged trials of the same check" not in text
    assert "It was not run again alone: the adapter" not in text
    assert f"40 failures in the campaign run: {known.get('confirmed') or 'not run again by itself'}" in finding_text(
        card
    )
    summary = markdown_bytes(report, None, "en").decode()
    assert "| 40 |" in summary
    assert "|  | Severity | Operator | Check | Dtype | Mode |" in summary
    assert f"| {card.id} | {card.severity} | {card.operator} | {card.check} | {card.dtype} | — |" in summary


def test_a_campaign_s_finding_has_the_gravest_kind_of_its_failures(tmp_path: Path) -> None:
    def of_kind(rows: int, kind: str) -> Record:
        return failed(of_size(rows), kind=kind)

    beyond = of_kind(4, Fault.MODEL)
    card, text = card_and_text(acceptance([campaign(tmp_path / "one", beyond, beyond.trial)]))
    assert (card.kind, card.severity, card.kinds) == (Fault.MODEL, "minor", {})
    assert "Of the recorded ones:" not in text
    more = (of_kind(9, Fault.VALUE), of_kind(6, Fault.SPECIAL))
    counts = tuple((item.fingerprint, 2) for item in (beyond, *more))
    card, text = card_and_text(acceptance([campaign(tmp_path / "two", beyond, beyond.trial, *more, counts=counts)]))
    assert (card.kind, card.severity) == (Fault.VALUE, "major")
    assert card.kinds == {Fault.MODEL: 1, Fault.VALUE: 1, Fault.SPECIAL: 1}
    # A grave one of which no record is kept counts too.
    card, _ = card_and_text(
        acceptance([campaign(tmp_path / "three", beyond, beyond.trial, counts=(counts[0], counts[2]))])
    )
    assert (card.kind, card.severity) == (Fault.SPECIAL, "major")


def test_equal_calls_have_a_program_that_compares_them(tmp_path: Path) -> None:
    item = failed(of_size(4), GOOD, GOOD, kind=Fault.NONDETERMINISTIC, name="determinism")
    item = msgspec.structs.replace(item, trial=Trial("determinism", item.trial.case))
    item = msgspec.structs.replace(item, trial_id=item.trial.id)
    card, text = card_and_text(acceptance([synthetic_run(tmp_path / "run", [item])]))
    assert (len(card.made.programs), card.made.call[0], card.made.missing) == (2, 0, "")
    assert card.made.call[1] > 1
    assert f"The programs make all {card.made.call[1]} calls of the trial" in text
    assert any("CompareEqual" in program.text for program in card.made.programs)
    assert card.replay in text


def test_one_of_two_equal_calls_at_fault_has_a_program(tmp_path: Path) -> None:
    item = failed(of_size(4), GOOD, STRAY, kind=Fault.GUARD, name="layout")
    item = msgspec.structs.replace(item, trial=Trial("layout", softmax_case(3, strided=True)))
    item = msgspec.structs.replace(item, trial_id=item.trial.id)
    card, text = card_and_text(acceptance([synthetic_run(tmp_path / "run", [item])]))
    assert card.made.call == (2, 2)
    assert {program.language for program in card.made.programs} == {"cpp", "python"}
    assert "the programs make call 2, which fails alone" in text
    # The second call has the same contents without strides, and so has the program.
    spec = load_specs()[SOFTMAX]
    second = check_by_id("layout", where="test").calls(item.trial, spec)[1]
    assert second.arguments != item.trial.case.arguments
    base = acceptance([synthetic_run(tmp_path / "base", [renamed(item, attempts=((STRAY, GOOD),))])]).findings[0]
    assert base.made.call == (1, 2)
    assert base.made.programs != card.made.programs


def test_a_call_mode_of_calling_has_a_program_that_calls_so(tmp_path: Path) -> None:
    item = failed(of_size(4), STRAY, GOOD, kind=Fault.GUARD, name="life-cycle/two-streams")
    other = case_to_json(of_size(2), origin=False)
    item = msgspec.structs.replace(item, trial=Trial("life-cycle/two-streams", item.trial.case, {"other": other}))
    item = msgspec.structs.replace(item, trial_id=item.trial.id)
    card, text = card_and_text(acceptance([synthetic_run(tmp_path / "run", [item])]))
    assert (len(card.made.programs), card.made.call, card.made.missing) == (2, (0, 2), "")
    assert "aclrtCreateStream(&amp;stream_1)" in text


def test_a_program_says_that_it_does_not_measure_a_tolerance(tmp_path: Path) -> None:
    card, text = card_and_text(
        acceptance([synthetic_run(tmp_path / "run", [failed(of_size(4), kind=Fault.TOLERANCE)])])
    )
    assert card.made.programs
    assert "The programs judge by the derived bound" in text


def test_a_case_too_large_for_a_program_says_so_and_how_to_make_it_smaller(tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "run", [failed(of_size(30_000))])
    card, text = card_and_text(acceptance([run]))
    assert (card.made.programs, card.made.missing, card.made.elements) == ((), NoProgram.ELEMENTS, (270_000, 65_536))
    shown = " ".join(text.replace("\u202f", "").split())
    assert "the case has 270000 elements, of which a program holds 65536 at most" in shown
    assert "用例有 270000 个元素，程序最多容纳 65536 个" in shown
    advice = shown[shown.index("no-program") :].partition("</p>")[0]
    assert f"<code>aclnn-cts shrink {run}</code>" in advice
    # One that was shrunk and is still too large cannot be shrunk again.
    recorded, small = failed(of_size(30_000)), Trial("values", of_size(20_000))
    card, text = card_and_text(acceptance([campaign(tmp_path / "small", recorded, small)]))
    assert (card.made.missing, card.made.elements[0]) == (NoProgram.ELEMENTS, 180_000)
    advice = text[text.index("no-program") :].partition("</p>")[0]
    assert "even shrunk" in advice
    assert "aclnn-cts shrink" not in advice


def test_calls_that_are_too_large_together_name_shrink_and_one_call(tmp_path: Path) -> None:
    item = failed(of_size(5_000), GOOD, GOOD, kind=Fault.VALUE, name="life-cycle/two-streams")
    other = case_to_json(of_size(5_001), origin=False)
    item = msgspec.structs.replace(item, trial=Trial("life-cycle/two-streams", item.trial.case, {"other": other}))
    item = msgspec.structs.replace(item, trial_id=item.trial.id)
    card, text = card_and_text(acceptance([synthetic_run(tmp_path / "run", [item])]))
    assert (card.made.programs, card.made.missing) == ((), NoProgram.CALLS)
    assert card.made.elements[0] > 2 * 45_000
    advice = text[text.index("no-program") :].partition("</p>")[0]
    assert "aclnn-cts repro FILE --call N" in advice
    assert card.shrink in advice


@pytest.mark.parametrize("reason", [value for name, value in vars(NoProgram).items() if name.isupper()])
def test_every_reason_has_words(reason: str) -> None:
    assert pair(f"no_program.{reason}") is not None


def test_a_page_has_the_shortest_program_of_each_finding_before_any_other() -> None:
    short, long = (ReproductionProgram(language="cpp", text="x" * n) for n in (900_000, 1_000_000))
    assert on_one_page([(long, short), (short,)]) == [(long, short), (short,)]
    assert on_one_page([(long, short), (long, short), (long,)]) == [(short,), (short,), (long,)]
    assert on_one_page([(long,)] * 4) == [(long,)] * 3 + [()]
    assert on_one_page([]) == []
