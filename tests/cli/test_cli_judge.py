from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from aclnn_cts.candidates.schemas import schemas
from tests.candidates import kernels
from tests.cli.conftest import Called

FILE = Path(kernels.__file__)


def test_judge_prints_one_object_a_line(call: Callable[..., Called]) -> None:
    words = [f"{FILE}:{name}" for name in ("raises", "crashes")]
    called = call("judge", *words, "--op", "softmax_backward", "--json", "--seed", "3", "--workers", "2")
    assert called.code == 1
    assert {line["candidate"] for line in called.lines} == set(words)
    for line in called.lines:
        jsonschema.validate(line, schemas()["judgement"])
        assert (line["verdict"], line["seed"]) == ("fails", 3)


def test_judge_says_verdict_finding_and_isolation(call: Callable[..., Called]) -> None:
    called = call("judge", f"{FILE}:raises", "--op", "softmax_backward")
    assert called.code == 1
    assert called.out.startswith(f"fails: {FILE}")
    assert "no such kernel" in called.out
    assert "seed" in called.out
    assert "ran confined" in " ".join(called.out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing.py:f", "--op", "softmax_backward"), "no file nothing.py"),
        ((f"{FILE}:right", "--op", "no_operator"), "no_operator"),
        ((f"{FILE}:right", "--op", "softmax_backward", "--budget", "soon"), "budget"),
        ((f"{FILE}:right", "--op", "softmax_backward", "--profile", "huge"), "huge"),
        (("--op", "softmax_backward"), "CANDIDATE"),
    ],
)
def test_judge_refuses_wrong_words(call: Callable[..., Called], words: tuple[str, ...], message: str) -> None:
    called = call("judge", *words)
    assert called.code == 2
    assert message in called.err
