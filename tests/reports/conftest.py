from __future__ import annotations

from pathlib import Path

import pytest

from aclnn_cts.core.acceptance import Acceptance
from aclnn_cts.engine.acceptance.build import acceptance
from tests.reports.runs import FAULTY, small_run


@pytest.fixture(scope="session")
def five_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All five operators on the reference, first phases alone."""
    return small_run(tmp_path_factory.mktemp("five") / "five", phases=1)


@pytest.fixture(scope="session")
def faulty_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Softmax with wrong values."""
    return small_run(tmp_path_factory.mktemp("faulty") / "faulty", "softmax_backward", adapter=FAULTY.format("value"))


@pytest.fixture(scope="session")
def faulty(faulty_run: Path) -> Acceptance:
    return acceptance([faulty_run])
