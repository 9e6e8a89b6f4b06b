"""A library is suspected to be built for another SoC only where the lists of two products decide every such call."""

from __future__ import annotations

from pathlib import Path

import pytest

from aclnn_cts.core.case import Origin
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.runs.product_tables import OtherProductComparison
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.events import BatchJudged
from aclnn_cts.trials.trial_runner import TrialRunner

SPECS = load_specs()
SPEC = SPECS["aclnnSoftmaxBackward"]
TARGET = Target(product="atlas-a2")


@pytest.mark.parametrize(
    ("refused", "suspected"),
    [
        ("dtype(gradOutput) == BF16 or dtype(out) == BF16", True),
        ("dtype(gradOutput) == FLOAT", False),
        # Some calls with BF16 pass, so that the dtype is not what decides.
        ("dtype(out) == BF16 and rank(out) == 2", False),
        ("rank(gradOutput) >= 0", False),
    ],
)
def test_only_a_dtype_that_decides_every_call_tells_of_another_soc(
    refused: str, suspected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "support")
    adapter = f"wrong_adapters:Refusing,when={refused}"
    sampler = Sampler(SPEC, TARGET)
    trials = [
        Trial("values", sampler.case(sampler.draw(StreamChoices(0, "soc", number), budget=64), origin=Origin("valid")))
        for number in range(40)
    ]
    tables = OtherProductComparison(product=TARGET.product, specs=[SPEC])
    with open_host(adapter, target=TARGET, specs=SPECS, isolate=False) as host:
        runner = TrialRunner(specs=SPECS, host=host, settings=RunnerSettings(adapter=adapter, target=TARGET))
        for judged in runner.run(trials):
            tables(BatchJudged(records=judged.records))
    assert bool(tables.suspicion) == suspected
    assert ("as on atlas-training" in tables.suspicion) == suspected
