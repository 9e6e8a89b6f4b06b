from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import ALONE_FACT, Record, Result, SkipReason
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.waivers.file import Waiver, read_waivers, shipped_waivers
from aclnn_cts.runs.run import RunOptions, run
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.events import BatchJudged, Event, Notice
from aclnn_cts.store.summary import Summary
from aclnn_cts.trials.plan import Profile

PRODUCTS = ("atlas-a2", "atlas-training", "atlas-inference")
SMALL = Profile("small", random=6, breaks=1, memory=2, equal_calls=1, life_cycle=1)


def waivers_for(adapter: str | None = None) -> tuple[Waiver, ...]:
    """Those of torch that ship, without their days; put to another adapter where one is named."""
    waivers = (dataclasses.replace(waiver, expiry=date.max) for waiver in read_waivers(shipped_waivers()))
    torchs = tuple(waiver for waiver in waivers if waiver.id.startswith("torch-cpu."))
    if adapter is None:
        return torchs
    return tuple(
        dataclasses.replace(
            item, scope=msgspec.structs.replace(item.scope, adapter=[adapter], binding=None), versions=None
        )
        for item in torchs
    )


def judged(
    tmp_path: Path, adapter: str, product: str, waivers: tuple[Waiver, ...], *, profile: Profile | None = None
) -> tuple[Summary, list[Record], list[str]]:
    specs = load_specs(())
    records: list[Record] = []
    notices: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, BatchJudged):
            records.extend(event.records)
        if isinstance(event, Notice):
            notices.append(event.message)

    options = RunOptions(
        command="run",
        arguments=(),
        specs=specs,
        operators=specs.select(()),
        settings=RunnerSettings(adapter=adapter, target=Target(product=product)),
        out=tmp_path / product,
        profile=profile,
        waivers=waivers,
    )
    return run(options, [listen]), records, notices


CRASHES = {Fault.CRASH, Fault.GUARD, Fault.READ}
"""Kinds of faults of calls that may be ones that the document rejects."""


def pinned(waivers: tuple[Waiver, ...], product: str) -> Iterator[tuple[str, Case]]:
    for waiver in waivers:
        for pin in waiver.cases:
            case = pin if isinstance(pin, Case) else pin.case
            if case.product == product:
                yield waiver.id, case


def test_pinned_cases_are_valid() -> None:
    specs = load_specs(())
    crashes = {waiver.id for waiver in waivers_for() if set(waiver.scope.kind) <= CRASHES}
    for product in PRODUCTS:
        for identifier, case in pinned(waivers_for(), product):
            # What crashes torch may be a call that the document rejects.
            if identifier not in crashes:
                assert evaluate(specs[case.operator], case).broken == (), identifier


def test_an_entry_is_pinned_for_every_product_that_it_speaks_for() -> None:
    specs = load_specs(())
    waivers = waivers_for()
    found = {product: {identifier for identifier, _ in pinned(waivers, product)} for product in PRODUCTS}
    for waiver in waivers:
        assert waiver.scope.operator is not None
        (operator,) = waiver.scope.operator
        spoken_for = set(waiver.scope.product or specs[operator].products) & set(PRODUCTS)
        assert {product for product in PRODUCTS if waiver.id in found[product]} == spoken_for


def below_the_bar(records: Iterable[Record]) -> Iterator[str]:
    """Operators with fewer than 90 % of their valid calls judged on values, and dtypes without any such call.

    Judged on values is a call that failed, or one at least half of whose output elements were compared.
    """
    planned: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    dtypes: dict[tuple[str, str, str], bool] = {}
    for record in records:
        verdict, case = record.verdict, record.trial.case
        valid = record.trial.check in ("example", "boundary", "precision", "values")
        # A call that is too large to be made has its status judged, and no values.
        valid = valid and case.call.phases == 2
        if not valid or "twin" in record.trial.parameters or verdict.kind == SkipReason.OPEN:
            continue
        elements = sum(item.elements for item in verdict.deviations)
        if verdict.result == Result.PASSED and elements == 0:
            continue  # all that it returns is empty
        compared = elements - sum(item.open for item in verdict.deviations)
        good = verdict.result == Result.FAILED or (verdict.result == Result.PASSED and 0 < elements <= 2 * compared)
        planned[case.operator] += 1
        judged[case.operator] += good
        for name, tensor in case.tensors():
            key = (case.operator, name, tensor.dtype)
            dtypes[key] = dtypes.get(key, False) or good
    for operator, number in planned.items():
        if judged[operator] < 0.9 * number:
            yield f"{operator}: {judged[operator]} of {number} valid calls"
    yield from (" ".join(key) for key, good in dtypes.items() if not good)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("product", "profile"), [("atlas-a2", SMALL), ("atlas-training", None), ("atlas-inference", None)]
)
def test_torch_fails_as_the_waivers_say_and_in_no_other_way(
    tmp_path: Path, product: str, profile: Profile | None
) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    waivers = waivers_for()
    summary, records, notices = judged(tmp_path, "torch", product, waivers, profile=profile)
    pins = [(identifier, case_id(case)) for identifier, case in pinned(waivers, product)]
    assert [(record.waiver, case_id(record.trial.case)) for record in records[: len(pins)]] == pins
    failed = [record for record in records if record.verdict.result == Result.FAILED]
    assert [record.verdict.message for record in failed if not record.waiver] == []
    assert not any(ALONE_FACT in record.verdict.facts for record in failed), "a waived failure is not run again"
    assert len(failed) > (len(pins) + 20 if profile else len(pins) - 1)
    assert list(below_the_bar(records[len(pins) :])) == []
    assert (summary.total.errors, notices) == (0, [])


def test_entries_that_an_implementation_has_mended_are_reported(tmp_path: Path) -> None:
    waivers = waivers_for("reference")
    _, records, notices = judged(tmp_path, "reference", "atlas-a2", waivers)
    assert {record.verdict.result for record in records} == {Result.PASSED, Result.SKIPPED}
    pins = [identifier for identifier, _ in pinned(waivers, "atlas-a2")]
    # A call that succeeds where the document leaves the values open is not judged.
    mended = [name for name, item in zip(pins, records, strict=True) if item.verdict.result == Result.PASSED]
    assert [notice.partition(": waiver ")[2] for notice in notices] == [
        f"{identifier}: its pinned cases pass now; remove it" for identifier in dict.fromkeys(mended)
    ]
