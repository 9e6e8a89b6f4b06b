"""Small runs to report on, made in seconds."""

from __future__ import annotations

import sys
from pathlib import Path

from aclnn_cts.core.target import Target
from aclnn_cts.engine.plan import Profile
from aclnn_cts.engine.run import RunOptions
from aclnn_cts.engine.run import run as run_engine
from aclnn_cts.engine.settings import BenchSettings
from aclnn_cts.spec.load import load_specs

FAULTY = "wrong_adapters:Wrong,fault={}"
ENGINE_TESTS = Path(__file__).parents[1] / "engine"


def small_run(
    path: Path,
    *operators: str,
    adapter: str = "reference",
    profile: str = "quick",
    seed: int = 0,
    phases: int = 2,
    product: str = "atlas-a2",
) -> Path:
    """A run whose parts are smaller than any profile's, under the name of one."""
    if str(ENGINE_TESTS) not in sys.path:
        sys.path.insert(0, str(ENGINE_TESTS))
    specs = load_specs()
    run_engine(
        RunOptions(
            command="run",
            arguments=("--adapter", adapter),
            specs=specs,
            operators=specs.select(operators),
            settings=BenchSettings(adapter=adapter, target=Target(product=product), phases=phases),
            out=path,
            seed=seed,
            profile=Profile(profile, random=6, breaks=1, memory=2, laws=1, life_cycle=1),
        )
    )
    return path
