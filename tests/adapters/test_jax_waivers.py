"""JAX fails the pinned cases of its waivers, and each in the way that its waiver says."""

from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path

import pytest

from aclnn_cts.core.case import Case
from aclnn_cts.core.verdict import Result
from aclnn_cts.findings.waivers.file import Waiver, read_waivers, shipped_waivers
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs
from tests.adapters.test_torch_waivers import judged


def jax_waivers() -> tuple[Waiver, ...]:
    """Without their days."""
    return tuple(
        dataclasses.replace(waiver, expiry=date.max)
        for waiver in read_waivers(shipped_waivers())
        if waiver.id.startswith("jax-cpu.")
    )


def test_pinned_cases_are_valid() -> None:
    specs = load_specs(())
    cases = [pin if isinstance(pin, Case) else pin.case for waiver in jax_waivers() for pin in waiver.cases]
    assert cases
    for case in cases:
        assert evaluate(specs[case.operator], case).broken == (), case.operator


@pytest.mark.slow
def test_jax_fails_the_pinned_cases_as_the_waivers_say(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="JAX is not installed: pip install 'aclnn-cts[jax]'")
    waivers = jax_waivers()
    _, records, notices = judged(tmp_path, "jax", "atlas-a2", waivers)
    assert {record.waiver for record in records if record.waiver} == {waiver.id for waiver in waivers}
    failed = [record for record in records if record.verdict.result == Result.FAILED]
    assert [record.verdict.message for record in failed if not record.waiver] == []
    assert notices == []
