"""Which waiver speaks for a failure, and the trials that waivers pin."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date, datetime, timezone
from types import MappingProxyType
from typing import final

import msgspec

from aclnn_cts.checks.registry import as_trial, check
from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.waivers.file import Waiver
from aclnn_cts.findings.waivers.report import WaiverEvidence, WaiverReport
from aclnn_cts.findings.waivers.scope import (
    admits_fault,
    admits_trial,
    admits_version,
    ignored_line,
    names_adapter,
    one_for_each_output,
    taken_apart,
)
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.counts import PINNED


@final
class Waivers:
    """The waivers that concern one run: applies them to its records and remembers what they were needed for."""

    def __init__(
        self,
        waivers: Iterable[Waiver],
        *,
        adapter: str,
        version: str | None,
        today: date,
        product: str | None = None,
        operators: Collection[str] | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
        calls: Callable[[Trial], Iterable[Case]] = lambda _trial: (),
    ) -> None:
        """Choose by adapter (as `--adapter` has it) and version of its library, None where that is not known.

        - `product`: the run's; cases pinned for another one are left alone. None: all are taken.
        - `operators`: the run's, by C name; `ignored` counts waivers of these alone. None: of all.
        - `environment`: what the adapter's session says of itself, where the command line leaves an option out.
        - `calls`: the calls of a trial that failed. A predicate admits it where it holds of one of them: of the case
          itself, or of what a law made of it.
        """
        named = [waiver for waiver in waivers if names_adapter(waiver.scope, adapter, environment)]
        chosen = [waiver for waiver in named if admits_version(waiver, version)]
        self._valid = tuple(waiver for waiver in chosen if waiver.expiry >= today)
        self._expired = tuple(waiver for waiver in chosen if waiver.expiry < today)
        self._calls = calls
        self._pinned = {
            waiver.id: tuple(pin for pin in waiver.cases if product in (None, _case_of(pin).product))
            for waiver in self._valid
        }
        self._pins = frozenset(_id_of(pin) for pins in self._pinned.values() for pin in pins)
        self._bare = frozenset(_look_of(pin) for pins in self._pinned.values() for pin in pins if isinstance(pin, Case))
        self.evidence = WaiverEvidence(pins={name: tuple(map(_id_of, pins)) for name, pins in self._pinned.items()})
        """What all records that were applied say of the waivers."""
        ignored = (
            waiver
            for waiver in named
            if not admits_version(waiver, version)
            and (not waiver.scope.product or product in (None, *waiver.scope.product))
            and (not waiver.scope.operator or operators is None or set(operators) & set(waiver.scope.operator))
        )
        self.ignored = ignored_line(ignored, adapter, version)
        """One line about waivers for other versions of the adapter's library; empty where there are none."""

    @property
    def pinned(self) -> tuple[Trial | Case, ...]:
        """The cases that are to run first."""
        return tuple({_id_of(pin): pin for pins in self._pinned.values() for pin in pins}.values())

    def apply(self, record: Record) -> Record:
        """The record; where it is a failure, with the id of the first waiver that speaks for it.

        A waiver that names outputs speaks for them alone: of a call in which another output is wrong too, that one
        needs a waiver of its own.
        """
        result = record.verdict.result
        if not self._valid or result not in (Result.PASSED, Result.FAILED):
            return record
        self._see_pin(record)
        judged = self.evidence.judged
        judged.update(
            waiver.id
            for waiver in self._valid
            if waiver.id not in judged and admits_trial(waiver, record, [record.trial.case])
        )
        needed = self.needed(record)
        if not needed:
            return record
        judged.update(waiver.id for waiver in needed)
        self.evidence.used.update(waiver.id for waiver in needed)
        return msgspec.structs.replace(record, waiver=needed[0].id)

    def needed(self, record: Record) -> list[Waiver]:
        """The waivers that speak for a record together, one for each output at fault; none where it is unwaived."""
        if record.verdict.result != Result.FAILED:
            return []
        admitting = [waiver for waiver in self._valid if admits_fault(waiver.scope, record)]
        if not admitting:
            return []
        # A valid twin goes no further than phase one; it shows no fault but its own rejection.
        rejected = record.verdict.kind == Fault.REJECTED
        calls = (case for case in self._calls(record.trial) if rejected or case.call.phases != 1)
        cases = [record.trial.case, *calls]
        speaking = [waiver for waiver in admitting if admits_trial(waiver, record, cases)]
        return one_for_each_output(record, speaking)

    def explains(self, record: Record) -> bool:
        """Whether waivers speak for a failure."""
        return bool(self.needed(record))

    def _see_pin(self, record: Record) -> None:
        if not self._pins:
            return
        outcomes = self.evidence.passed if record.verdict.result == Result.PASSED else self.evidence.failed
        if record.trial_id in self._pins:
            outcomes.add(record.trial_id)
        # An id costs more than judging a small case does.
        if _look_of(record.trial.case) in self._bare and (identifier := case_id(record.trial.case)) in self._pins:
            outcomes.add(identifier)

    def report(self) -> WaiverReport:
        """What all records that were applied say of the waivers."""
        return self.evidence.report(self._valid, expired=self._expired, ignored=self.ignored)


def waivers_of_run(
    waivers: Iterable[Waiver],
    *,
    settings: BenchSettings,
    environment: Mapping[str, str],
    specs: Specs,
    operators: Iterable[Spec] | None = None,
) -> Waivers:
    """The waivers as of today for an open adapter whose session says `environment` of itself.

    `operators` are those of the run; None: all.
    """
    return Waivers(
        waivers,
        adapter=settings.adapter,
        version=environment.get("version"),
        today=datetime.now(timezone.utc).date(),
        product=settings.target.product,
        operators=None if operators is None else {spec.operator for spec in operators},
        environment=environment,
        calls=lambda trial: check(trial.check, where="trial").calls(trial, specs[trial.case.operator]),
    )


def pinned_trials(waivers: Waivers, operators: Iterable[Spec]) -> tuple[Trial, ...]:
    """The trials that are to run first, of these operators and no others. They are counted apart (`counts.PINNED`)."""
    chosen = {spec.operator: spec for spec in operators}
    return tuple(
        _as_pinned(chosen[_case_of(pin).operator], pin) for pin in waivers.pinned if _case_of(pin).operator in chosen
    )


def _as_pinned(spec: Spec, pin: Trial | Case) -> Trial:
    trial = as_trial(spec, pin)
    origin = msgspec.structs.replace(trial.case.origin, kind=PINNED)
    return msgspec.structs.replace(trial, case=msgspec.structs.replace(trial.case, origin=origin))


def pins_for(waivers: Iterable[Waiver], adapter: str, operators: Iterable[Spec]) -> dict[str, dict[str, Trial]]:
    """By operator, and by waiver and number, the cases pinned for an adapter of that name.

    Before one is open: its version, its device and the options that it has by default are not looked at.
    """
    chosen = {spec.operator: spec for spec in operators}
    found: dict[str, dict[str, Trial]] = {name: {} for name in chosen}
    own = taken_apart(adapter)[0]
    for waiver in waivers:
        if {taken_apart(word)[0] for word in waiver.scope.adapter} & {own, own.partition(":")[0]}:
            for number, pin in enumerate(waiver.cases, 1):
                if (name := _case_of(pin).operator) in chosen:
                    found[name][f"{waiver.id}-{number}"] = _as_pinned(chosen[name], pin)
    return found


def _case_of(pin: Trial | Case) -> Case:
    return pin.case if isinstance(pin, Trial) else pin


def _look_of(case: Case) -> tuple[object, ...]:
    """What cases of one id have in common, and few others have."""
    return (case.operator, case.product, frozenset((name, tensor.shape) for name, tensor in case.tensors()))


def _id_of(pinned: Trial | Case) -> str:
    return case_id(pinned) if isinstance(pinned, Case) else pinned.id
