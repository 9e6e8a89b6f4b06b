"""Programs of trials that take more than one plain call: laws, life cycles, a broken call beside its valid twin."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aclnn_cts.checks.laws import exact_law, law_ids
from aclnn_cts.checks.life_cycle import LIFE_CYCLES
from aclnn_cts.checks.plan import Part
from aclnn_cts.checks.registry import CHECKS
from aclnn_cts.cli.main import main
from aclnn_cts.core.law import Law, LawCall, LawCheck, LawInput
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial, trial_to_json
from aclnn_cts.execution.judging import Judges
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.repro import write
from aclnn_cts.repro.cpp import cpp_program
from aclnn_cts.repro.facts import VERBS, Program
from aclnn_cts.repro.python import python_program
from aclnn_cts.repro.relations import Side, Slot, relations_of
from aclnn_cts.repro.write import Programs
from tests.support.programs import SPECS, built_program, home, needs_compiler, run_script, started

SOFTMAX = "aclnnSoftmaxBackward"
EMBEDDING = "aclnnEmbeddingDenseBackward"
RMS = "aclnnRmsNormGrad"


def trials(operator: str, check: str, count: int = 1, constraint: str = "") -> list[Trial]:
    """Trials that a run would make."""
    sampler = Sampler(SPECS[operator], Target(product=SPECS[operator].usual_product))
    part = Part(operator, check, "law", constraint=constraint, first=0, count=count)
    return list(CHECKS[check].trials(part, sampler, seed=4))


def program(trial: Trial) -> Program:
    return Programs(specs=SPECS).program(trial)


def trial_file(trial: Trial, folder: Path) -> Path:
    path = folder / "trial.json"
    path.write_text(json.dumps(trial_to_json(trial)))
    return path


def total(side: Side, row: int, given: dict[Slot, np.ndarray]) -> float:
    return side.constant + sum(
        term.factor * float(given[term.slot][term.first + row * term.step]) for term in side.terms
    )


@pytest.mark.parametrize("operator", list(SPECS))
def test_relations_are_what_the_laws_check(operator: str) -> None:
    spec, judge = SPECS[operator], Judges(has_statuses=True).of(SPECS[operator])
    random = np.random.default_rng(7)
    for check in law_ids(spec):
        for trial in trials(operator, check, 2):
            law, base, calls = exact_law(trial, judge)
            relations = relations_of(law, base, calls)
            assert relations is not None, check
            noisy = [
                replace(
                    call,
                    outputs={
                        name: replace(output, got=random.integers(-8, 8, output.got.shape).astype(np.float64))
                        for name, output in call.outputs.items()
                    },
                )
                for call in calls
            ]
            given = {
                (place, name): output.got.reshape(-1)
                for place, call in enumerate(noisy)
                for name, output in call.outputs.items()
            }
            checks = list(law.check(base, noisy))
            assert [relation.said for relation in relations] == [check.relation for check in checks]
            for relation, compared, exact in zip(relations, checks, law.check(base, calls), strict=True):
                rows = [(run, row) for run in relation.runs for row in range(run.rows)]
                assert np.allclose([total(run.left, row, given) for run, row in rows], compared.left.reshape(-1))
                assert np.allclose([total(run.right, row, given) for run, row in rows], compared.right.reshape(-1))
                bound = np.where(np.isnan(exact.bound), np.inf, exact.bound)
                assert np.array_equal(relation.bounds.reshape(bound.shape), bound)


def squares(trial: Trial) -> tuple[Law, LawInput, list[LawCall]]:
    """A law that is no sum of elements."""
    law, base, calls = exact_law(trial, Judges(has_statuses=True).of(SPECS[trial.case.operator]))

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        got = done[0].outputs["out"].got
        yield LawCheck(output="out", left=got**2, right=got**2, bound=got, relation="squares")

    return replace(law, check=check), base, calls


def test_a_law_that_is_no_sum_is_left_to_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    [trial] = trials(SOFTMAX, "law/zero")
    assert relations_of(*squares(trial)) is None
    monkeypatch.setattr(write, "exact_law", lambda trial, judge: squares(trial))
    made = program(trial)
    assert "aclnn-cts replay FILE" in made.beyond
    for text in (cpp_program(made), python_program(made)):
        assert text.count("aclnn-cts replay FILE") == 2


@needs_compiler
def test_a_law_s_program_makes_its_calls_and_checks_what_they_have_to_do_with_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [trial] = trials(SOFTMAX, "law/split")
    programs = tmp_path / "programs"
    file = trial_file(trial, tmp_path)
    assert main(["repro", str(file), "--language", "cpp,python", "-o", str(programs)]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "A trial of law/split: a batch cut in two gives the same results as the whole." in said
    built = built_program((programs / "repro.cpp").read_text(), tmp_path)
    for fault, code in (("softmax.sign", 1), ("", 0)):
        monkeypatch.setenv("ACLNN_LOOPBACK_FAULT", fault)
        for result in (started(built), started(sys.executable, programs / "repro.py", home().lib64 / "libascendcl.so")):
            assert result.returncode == code, result.stdout + result.stderr
            lines = result.stdout.splitlines()
            ends = [f"call {n}: {'does not conform' if code else 'conforms'}" for n in (1, 2, 3)]
            assert [line for line in lines if line in ends] == ends
            assert any("and its two parts side by side" in line for line in lines)
            assert lines[-1] == ("FAULT" if code else "conforms")


@needs_compiler
def test_a_relation_that_does_not_hold_is_told_row_by_row(tmp_path: Path) -> None:
    made = program(trials(SOFTMAX, "law/adjoint")[0])
    [relation] = made.relations
    [run] = relation.runs
    other = replace(run, right=replace(run.right, constant=run.right.constant + 5.0))
    wrong = replace(made, relations=(replace(relation, runs=(other,)),))
    for result in (started(built_program(cpp_program(wrong), tmp_path)), run_script(python_program(wrong), tmp_path)):
        assert result.returncode == 1, result.stdout + result.stderr
        assert "out[] (the scalar product) is" in result.stdout
        assert "1 of 1 do not hold" in result.stdout
        assert "conforms\n" in result.stdout


def test_equal_calls_are_written_once() -> None:
    [trial] = trials(SOFTMAX, "law/repeat")
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
    ("life-cycle/phase-one-alone", SOFTMAX, "softmax.sign"),
    ("life-cycle/cold-warm", SOFTMAX, "softmax.sign"),
    ("life-cycle/other-attributes", SOFTMAX, "softmax.sign"),
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
    for injected, code in (("softmax.dim-high-accepted", 1), ("", 0)):
        monkeypatch.setenv("ACLNN_LOOPBACK_FAULT", injected)
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
    trial = trial_file(trials(SOFTMAX, "law/split")[0], tmp_path)
    two = tmp_path / "two.py"
    assert main(["repro", str(trial), "--language", "python", "--call", "2", "-o", str(two)]) == 0
    assert "call 2 of its 3 calls, by itself" in " ".join(capsys.readouterr().err.split())
    assert '"number": 1' in two.read_text()
    assert main(["repro", str(trial), "--call", "4", "-o", str(tmp_path / "x.cpp")]) == 2
    assert "--call 4: the trial of 'law/split' makes 3 calls; name one" in " ".join(capsys.readouterr().err.split())
