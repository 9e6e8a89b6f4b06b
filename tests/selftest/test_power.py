"""Seeded faults are found and decoys pass, end to end through the software device, and the command says so."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.cli import faults
from aclnn_cts.cli.main import main
from aclnn_cts.core.env import variable_set
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.selftest.fault_catalogue import read_catalogue
from aclnn_cts.selftest.kill_matrix import Attempt
from aclnn_cts.selftest.power import FAULT_VARIABLE, Task, attempt
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.store.harness_parts import harness_parts
from aclnn_cts.store.manifest import sources_hash
from aclnn_cts.trials.plan import Profile, plan_parts
from tests.adapters.loopback.support import needs_compiler

SMALL = Profile("small", corners=8, random=8, breaks=1, memory=4, equal_calls=1, life_cycle=1)


@pytest.fixture(scope="module")
def specs() -> Specs:
    return load_specs()


def tried(identifier: str, specs: Specs, *, to_end: bool = False) -> Attempt:
    entries = [read_catalogue(specs).find(name) for name in identifier.split(",")]
    subjects = tuple(subject for entry in entries for subject in entry.subjects)
    task = Task(
        id=identifier,
        operator=entries[0].operator,
        seed=0,
        profile=SMALL,
        subjects=subjects,
        decoy=identifier.startswith("decoy."),
        to_end=to_end,
    )
    return attempt(task, specs)[0]


@needs_compiler
@pytest.mark.parametrize(
    ("identifier", "check", "kind"),
    [
        ("softmax.sign", "example", "value"),
        ("embedding.guard-after", "example", "stray-write"),
        ("upsample.leak", "life-cycle/repeated-failure", "leak"),
    ],
)
def test_a_fault_is_found(specs: Specs, identifier: str, check: str, kind: str) -> None:
    result = tried(identifier, specs)
    assert (result.found, result.check, result.kind, result.errors) == (True, check, kind, 0)
    assert len(result.findings) == 1
    assert all(text.startswith(f"{read_catalogue(specs).find(identifier).operator} | ") for text in result.findings)
    assert FAULT_VARIABLE not in os.environ


def test_faults_of_values_and_of_statuses_switched_on_together_share_no_finding(specs: Specs) -> None:
    result = tried("softmax.sign,softmax.invalid-as-inner", specs, to_end=True)
    [value, *statuses] = [text.split(" | ")[1:] for text in result.findings]
    assert value == ["value", "out"]
    # A clause that is not enforced is a mistake of its own.
    assert [kind for kind, *_ in statuses] == ["status"] * 3
    assert len({clause for _, clause, _ in statuses}) == 3


@needs_compiler
@pytest.mark.parametrize(
    ("identifier", "what"),
    [
        ("softmax.sum-forgotten", "value"),
        ("softmax.guard-after", "stray-write"),
        ("embedding.rank-eight-refused", "rejected"),
    ],
)
def test_a_fault_is_one_finding_whatever_shows_it(specs: Specs, identifier: str, what: str) -> None:
    """Life cycles, broken calls and special values show it too; none of them is a fault of its own."""
    operator = read_catalogue(specs).find(identifier).operator
    result = tried(identifier, specs, to_end=True)
    assert len({(found.check, found.dtype) for found, _ in result.failures}) > 1
    [finding] = result.findings
    assert finding.split(" | ")[:2] == [operator, what]


@needs_compiler
@pytest.mark.parametrize("identifier", ["decoy.softmax.reversed-sum", "decoy.softmax.roomy-workspace"])
def test_a_decoy_is_run_to_the_end_and_passes(identifier: str, specs: Specs) -> None:
    result = tried(identifier, specs)
    assert not result.found
    assert result.failures == ()
    assert result.errors == 0
    assert result.cases > 60


def test_the_variable_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULT_VARIABLE, "before")
    with contextlib.suppress(RuntimeError), variable_set(FAULT_VARIABLE, "softmax.leak"):
        assert os.environ[FAULT_VARIABLE] == "softmax.leak"
        raise RuntimeError
    assert os.environ[FAULT_VARIABLE] == "before"


@needs_compiler
def test_the_device_refuses_a_fault_that_it_does_not_know(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "aclnn_cts", "run", "softmax_backward", "--adapter", "loopback", "-o", "run"]
    environment = {**os.environ, FAULT_VARIABLE: "softmax.sing"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 3
    assert "ACLNN_LOOPBACK_FAULT=softmax.sing: not a fault or decoy of this library" in done.stderr


def test_the_first_round_has_a_little_of_everything(specs: Specs) -> None:
    spec = specs["aclnnSoftmaxBackward"]
    parts = plan_parts([spec], product="atlas-a2", chosen=SMALL)
    first = [part.check for part in parts[: parts.index(next(p for p in parts if p.check == "boundary"))]]
    assert first[:2] == ["example", "values"]
    assert {"status", "determinism", "life-cycle/cold-warm", "memory"} <= set(first)
    quick = Profile("quick", corners=200, random=160, breaks=6, memory=24, equal_calls=8, life_cycle=3)
    planned = plan_parts([spec], product="atlas-a2", chosen=quick)
    values = [(part.first, part.count) for part in planned if part.check == "values"]
    assert values == [(0, 28), (28, 20), (48, 152), (0, 160)]
    assert sum(part.count for part in planned if part.check == "determinism") == quick.equal_calls


def came_to(**found: bool) -> Any:
    """Results without a device: what is named is found, or is not; all else is found where it is a fault."""

    def attempts(tasks: Sequence[Task], *, workers: int) -> Iterator[Attempt]:
        for task in tasks:
            seen = found.get(task.id.rpartition(".")[2], not task.decoy)
            yield Attempt(
                id=task.id,
                seed=task.seed,
                found=seen,
                check="values" if seen else "",
                kind="value" if seen else "",
                cases=7,
                seconds=0.0,
                failures=((Fingerprint("aclnnX", "values", "value"), 1),) if seen else (),
            )

    return attempts


def test_the_command_when_all_is_well(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(faults, "attempts", came_to())
    assert main(["faults", "--op", "softmax_backward", "--seeds", "2"]) == 0
    text = capsys.readouterr().out
    assert "softmax.sign" in text
    assert "conv.hang" not in text
    assert "0 accused" in text


def test_a_survivor_comes_first_and_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(faults, "attempts", came_to(sign=False))
    out = tmp_path / "matrix.json"
    assert main(["faults", "--op", "softmax_backward", "-o", str(out)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("softmax.sign")
    assert "SURVIVES" in lines[1]
    written = json.loads(out.read_text())
    assert written["format"] == "aclnn-cts/kill-matrix/1"
    assert written["faults"][0]["by_seed"][0]["found"] is False
    made_by = written["made_by"]
    assert made_by["command"] == "aclnn-cts faults --op softmax_backward -o matrix.json"
    assert made_by["sha256"] == sources_hash()
    assert made_by["parts"] == harness_parts()
    assert made_by["environment"]["python.version"]["known"] == "measured"


def test_a_share_may_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "attempts", came_to(sign=False))
    assert main(["faults", "--op", "softmax_backward", "--min-kill-rate", "0.9"]) == 0
    assert main(["faults", "--op", "softmax_backward", "--min-kill-rate", "0.99"]) == 1


def test_an_equivalent_fault_may_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "attempts", came_to(**{"scale-ignored": False}))
    assert main(["faults", "--fault", "upsample.scale-ignored", "--json"]) == 0


def test_an_accused_decoy_is_an_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(faults, "attempts", came_to(fma=True))
    assert main(["faults", "--op", "conv_tbc_backward", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["decoys"][0]["id"] == "decoy.conv.fma"
    assert document["decoys"][0]["accused"] == [{"seed": 0, "fingerprint": "aclnnX | value"}]


def test_a_sample_is_of_every_class(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(faults, "attempts", came_to())
    assert main(["faults", "--sample", "2", "--seed", "5", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    classes = [row["class"] for row in document["faults"]]
    assert sorted(classes) == sorted(
        2 * ["numerical", "precision", "indexing", "data", "validation", "memory", "state"]
    )
    assert len(document["decoys"]) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fault", "softmax.sing"], "--fault 'softmax.sing': not in the catalogue; did you mean 'softmax.sign'?"),
        (["--fault", "softmax.sign", "--op", "rms_norm_grad"], "--fault softmax.sign: a fault of aclnnSoftmaxBackward"),
        (["--op", "sofmax"], "--op: 'sofmax' is not known"),
        (["--profile", "slow"], "--profile 'slow': expected one of quick, standard, thorough"),
    ],
)
def test_a_mistake_on_the_command_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["faults", *words]) == 2
    assert message in capsys.readouterr().err


def test_the_catalogue_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["faults", "--list", "--op", "conv_tbc_backward", "--json"]) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert entries[0]["operator"] == "aclnnConvTbcBackward"
    assert "decoy.conv.fma" in [entry["id"] for entry in entries]
