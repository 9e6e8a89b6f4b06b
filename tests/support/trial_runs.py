"""A trial runner over any session, and the trials and records of one check."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from aclnn_cts.adapters.protocol import Adapter
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.sandbox.host import InProcessHost
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.trials.plan import Part
from aclnn_cts.trials.trial_runner import TrialRunner

A2 = Target(product="atlas-a2")


@cache
def specs() -> Specs:
    """The operators that the product of the tests has."""
    return load_specs().for_product(A2.product)


def bench(adapter: Adapter, target: Target = A2, *, folders: tuple[Path, ...] = ()) -> TrialRunner:
    known = load_specs(folders) if folders else specs()
    host = InProcessHost(adapter.open(target, known))
    return TrialRunner(
        specs=known, host=host, settings=RunnerSettings(adapter="test", target=target, spec_folders=folders)
    )


def trials(made: TrialRunner, check: str, operator: str, count: int, *, seed: int = 0) -> list[Trial]:
    return list(made.expand(Part(operator, check, check, count=count), seed=seed))


def records(made: TrialRunner, check: str, operator: str, count: int, *, seed: int = 0) -> list[Record]:
    return [item for judged in made.run(trials(made, check, operator, count, seed=seed)) for item in judged.records]
