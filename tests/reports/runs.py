"""Small runs to report on, made in seconds."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest

from aclnn_cts.core.target import Target
from aclnn_cts.execution import settings
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.runs.run import RunOptions
from aclnn_cts.runs.run import run as run_engine
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.plan import Profile

FAULTY = "wrong_adapters:Wrong,fault={}"
SUPPORT = Path(__file__).parents[1] / "support"


def small_run(
    path: Path,
    *operators: str,
    adapter: str = "reference",
    profile: str = "quick",
    seed: int = 0,
    phases: int = 2,
    product: str = "atlas-a2",
) -> Path:
    """A run whose parts are smaller than any profile's, under the name of one.

    Its adapter is called in this process: each failure is run again alone, and processes for that take seconds.
    """
    if str(SUPPORT) not in sys.path:
        sys.path.insert(0, str(SUPPORT))
    specs = load_specs()
    options = RunOptions(
        command="run",
        arguments=("--adapter", adapter),
        specs=specs,
        operators=specs.select(operators),
        settings=RunnerSettings(adapter=adapter, target=Target(product=product), phases=phases),
        out=path,
        seed=seed,
        profile=Profile(profile, corners=3, random=3, breaks=1, memory=2, equal_calls=1, life_cycle=1),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "open_host", functools.partial(open_host, isolate=False))
        run_engine(options)
    return path
