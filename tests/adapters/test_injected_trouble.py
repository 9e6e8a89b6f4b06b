"""Crashes, aborts, exits, hangs and faults inside the C interface cost the call that they come to, and none else."""

from __future__ import annotations

import pytest

from aclnn_cts.adapters.loopback_build import build
from tests.adapters.loopback.support import needs_compiler
from tests.soak.injection import DEEDS, VARIABLE, injected_device, mistakes, orders, plan, run

pytestmark = needs_compiler

INJECTIONS = 30


@pytest.mark.slow
def test_thirty_injected_troubles_lose_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    build()
    monkeypatch.setenv(VARIABLE, orders())
    planned = plan(INJECTIONS, slow=2)
    assert sum(item.deed is not None for item in planned) == INJECTIONS
    assert {item.deed for item in planned} == {None, *DEEDS}
    with injected_device() as host:
        assert VARIABLE in host.environment
        records = run(planned, host)
    assert mistakes(planned, records) == []
