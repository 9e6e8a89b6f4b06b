"""Which adapters, trials and failures the scope of a waiver takes in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from packaging.version import InvalidVersion, Version

from aclnn_cts.core.case import Case
from aclnn_cts.core.verdict import Record
from aclnn_cts.engine.waiver_file import Scope, Waiver

__all__ = ["admits_fault", "admits_trial", "concerns", "one_for_each_output", "taken_apart"]


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


def concerns(scope: Scope, adapter: str, version: str | None, environment: Mapping[str, str]) -> bool:
    """Whether a waiver is for an adapter and the version of its library; None: that is not known."""
    if not any(_names(word, adapter, environment) for word in scope.adapter):
        return False
    if scope.version is None:
        return True
    try:
        return version is not None and Version(version) in scope.version
    except InvalidVersion:
        return False


def admits_fault(scope: Scope, record: Record) -> bool:
    """Whether a failure is of the kind, dtype, mode and look that a waiver speaks of."""
    signature = record.signature
    return (
        record.verdict.kind in scope.kind
        and (not scope.dtype or signature.dtype in scope.dtype)
        and (not scope.mode or signature.mode in scope.mode)
        and (not scope.got or any(str(item.got) in scope.got for item in record.verdict.deviations if item.beyond))
    )


def _faulty_outputs(record: Record) -> tuple[str, ...]:
    """The outputs at fault, the one that the verdict names first; an empty word where it names none."""
    others = (item.output for item in record.verdict.deviations if item.beyond)
    return tuple(dict.fromkeys((record.signature.output, *others)))


def one_for_each_output(record: Record, speaking: Sequence[Waiver]) -> list[Waiver]:
    """For each output at fault the first waiver that admits it; none at all where one output has none."""
    found = [
        next((waiver for waiver in speaking if not waiver.scope.output or output in waiver.scope.output), None)
        for output in _faulty_outputs(record)
    ]
    return [] if None in found else [waiver for waiver in found if waiver is not None]


def admits_trial(scope: Scope, record: Record, cases: Iterable[Case]) -> bool:
    """Whether a trial is one that a waiver speaks of; its predicate is to hold of one of the cases."""
    case = record.trial.case
    return (
        (not scope.operator or case.operator in scope.operator)
        and (not scope.promise or record.trial.promise in scope.promise)
        and (not scope.constraint or (case.origin.constraint or record.signature.constraint) in scope.constraint)
        and (not scope.product or case.product in scope.product)
        and (scope.when is None or any(map(scope.when, cases)))
    )
