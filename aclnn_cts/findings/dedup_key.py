"""By which key a campaign counts failures as one fault, and which of a trial's calls is its root cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from aclnn_cts.checks.laws import PREFIX
from aclnn_cts.checks.life_cycle import LIFE_CYCLES, RepeatedFailure
from aclnn_cts.checks.registry import check
from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_from_json
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import Ended
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, Verdict
from aclnn_cts.findings.fingerprint import fingerprinted
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec

_ACCEPTED = Fault.of(Family.ACCEPTED)

VALUE_KINDS = tuple(sorted(Fault.of(Family.VALUES), key=lambda fault: fault.order))
"""Kinds of one fault of an output's values, the gravest first."""

MERGED_KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {Fault.VALUE: VALUE_KINDS, Fault.LAW: (Fault.LAW, Fault.SPECIAL, Fault.MODEL)}
)
"""Kinds that a key of the first takes together, the gravest first: of an output's values, and of a relation."""

_VALUES = frozenset({"values", "memory", "example", "boundary", "precision"})
"""Checks of one supported call, which one fault breaks together."""

_OF_MEMORY = frozenset({Fault.VALUE, Fault.UNWRITTEN, Fault.GUARD, Fault.INPUT})
"""Kinds of what a call that was made has written, whatever the document says of it."""

_OF_STATUS = Fault.of(Family.ACCEPTED)

_IN_A_ROW = frozenset(name for name, entry in LIFE_CYCLES.items() if isinstance(entry, RepeatedFailure))

_TWIN = "twin"


def rejected_twin(trial: Trial, verdict: Verdict) -> Fingerprint | None:
    """The fingerprint of a broken call's valid twin that is rejected; None of any other verdict.

    The twin was rejected for something else than the constraint that the call was to break, whatever its dtype: the
    twins of an operator that are rejected with one status are one finding.
    """
    if verdict.kind != Fault.REJECTED or _TWIN not in trial.parameters:
        return None
    return Fingerprint(operator=trial.case.operator, check="values", fault=verdict.kind)


def kind_of(key: Fingerprint, kinds: Iterable[str]) -> str:
    """The kind of fault of a finding: the gravest of its failures' where its key takes several together."""
    met = set(kinds)
    return next((kind for kind in MERGED_KINDS.get(key.fault, ()) if kind in met), key.fault)


def gravity(kind: str) -> int:
    """The place of a kind among those that one key takes together, 0 for the gravest and for any other."""
    return VALUE_KINDS.index(kind) if kind in VALUE_KINDS else 0


def is_milder(kind: str, than: str) -> bool:
    """Whether one fault is beyond an assumption alone, and the other beyond a document."""
    return kind == Fault.MODEL and than != Fault.MODEL


def is_related(failure: Fingerprint) -> bool:
    """Whether it is of a law, a life cycle or a broken call, which one of its calls may explain."""
    if failure.check in LIFE_CYCLES or failure.check.startswith(PREFIX):
        return True
    return bool(failure.clause) and failure.fault not in _ACCEPTED


def dedup_key(key: Fingerprint) -> Fingerprint:
    """The key by which a campaign deduplicates failures, as far as the failure's own key tells.

    One fault of a call's values fails examples, limits, laws and random cases alike, now by a number and now by inf,
    now beyond any arithmetic and now beyond the assumed one: its check counts as `values`, its fault as `value`.
    Calls that must be refused are of one check, `status`, told apart by their constraint. What many of them in a row
    do together is no matter of the one that was taken.
    """
    check, clause, dtype = key.check, key.clause, key.dtype
    first = Fault.LAW if check.startswith(PREFIX) else Fault.VALUE
    fault = first if key.fault in MERGED_KINDS[first] else key.fault
    if check in _IN_A_ROW:
        clause = dtype = ""
    elif clause and check in _VALUES and check != "boundary" and fault in _OF_MEMORY:
        check, clause = "values", ""
    elif clause:
        check = "status" if check == "boundary" else check
    elif check in _VALUES or (check.startswith(PREFIX) and fault != Fault.LAW):
        check = "values"
    return msgspec.structs.replace(key, check=check, fault=fault, clause=clause, dtype=dtype)


def _counted_as(record: Record, key: Fingerprint) -> Record:
    """A failure that counts with the finding of a key; fault and looks stay those of its own verdict."""
    found = msgspec.structs.replace(
        record.fingerprint, check=key.check, clause=key.clause, output=key.output, mode=key.mode, dtype=key.dtype
    )
    return fingerprinted(msgspec.structs.replace(record, fingerprint=found, counted_as=key))


def with_root_cause(record: Record, specs: Specs, execute: Callable[[Trial], Record]) -> Record:
    """A failure under the key of its fault, as `dedup_key` gives it; `execute` runs a trial.

    What fails since one of its calls is wrong by itself is no fault of its own, and has that call's key: a law;
    a life cycle whose call fails the same way when it is made in the ordinary call mode; a broken call whose valid twin
    does.
    """
    key = dedup_key(record.key)
    twin = record.verdict.kind == Fault.REJECTED and _TWIN in record.trial.parameters
    of_status = key.fault in _OF_STATUS and not _is_life_cycle(record.trial)
    if (key.check == "values" and not twin) or of_status:
        return _counted_as(record, key)
    for call in calls_alone(record.trial, specs):
        alone = execute(call)
        if alone.verdict.result == Result.FAILED:
            by_itself = dedup_key(alone.key)
            if key.fault == Fault.LAW or _looks(by_itself) == _looks(key):
                return _counted_as(record, by_itself)
    return _counted_as(record, key)


def same_finding(finding: Fingerprint, record: Record, *, cause: Callable[[Record], Record] | None = None) -> bool:
    """Whether a trial's record is a failure of the finding with this key.

    `cause` is `with_root_cause` with specs and an executor: it makes the calls of the trial alone, which decides.
    Without it the record alone decides: of a trial that met a fault of one of its calls it is not asked again whether
    that call fails by itself.
    """
    if record.verdict.result != Result.FAILED:
        return False
    key = dedup_key(finding)
    if cause is not None:
        return cause(record).key == key
    now = dedup_key(record.key)
    if now == key:
        return True
    met = key.check in ("values", "status") and now.check not in ("values", key.check)
    return met and (now.fault == Fault.LAW or _looks(now) == _looks(key))


def calls_alone(trial: Trial, specs: Specs) -> list[Trial]:
    """The calls of a law, of a life cycle or of a broken call's twin, each as a trial by itself; none of another's."""
    spec = specs[trial.case.operator]
    if trial.check in _IN_A_ROW:
        return [Trial("status", trial.case, after=trial.after)]
    if trial.check.startswith(PREFIX) or trial.check in LIFE_CYCLES:
        calls = check(trial.check, where="trial").calls(trial, spec)
    elif trial.parameters.get(_TWIN) is not None:
        calls = (case_from_json(trial.parameters[_TWIN], where=f"trial: $.parameters.{_TWIN}"),)
    else:
        return []
    distinct = [call for place, call in enumerate(calls) if call not in calls[:place]]
    whole = [call for call in distinct if call.call.phases != 1] or distinct
    return [Trial("values", call, after=trial.after) for call in whole if _is_supported(spec, call)]


def _is_supported(spec: Spec, call: Case) -> bool:
    evaluation = evaluate(spec, call)
    return not evaluation.broken or evaluation.strength == Strength.OPEN


def shown_by(trial: Trial, key: Fingerprint, specs: Specs) -> list[Trial]:
    """Trials that may show a finding, the plainest first: before the one that met it, its calls by themselves."""
    by_itself = key.check == "values" or (key.check == "status" and trial.check in _IN_A_ROW)
    return [*(calls_alone(trial, specs) if by_itself else ()), trial]


def _is_life_cycle(trial: Trial) -> bool:
    return trial.check in LIFE_CYCLES


def _looks(key: Fingerprint) -> tuple[str, ...]:
    """What a fault has in any call mode in which its call is made."""
    return key.fault, key.output, key.answer


def outputs_of(record: Record) -> set[str]:
    """SHA-256 of what the calls of a record that succeeded wrote: what it is judged again from."""
    outcomes = [item for item in record.attempts[0] if item.ended == Ended.RETURNED] if record.attempts else []
    written = [state for item in outcomes if not item.status for state in item.buffers.values()]
    return {state.sha256 for state in written if state.sha256}
