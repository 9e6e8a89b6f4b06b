"""Which adapters, trials and failures the scope of a waiver takes in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from aclnn_cts.core.case import Case
from aclnn_cts.core.verdict import Record
from aclnn_cts.findings.waivers.file import Scope, Waiver


def names_adapter(scope: Scope, adapter: str, environment: Mapping[str, str]) -> bool:
    """Whether a waiver is for an adapter and its options, whatever the version of its library."""
    return any(_names(word, adapter, environment) for word in scope.adapter)


def _names(word: str, adapter: str, environment: Mapping[str, str]) -> bool:
    """Whether a scope's word names an adapter; options in the word are to be those of the run."""
    name, options = taken_apart(word)
    own_name, own_options = taken_apart(adapter)
    chosen = {**environment, **own_options}
    return name in (own_name, own_name.partition(":")[0]) and chosen.items() >= options.items()


def taken_apart(word: str) -> tuple[str, Mapping[str, str]]:
    """Name and options of `name:key=value,...` or `package.module:factory,key=value,...`."""
    head, _, rest = word.partition(":")
    parts = [part for part in rest.split(",") if part]
    plain = [part for part in parts if "=" not in part]
    options = (part.partition("=") for part in parts if "=" in part)
    return ":".join([head, *plain]), {key: value for key, _, value in options}


def admits_version(waiver: Waiver, version: str | None) -> bool:
    """Whether a waiver is for a version of the adapter's library; None: that is not known."""
    if waiver.versions is None:
        return True
    parsed = _parsed(version)
    return parsed is not None and parsed in waiver.versions


def ignored_line(waivers: Iterable[Waiver], adapter: str, version: str | None) -> str:
    """One line about waivers whose version range leaves out the adapter's library; empty where there are none."""
    ranges = Counter(_range(waiver.versions) for waiver in waivers if waiver.versions is not None)
    if not ranges:
        return ""
    number, name = ranges.total(), taken_apart(adapter)[0]
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


def admits_fault(scope: Scope, record: Record) -> bool:
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


def one_for_each_output(record: Record, speaking: Sequence[Waiver]) -> list[Waiver]:
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
