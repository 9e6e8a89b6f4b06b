"""Which waiver speaks for a failure, and which waivers a run shows to be expired or no longer needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from types import MappingProxyType
from typing import final

import msgspec
from packaging.version import InvalidVersion, Version

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.engine.promises import as_trial, promise
from aclnn_cts.engine.settings import BenchSettings
from aclnn_cts.engine.waiver_file import Scope, Waiver
from aclnn_cts.spec.load import Specs
from aclnn_cts.spec.model import Spec

__all__ = ["WaiverEvidence", "WaiverReport", "Waivers", "pinned_trials", "pins_for", "waivers_of_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverReport:
    """What a run says of the waivers that concern it, in the order of the files."""

    expired: tuple[Waiver, ...]
    """They speak for nothing any more and fail the run."""
    mended: tuple[Waiver, ...]
    """Each of their pinned cases for this product was judged, and none failed."""
    unused: tuple[Waiver, ...]
    """Trials in their scope were judged, and none failed as they say."""

    def violations(self) -> tuple[Note, ...]:
        """Why the run fails: for `Summary.violate`."""
        return tuple(
            Note(
                f"{waiver.where}: waiver {waiver.id} expired on {waiver.expiry}; "
                f"{waiver.owner} renews it or has it mended",
                NoteCode.EXPIRED,
                {"waiver": waiver.id, "owner": waiver.owner, "expiry": waiver.expiry.isoformat()},
            )
            for waiver in self.expired
        )

    def notices(self) -> tuple[str, ...]:
        """What the owners should know."""
        return (
            *(f"{waiver.where}: waiver {waiver.id}: its pinned cases pass now; remove it" for waiver in self.mended),
            *(
                f"{waiver.where}: waiver {waiver.id}: nothing in its scope failed in this run; see whether it is needed"
                for waiver in self.unused
            ),
        )


class WaiverEvidence(msgspec.Struct):
    """What the records of a process, or of several together, say of waivers; plain JSON values when encoded."""

    pins: dict[str, tuple[str, ...]] = {}
    """Of each waiver that speaks, by its id: the ids of the cases that are pinned for the product."""
    judged: set[str] = set()
    """Ids of waivers in whose scope trials were judged."""
    used: set[str] = set()
    """Ids of waivers that a failure needed."""
    passed: set[str] = set()
    """Ids of pinned cases."""
    failed: set[str] = set()

    def include(self, other: WaiverEvidence) -> None:
        """Take in what another process has seen; where the two know other pins of a waiver, these here count."""
        self.pins = {**other.pins, **self.pins}
        self.judged |= other.judged
        self.used |= other.used
        self.passed |= other.passed
        self.failed |= other.failed

    def beyond(self, told: WaiverEvidence) -> WaiverEvidence:
        """What of it is not told yet."""
        return WaiverEvidence(
            pins={name: pins for name, pins in self.pins.items() if name not in told.pins},
            judged=self.judged - told.judged,
            used=self.used - told.used,
            passed=self.passed - told.passed,
            failed=self.failed - told.failed,
        )

    def report(self, waivers: Iterable[Waiver], *, expired: tuple[Waiver, ...] = ()) -> WaiverReport:
        """What it comes to."""
        speaking = [waiver for waiver in waivers if waiver.id in self.pins]
        mended = tuple(waiver for waiver in speaking if self._mended(self.pins[waiver.id]))
        unused = tuple(
            waiver
            for waiver in speaking
            if waiver.id in self.judged and waiver.id not in self.used and waiver not in mended
        )
        return WaiverReport(expired=expired, mended=mended, unused=unused)

    def _mended(self, pins: tuple[str, ...]) -> bool:
        return bool(pins) and all(pin in self.passed and pin not in self.failed for pin in pins)


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
        environment: Mapping[str, str] = MappingProxyType({}),
        calls: Callable[[Trial], Iterable[Case]] = lambda _trial: (),
    ) -> None:
        """Choose by adapter (as `--adapter` has it) and version of its library, None where that is not known.

        - `product`: the run's; cases pinned for another one are left alone. None: all are taken.
        - `environment`: what the adapter's session says of itself, where the command line leaves an option out.
        - `calls`: the calls of a trial that failed. A predicate admits it where it holds of one of them: of the case
          itself, or of what a law made of it.
        """
        chosen = [waiver for waiver in waivers if _concerns(waiver.scope, adapter, version, environment)]
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
            if waiver.id not in judged and _admits_trial(waiver.scope, record, [record.trial.case])
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
        admitting = [waiver for waiver in self._valid if _admits_fault(waiver.scope, record)]
        if not admitting:
            return []
        cases = [record.trial.case, *(case for case in self._calls(record.trial) if case.call.phases != 1)]
        speaking = [waiver for waiver in admitting if _admits_trial(waiver.scope, record, cases)]
        return _one_for_each(_faulty_outputs(record), speaking)

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
        return self.evidence.report(self._valid, expired=self._expired)


def waivers_of_run(
    waivers: Iterable[Waiver], *, settings: BenchSettings, environment: Mapping[str, str], specs: Specs
) -> Waivers:
    """The waivers as of today for an open adapter whose session says `environment` of itself."""
    return Waivers(
        waivers,
        adapter=settings.adapter,
        version=environment.get("version"),
        today=datetime.now(timezone.utc).date(),
        product=settings.target.product,
        environment=environment,
        calls=lambda trial: promise(trial.promise, where="trial").calls(trial, specs[trial.case.operator]),
    )


def pinned_trials(waivers: Waivers, operators: Iterable[Spec]) -> tuple[Trial, ...]:
    """The trials that are to run first, of these operators."""
    chosen = {spec.operator: spec for spec in operators}
    return tuple(
        as_trial(chosen[_case_of(pin).operator], pin) for pin in waivers.pinned if _case_of(pin).operator in chosen
    )


def pins_for(waivers: Iterable[Waiver], adapter: str, operators: Iterable[Spec]) -> dict[str, dict[str, Trial]]:
    """By operator, and by waiver and number, the cases pinned for an adapter of that name.

    Before one is open: its version, its device and the options that it has by default are not looked at.
    """
    chosen = {spec.operator: spec for spec in operators}
    found: dict[str, dict[str, Trial]] = {name: {} for name in chosen}
    own = _taken_apart(adapter)[0]
    for waiver in waivers:
        if {_taken_apart(word)[0] for word in waiver.scope.adapter} & {own, own.partition(":")[0]}:
            for number, pin in enumerate(waiver.cases, 1):
                if (name := _case_of(pin).operator) in chosen:
                    found[name][f"{waiver.id}-{number}"] = as_trial(chosen[name], pin)
    return found


def _case_of(pin: Trial | Case) -> Case:
    return pin.case if isinstance(pin, Trial) else pin


def _names(word: str, adapter: str, environment: Mapping[str, str]) -> bool:
    """Whether a scope's word names an adapter; options in the word are to be those of the run."""
    name, options = _taken_apart(word)
    own_name, own_options = _taken_apart(adapter)
    chosen = {**environment, **own_options}
    return name in (own_name, own_name.partition(":")[0]) and chosen.items() >= options.items()


def _taken_apart(word: str) -> tuple[str, Mapping[str, str]]:
    """Name and options of `name:key=value,...` or `package.module:factory,key=value,...`."""
    head, _, rest = word.partition(":")
    parts = [part for part in rest.split(",") if part]
    plain = [part for part in parts if "=" not in part]
    options = (part.partition("=") for part in parts if "=" in part)
    return ":".join([head, *plain]), {key: value for key, _, value in options}


def _concerns(scope: Scope, adapter: str, version: str | None, environment: Mapping[str, str]) -> bool:
    if not any(_names(word, adapter, environment) for word in scope.adapter):
        return False
    if scope.version is None:
        return True
    try:
        return version is not None and Version(version) in scope.version
    except InvalidVersion:
        return False


def _admits_fault(scope: Scope, record: Record) -> bool:
    signature = record.signature
    return (
        record.verdict.kind in scope.kind
        and (not scope.dtype or signature.dtype in scope.dtype)
        and (not scope.mode or signature.mode in scope.mode)
    )


def _faulty_outputs(record: Record) -> tuple[str, ...]:
    """The outputs at fault, the one that the verdict names first; an empty word where it names none."""
    others = (item.output for item in record.verdict.deviations if item.beyond)
    return tuple(dict.fromkeys((record.signature.output, *others)))


def _one_for_each(outputs: tuple[str, ...], speaking: list[Waiver]) -> list[Waiver]:
    """For each output the first waiver that admits it; none at all where one output has none."""
    found = [
        next((waiver for waiver in speaking if not waiver.scope.output or output in waiver.scope.output), None)
        for output in outputs
    ]
    return [] if None in found else [waiver for waiver in found if waiver is not None]


def _admits_trial(scope: Scope, record: Record, cases: Iterable[Case]) -> bool:
    case = record.trial.case
    return (
        (not scope.operator or case.operator in scope.operator)
        and (not scope.promise or record.trial.promise in scope.promise)
        and (not scope.constraint or (case.origin.constraint or record.signature.constraint) in scope.constraint)
        and (not scope.product or case.product in scope.product)
        and (scope.when is None or any(map(scope.when, cases)))
    )


def _look_of(case: Case) -> tuple[object, ...]:
    """What cases of one id have in common, and few others have."""
    return (case.operator, case.product, frozenset((name, tensor.shape) for name, tensor in case.tensors()))


def _id_of(pinned: Trial | Case) -> str:
    return case_id(pinned) if isinstance(pinned, Case) else pinned.id
