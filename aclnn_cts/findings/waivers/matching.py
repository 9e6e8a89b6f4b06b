"""Which waiver accepts a failure: scopes, pinned trials, and what a run reports of its waivers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from types import MappingProxyType
from typing import final

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_id
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.waivers.file import Waiver, WaiverScope, may_be_for, split_adapter_word
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.counts import PINNED
from aclnn_cts.trials.checks.registry import as_trial, check_by_id

BINDING = "binding."
"""Before the name of an operator in an environment: the hash of its binding."""


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
        - `environment`: what the adapter's session says of itself, where the command line leaves an option out; and the
          hashes of its bindings (`BINDING`).
        - `calls`: the calls of a trial that failed. A predicate admits it where it holds of one of them: of the case
          itself, or of an equal call.
        """
        named = [waiver for waiver in waivers if names_adapter(waiver.scope, adapter, environment)]
        bound = [waiver for waiver in named if admits_binding(waiver.scope, environment)]
        chosen = [waiver for waiver in bound if admits_version(waiver, version)]
        self._valid = tuple(waiver for waiver in chosen if waiver.expiry >= today)
        self._expired = tuple(waiver for waiver in chosen if waiver.expiry < today)
        self._calls = calls
        self._pinned = {
            waiver.id: tuple(pin for pin in waiver.cases if product in (None, _case_of(pin).product))
            for waiver in self._valid
        }
        self._pins = frozenset(_id_of(pin) for pins in self._pinned.values() for pin in pins)
        self._bare = frozenset(_look_of(pin) for pins in self._pinned.values() for pin in pins if isinstance(pin, Case))
        self.evidence = WaiverCounts(pins={name: tuple(map(_id_of, pins)) for name, pins in self._pinned.items()})
        """What all records that were applied say of the waivers."""
        concerned = [
            waiver
            for waiver in named
            if (not waiver.scope.product or product in (None, *waiver.scope.product))
            and (not waiver.scope.operator or operators is None or set(operators) & set(waiver.scope.operator))
        ]
        others = (waiver for waiver in concerned if waiver in bound and not admits_version(waiver, version))
        unbound = (waiver for waiver in concerned if waiver not in bound)
        self.ignored = "; ".join(filter(None, (ignored_line(others, adapter, version), unbound_line(unbound))))
        """One line about waivers for other versions of the adapter's library or other bindings; empty without any."""

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
        needed = self.waivers_needed_for(record)
        if not needed:
            return record
        judged.update(waiver.id for waiver in needed)
        self.evidence.used.update(waiver.id for waiver in needed)
        return msgspec.structs.replace(record, waiver=needed[0].id)

    def waivers_needed_for(self, record: Record) -> list[Waiver]:
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
        return waivers_by_output(record, speaking)

    def covers(self, record: Record) -> bool:
        """Whether waivers cover a failure."""
        return bool(self.waivers_needed_for(record))

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
    settings: RunnerSettings,
    environment: Mapping[str, str],
    bindings: Mapping[str, str],
    specs: Specs,
    operators: Iterable[Spec] | None = None,
) -> Waivers:
    """The waivers as of today for an open adapter whose session says `environment` and `bindings` of itself.

    `operators` are those of the run; None: all.
    """
    return Waivers(
        waivers,
        adapter=settings.adapter,
        version=environment.get("version"),
        today=datetime.now(timezone.utc).date(),
        product=settings.target.product,
        operators=None if operators is None else {spec.operator for spec in operators},
        environment={**environment, **{BINDING + name: sha256 for name, sha256 in bindings.items()}},
        calls=lambda trial: check_by_id(trial.check, where="trial").calls(trial, specs[trial.case.operator]),
    )


def pinned_trials(waivers: Waivers, operators: Iterable[Spec]) -> tuple[Trial, ...]:
    """The trials that are to run first, of these operators and no others."""
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
    for waiver in waivers:
        if may_be_for(waiver.scope, adapter):
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


def names_adapter(scope: WaiverScope, adapter: str, environment: Mapping[str, str]) -> bool:
    """Whether a waiver is for an adapter and its options, whatever the version of its library."""
    return any(_names(word, adapter, environment) for word in scope.adapter)


def _names(word: str, adapter: str, environment: Mapping[str, str]) -> bool:
    """Whether a scope's word names an adapter; options in the word are to be those of the run."""
    name, options = split_adapter_word(word)
    own_name, own_options = split_adapter_word(adapter)
    chosen = {**environment, **own_options}
    return name in (own_name, own_name.partition(":")[0]) and chosen.items() >= options.items()


def admits_version(waiver: Waiver, version: str | None) -> bool:
    """Whether a waiver is for a version of the adapter's library; None: that is not known."""
    if waiver.versions is None:
        return True
    parsed = _parsed(version)
    return parsed is not None and parsed in waiver.versions


def admits_binding(scope: WaiverScope, environment: Mapping[str, str]) -> bool:
    """Whether a waiver excuses the binding that its operator has, or any."""
    names = scope.operator or ()
    return scope.binding is None or scope.binding in (environment.get(BINDING + name) for name in names)


def unbound_line(waivers: Iterable[Waiver]) -> str:
    """One line about waivers for another binding of their operator; empty where there are none."""
    numbers = Counter(name for waiver in waivers for name in waiver.scope.operator or ())
    if not numbers:
        return ""
    number = numbers.total()
    names = ", ".join(sorted(numbers))
    return f"{number} {'waiver' if number == 1 else 'waivers'} ignored: made for another binding of {names}"


def ignored_line(waivers: Iterable[Waiver], adapter: str, version: str | None) -> str:
    """One line about waivers whose version range leaves out the adapter's library; empty where there are none."""
    ranges = Counter(_range(waiver.versions) for waiver in waivers if waiver.versions is not None)
    if not ranges:
        return ""
    number, name = ranges.total(), split_adapter_word(adapter)[0]
    if (parsed := _parsed(version)) is not None:
        why = f"{name} {parsed.public} is outside"
    else:
        why = f"{name} names no version" if version is None else f"{name} has no PEP 440 version ({version[:40]!r})"
        why += ", expected"
    if len(ranges) == 1:
        shown = next(iter(ranges))
    else:
        shown = " and ".join(f"{words} ({count})" for words, count in ranges.items())
    return f"{number} {'waiver' if number == 1 else 'waivers'} ignored: {why} {shown}"


def _parsed(version: str | None) -> Version | None:
    try:
        return None if version is None else Version(version)
    except InvalidVersion:
        return None


def _range(version: SpecifierSet) -> str:
    """As people write it, the lower limit first."""
    return ",".join(sorted(map(str, version), reverse=True))


def _dtypes(record: Record) -> set[str]:
    """The dtype that a failure is told by; those of all tensors where its fingerprint names none."""
    dtype = record.fingerprint.dtype
    return {dtype} if dtype else {tensor.dtype for _, tensor in record.trial.case.tensors()}


def admits_fault(scope: WaiverScope, record: Record) -> bool:
    """Whether a failure is of the kind, dtype, mode and look that a waiver speaks of."""
    fingerprint = record.fingerprint
    return (
        record.verdict.kind in scope.kind
        and (not scope.dtype or not _dtypes(record).isdisjoint(scope.dtype))
        and (not scope.mode or fingerprint.mode in scope.mode)
        and (not scope.got or any(str(item.got) in scope.got for item in record.verdict.deviations if item.beyond))
    )


def _faulty_outputs(record: Record) -> tuple[str, ...]:
    """The outputs at fault, the one that the verdict names first; an empty word where it names none."""
    others = (item.output for item in record.verdict.deviations if item.beyond)
    return tuple(dict.fromkeys((record.fingerprint.output, *others)))


def waivers_by_output(record: Record, speaking: Sequence[Waiver]) -> list[Waiver]:
    """For each output at fault the first waiver that admits it; none at all where one output has none."""
    found = [
        next((waiver for waiver in speaking if not waiver.scope.output or output in waiver.scope.output), None)
        for output in _faulty_outputs(record)
    ]
    return [] if None in found else [waiver for waiver in found if waiver is not None]


def admits_trial(waiver: Waiver, record: Record, cases: Iterable[Case]) -> bool:
    """Whether a trial is one that a waiver speaks of; its predicate is to hold of one of the cases."""
    case, scope = record.trial.case, waiver.scope
    return (
        (not scope.operator or case.operator in scope.operator)
        and (not scope.check or record.trial.check in scope.check)
        and (not scope.constraint or (case.origin.constraint or record.fingerprint.clause) in scope.constraint)
        and (not scope.product or case.product in scope.product)
        and (waiver.when is None or any(map(waiver.when, cases)))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverReport:
    """What a run says of the waivers that concern it, in the order of the files."""

    expired: tuple[Waiver, ...]
    """They speak for nothing any more and fail the run."""
    mended: tuple[Waiver, ...]
    """Each of their pinned cases for this product was judged, and none failed."""
    unused: tuple[Waiver, ...]
    """Trials in their scope were judged, and none failed as they say."""
    ignored: str = ""
    """One line about those for other versions of the adapter's library or other bindings; empty: there are none."""

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
            *([self.ignored] if self.ignored else []),
            *(f"{waiver.where}: waiver {waiver.id}: its pinned cases pass now; remove it" for waiver in self.mended),
            *(
                f"{waiver.where}: waiver {waiver.id}: nothing in its scope failed in this run; see whether it is needed"
                for waiver in self.unused
            ),
        )


class WaiverCounts(msgspec.Struct):
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

    def include(self, other: WaiverCounts) -> None:
        """Take in what another process has seen; where the two know other pins of a waiver, these here count."""
        self.pins = {**other.pins, **self.pins}
        self.judged |= other.judged
        self.used |= other.used
        self.passed |= other.passed
        self.failed |= other.failed

    def since(self, told: WaiverCounts) -> WaiverCounts:
        """What of it is not told yet."""
        return WaiverCounts(
            pins={name: pins for name, pins in self.pins.items() if name not in told.pins},
            judged=self.judged - told.judged,
            used=self.used - told.used,
            passed=self.passed - told.passed,
            failed=self.failed - told.failed,
        )

    def report(self, waivers: Iterable[Waiver], *, expired: tuple[Waiver, ...] = (), ignored: str = "") -> WaiverReport:
        """What it comes to."""
        speaking = [waiver for waiver in waivers if waiver.id in self.pins]
        mended = tuple(waiver for waiver in speaking if self._mended(self.pins[waiver.id]))
        unused = tuple(
            waiver
            for waiver in speaking
            if waiver.id in self.judged and waiver.id not in self.used and waiver not in mended
        )
        return WaiverReport(expired=expired, mended=mended, unused=unused, ignored=ignored)

    def _mended(self, pins: tuple[str, ...]) -> bool:
        return bool(pins) and all(pin in self.passed and pin not in self.failed for pin in pins)
