from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.model import build
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.speclang.load import load_specs
from tests.reports.browser import chromium
from tests.reports.runs import FAULTY, small_run


@pytest.fixture(scope="session", autouse=True)
def _specs_are_read_once() -> Iterator[None]:
    """Each report reads the shipped specs, which takes longer than the rest of a small one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "load_specs", functools.cache(load_specs))
        yield


FIVE = ("conv_tbc_backward", "deep_norm_grad", "embedding_dense_backward", "rms_norm_grad", "softmax_backward")


@pytest.fixture(scope="session")
def five_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On the reference, first phases alone."""
    return small_run(tmp_path_factory.mktemp("five") / "five", *FIVE, phases=1)


@pytest.fixture(scope="session")
def five(five_run: Path) -> Acceptance:
    return acceptance([five_run])


@pytest.fixture(scope="session")
def faulty_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Softmax with wrong values."""
    return small_run(tmp_path_factory.mktemp("faulty") / "faulty", "softmax_backward", adapter=FAULTY.format("value"))


@pytest.fixture(scope="session")
def faulty(faulty_run: Path) -> Acceptance:
    return acceptance([faulty_run])


@pytest.fixture(scope="session")
def faulty_page(faulty: Acceptance) -> str:
    """The page of that run, which opens in English."""
    return render_html(faulty)


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    """One browser for all tests; whoever takes it opens a page of their own."""
    with chromium() as made:
        yield made
