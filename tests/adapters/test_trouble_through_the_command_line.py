"""What a user sees of a device that crashes, hangs, breaks or is lost: verdicts, files and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from aclnn_cts.adapters.loopback_build import build
from aclnn_cts.cli.main import main
from aclnn_cts.core.trial import EarlierCall
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.store.run_directory import RunDirectory
from tests.adapters.loopback.support import needs_compiler
from tests.soak.injection import VARIABLE

pytestmark = needs_compiler

CALLS = 8


class Ran(NamedTuple):
    code: int
    out: str
    err: str
    path: Path

    @property
    def records(self) -> list[Record]:
        with RunDirectory(self.path).results() as results:
            return list(results.records())


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs calls with outputs of 100, 101, ... elements on the software device, with this injected."""
    build()
    cases = tmp_path / "cases.jsonl"
    lines = []
    for number in range(CALLS):
        tensor: dict[str, object] = {"shape": [100 + number], "dtype": "FLOAT", "format": "ND"}
        data: dict[str, object] = {"recipe": "normal", "seed": number}
        arguments = {
            "gradOutput": {"tensor": {**tensor, "data": data}},
            "output": {"tensor": {**tensor, "data": {**data, "recipe": "softmax"}}},
            "dim": {"int": 0},
            "out": {"tensor": tensor},
        }
        head = {"format": "aclnn-cts/case/1", "operator": "aclnnSoftmaxBackward", "product": "atlas-a2"}
        lines.append(json.dumps({**head, "arguments": arguments}))
    cases.write_text("\n".join(lines) + "\n")

    def go(injected: str, *words: str) -> Ran:
        monkeypatch.setenv(VARIABLE, injected)
        path = tmp_path / "run"
        arguments = ["run", "--adapter", "loopback:timeout=1", "--cases", str(cases), "-o", str(path)]
        code = main([*arguments, *words])
        out, err = capsys.readouterr()
        return Ran(code, out, err, path)

    return go


@pytest.mark.slow
def test_verdicts_files_and_the_last_line_tell_of_a_crash_and_a_hang(run: Run) -> None:
    ran = run("abort@numel=102,hang/kernel@numel=104")
    assert ran.code == 1
    assert (
        f"RESULT verdict=fails judged=100% cases={CALLS} passed={CALLS - 2} failed=2 waived=0 errors=0 skipped=0"
        in ran.out
    )
    crash, hang = (record for record in ran.records if record.verdict.result == Result.FAILED)
    assert (crash.verdict.kind, hang.verdict.kind) == ("crash", "hang")
    assert crash.attempts[0][0].message == "the runner died by SIGABRT; its last words: ACLNN_LOOPBACK_INJECT: abort"
    assert "507046 (stream synchronisation timed out)" in hang.attempts[0][0].message
    # Each was run again by itself, failed again, and can be replayed from a file of its own.
    assert [record.verdict.facts["alone"] for record in (crash, hang)] == ["fails too"] * 2
    files = sorted((ran.path / "failures").glob("*.json"))
    assert len(files) == 2
    assert main(["replay", str(files[0]), "--adapter", "loopback", "-o", str(ran.path.parent / "again")]) == 1
    manifest = json.loads((ran.path / "manifest.json").read_text())
    assert manifest["environment"][f"adapter.{VARIABLE}"]["value"] == "abort@numel=102,hang/kernel@numel=104"


@pytest.mark.slow
def test_a_crash_that_only_company_brings_is_marked(run: Run) -> None:
    ran = run("abort/two@7")
    (crash,) = (record for record in ran.records if record.verdict.result == Result.FAILED)
    assert ran.code == 1
    assert crash.verdict.facts["alone"] == "conforms"
    assert "run again alone in a fresh process it conforms; order-dependent: it fails again" in crash.verdict.message
    # Which calls they were does not matter to it: as many of its own do as well.
    assert crash.after == (EarlierCall(crash.trial.case, times=6),)


@pytest.mark.slow
@pytest.mark.parametrize("numel", [100, 103, 100 + CALLS - 1])
def test_a_fault_that_shows_late_is_that_of_the_call_that_caused_it(run: Run, numel: int) -> None:
    ran = run(f"poison-late@numel={numel}")
    assert ran.code == 1
    (failed,) = (record for record in ran.records if record.verdict.result == Result.FAILED)
    assert failed.trial.case.nbytes == 3 * 4 * numel
    assert "507015 (AI core exception)" in failed.verdict.message
    assert "it shows in a call after this one, and does so again where this one alone is before it" in str(failed)
    assert failed.verdict.facts["alone"] == "fails too"


@pytest.mark.slow
def test_a_fault_that_no_call_causes_alone_is_told_with_its_batch(run: Run) -> None:
    ran = run("poison-late@5")
    assert ran.code == 1
    (failed,) = (record for record in ran.records if record.verdict.result == Result.FAILED)
    assert failed.trial.case.nbytes == 3 * 4 * 105
    assert "only after all 5 calls before it in its batch (cases " in failed.verdict.message
    assert failed.verdict.facts["alone"] == "conforms"


@pytest.mark.slow
def test_a_poisoned_context_is_the_fault_of_the_call_that_poisoned_it(run: Run) -> None:
    ran = run("poison@numel=103")
    assert ran.code == 1
    (failed,) = (record for record in ran.records if record.verdict.result == Result.FAILED)
    assert failed.trial.case.nbytes == 3 * 4 * 103
    assert "507015 (AI core exception)" in failed.verdict.message


def test_a_device_that_fails_by_itself_gives_no_verdict_on_the_call(run: Run) -> None:
    ran = run("lost@numel=103")
    assert ran.code == 3
    (lost,) = (record for record in ran.records if record.verdict.result == Result.ERROR)
    assert "507010 (lost heartbeat)" in lost.verdict.message
    assert sum(record.verdict.result == Result.PASSED for record in ran.records) == CALLS - 1


def test_an_injection_that_nobody_can_read_is_refused(run: Run) -> None:
    ran = run("explode@3")
    assert ran.code == 3
    assert "ACLNN_LOOPBACK_INJECT: explode@3; expected <what>[/<place>]@<which>" in ran.err
