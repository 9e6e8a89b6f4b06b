"""A run of several operators shows each as it ends."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.cli.conftest import Called

LINE = re.compile(r"^\d:\d\d:\d\d  (\w+): (\d+) passed, (\d+) failed", re.MULTILINE)
FEW = ("--max-cases", "3")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_each_operator_is_shown_as_it_ends(call: Callable[..., Called], workers: str) -> None:
    names = ("tanh_backward", "leaky_relu_backward")
    called = call("run", *names, "--adapter", "reference", "-o", "out", "--workers", workers, *FEW)
    assert called.code == 0
    found = {name: (int(passed), int(failed)) for name, passed, failed in LINE.findall(called.err)}
    assert set(found) == {"TanhBackward", "LeakyReluBackward"}
    [passed] = re.findall(r"RESULT .* passed=(\d+)", called.out)
    assert sum(number for number, _ in found.values()) == int(passed)
    assert not any(failed for _, failed in found.values())


def test_a_run_of_one_operator_shows_no_line(call: Callable[..., Called]) -> None:
    called = call("run", "tanh_backward", "--adapter", "reference", "-o", "out", *FEW)
    assert LINE.findall(called.err) == []
