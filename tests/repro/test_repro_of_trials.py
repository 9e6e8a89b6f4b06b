"""Programs of trials with several calls: equal calls, life cycles, a broken call and its valid twin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial, trial_to_json
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.repro.cpp import cpp_program
from aclnn_cts.repro.facts import VERBS, CallSequence
from aclnn_cts.repro.python import python_program
from aclnn_cts.repro.write import Programs
from aclnn_cts.trials.checks.life_cycle import LIFE_CYCLES
from aclnn_cts.trials.checks.registry import CHECKS
from aclnn_cts.trials.plan import Part
from tests.support.programs import SPECS, built_program, needs_compiler, run_script, started

SOFTMAX = "aclnnSoftmaxBackward"
EMBEDDING = "aclnnEmbeddingDenseBackward"
RMS = "aclnnRmsNormGrad"


def trials(operator: str, check: str, count: int = 1, constraint: str = "") -> list[Trial]:
    """Trials that a run would make."""
    sampler = Sampler(SPECS[operator], Target(product=SPECS[operator].usual_product))
    part = Part(operator, check, check, constraint=constraint, first=0, count=count)
    return list(CHECKS[check].trials(part, sampler, seed=4))


def program(trial: Trial) -> CallSequence:
    return Programs(specs=SPECS).program(trial)


def trial_file(trial: Trial, folder: Path) -> Path:
    path = folder / "trial.json"
    path.write_text(json.dumps(trial_to_json(trial)))
    return path


@needs_compiler
def test_programs_of_equal_calls_compare_their_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = next(item for item in trials(SOFTMAX, "determinism", 24) if not has_zeros(item))
    made = program(trial)
    assert made.equal == ("out",)
    built = built_program(cpp_program(made), tmp_path)
    script = python_program(made)
    for fault, code in (("softmax.input-changed", 1), ("", 0)):
        monkeypatch.setenv("ACLNN_LOOPBACK_FAULT", fault)
        for result in (started(built), run_script(script, tmp_path)):
            assert result.returncode == code, result.stdout + result.stderr
            assert result.stdout.splitlines()[-1] == ("FAULT" if code else "conforms")


@needs_compiler
def test_programs_of_equal_calls_find_another_order_of_a_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLNN_LOOPBACK_FAULT", "softmax.order-by-chance")
    for number, trial in enumerate(trials(SOFTMAX, "determinism", 24)):
        made = program(trial)
        folder = tmp_path / str(number)
        folder.mkdir()
        scripted = run_script(python_program(made), folder)
        if scripted.returncode == 1:
            assert "elements of call 2 differ from call 1" in scripted.stdout
            built = started(built_program(cpp_program(made), folder))
            assert (built.returncode, built.stdout.splitlines()[-1]) == (1, "FAULT")
            return
    pytest.fail("no trial shows the fault")


def test_equal_calls_are_written_once() -> None:
    [trial] = trials(SOFTMAX, "determinism")
    made = program(trial)
    assert len(made.calls) == 1
    assert made.number == len([step for step in made.steps if step.verb == "judge"]) == 4
    assert cpp_program(made).count("namespace call_") == 1


FAULTS = [
    ("life-cycle/interleaved", SOFTMAX, "softmax.last-executor"),
    ("life-cycle/two-streams", SOFTMAX, "softmax.last-executor"),
    ("life-cycle/repeatable", RMS, "rms.repeat-does-nothing"),
    ("life-cycle/larger-workspace", EMBEDDING, "embedding.workspace-must-match"),
    ("life-cycle/exact-workspace", RMS, "rms.workspace-short"),
    ("life-cycle/repeated-failure", SOFTMAX, "softmax.leak"),
    ("life-cycle/phase-one-alone", SOFTMAX, "softmax.input-changed"),
    ("life-cycle/cold-warm", SOFTMAX, "softmax.input-changed"),
    ("life-cycle/other-attributes", SOFTMAX, "softmax.input-changed"),
]


def test_every_life_cycle_is_shown_below() -> None:
    assert {check for check, _, _ in FAULTS} == set(LIFE_CYCLES)


def has_zeros(trial: Trial) -> bool:
    return any(tensor.data is not None and tensor.data.recipe == "zeros" for _, tensor in trial.case.tensors())


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(("check", "operator", "fault"), FAULTS, ids=str)
def test_both_programs_call_in_the_call_mode_of_a_life_cycle(
    check: str, operator: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of two calls together each must have values of its own, for a mistaken one to show; a sign does not show in zeros.
    trial = next(trial for trial in trials(operator, check, 12) if trial.case.nbytes > 64 and not has_zeros(trial))
    made = program(trial)
    assert {step.verb for step in made.steps} <= set(VERBS)
    script = python_program(made)
    built = built_program(cpp_program(made), tmp_path)
    for injected, code in ((fault, 1), ("", 0)):
        monkeypatch.setenv("ACLNN_LOOPBACK_FAULT", injected)
        for result in (started(built), run_script(script, tmp_path)):
            assert result.returncode == code, result.stdout + result.stderr
            assert result.stdout.splitlines()[-1] == ("FAULT" if code else "conforms")


@needs_compiler
def test_a_broken_call_is_made_beside_its_valid_twin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = next(trial for trial in trials(SOFTMAX, "status", 8, "dim.range") if _dim(trial) > 0)
    made = program(trial)
    assert [(step.number, made.calls[step.call].phases) for step in made.steps if step.verb == "judge"] == [
        (1, 1),
        (2, 2),
    ]
    script = python_program(made)
    # The first call is the broken one, which is refused with another status.
    for injected, code in (("refuse/one@1", 1), ("", 0)):
        monkeypatch.setenv("ACLNN_LOOPBACK_INJECT", injected)
        result = run_script(script, tmp_path)
        assert result.returncode == code, result.stdout + result.stderr


def _dim(trial: Trial) -> int:
    dim = trial.case.arguments["dim"]
    assert isinstance(dim, int)
    return dim


def test_a_call_with_broken_contents_comes_before_its_twin_which_fills_the_operator_cache() -> None:
    [trial] = trials(EMBEDDING, "status", constraint="indices.range")
    assert [step.number for step in program(trial).steps if step.verb == "judge"] == [2, 1]


def test_values_of_what_is_left_open_are_judged_where_the_check_asks_for_them() -> None:
    trial = next(item for item in trials(SOFTMAX, "status", 24, "out.dtype") if item.case.call.phases == 2)
    assert not any(facts.outputs for facts in program(trial).calls)
    valued = program(Trial("values", trial.case))
    assert [facts.outputs for facts in valued.calls] == [("out",)]


def test_one_call_of_several_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = trial_file(trials(SOFTMAX, "layout")[0], tmp_path)
    two = tmp_path / "two.py"
    assert main(["repro", str(trial), "--language", "python", "--call", "2", "-o", str(two)]) == 0
    assert "call 2 of its 2 calls, by itself" in " ".join(capsys.readouterr().err.split())
    assert '"number": 1' in two.read_text()
    assert main(["repro", str(trial), "--call", "4", "-o", str(tmp_path / "x.cpp")]) == 2
    assert "--call 4: the trial of 'layout' makes 2 calls; name one" in " ".join(capsys.readouterr().err.split())
