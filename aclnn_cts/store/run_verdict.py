"""The rule from counts to a verdict: what of a run was judged, and whether that is enough to say that it conforms.

It is a pure function of a summary. Everything that shows a verdict reads it from here: the command line, the gate,
replay, campaigns and reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby

import msgspec

from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.core.verdict import OutOfScope, Result, RunVerdict, SkipReason, TrialAim
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.counts import Counts, OperatorSummary, UnjudgedCount, total_of

MIN_JUDGED = 90
"""Percent of the planned valid calls that must be judged on values, unless `--min-judged` says otherwise."""

REASONS_SHOWN = 3


_EXIT_CODES = {RunVerdict.FAILS: 1, RunVerdict.INCONCLUSIVE: 3}


def worst_verdict(verdicts: Iterable[RunVerdict]) -> RunVerdict:
    """The verdict on several operators or runs together; inconclusive where there is none."""
    order = list(RunVerdict)
    return min(verdicts, key=order.index, default=RunVerdict.INCONCLUSIVE)


def exit_code(verdict: RunVerdict) -> int:
    """0, 1 for a fault, 3 where there is no verdict."""
    return _EXIT_CODES.get(verdict, 0)


class RunPlan(str, Enum):
    """What was run, and so what it must come to."""

    PROFILE = "profile"
    """Every dtype, rule and check of the operators."""
    STATUSES = "statuses"
    """The same with the first phase alone: statuses, and no values."""
    CASES = "cases"
    """Chosen cases."""
    CHECK = "check"
    """One check of one operator: a test of the gate."""
    CAMPAIGN = "campaign"


class Terms(msgspec.Struct, frozen=True):
    """What a run's counts are measured by; fixed before anything is run."""

    plan: RunPlan
    min_judged: int = MIN_JUDGED
    """Percent."""
    named: tuple[str, ...] = ()
    """Operators that the command line names: each of them must be judged."""
    is_limited: bool = False
    """Whether fewer cases were planned than the profile asks for."""
    every_corner: bool = False
    """Whether values must be judged at every corner that the adapter can express."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why trials have no verdict."""

    number: int
    text: str
    operator: str
    example: str
    """The case of one of them, on a line; empty where no record tells of any."""
    trial: str = ""
    """Its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorVerdict:
    """The verdict on one operator for the product that was run."""

    verdict: RunVerdict
    counts: Counts
    """Of the trials that are to be judged: of a profile, on values or by a status."""
    counted: int
    """Of these, how many must be judged."""
    scope: Mapping[str, int]
    """Trials out of scope, by what the adapter does not offer."""
    causes: tuple[Note, ...] = ()
    """Why it does not conform, or why that is not known."""
    reasons: tuple[Reason, ...] = ()
    """Of an inconclusive one: the most frequent reasons first."""
    corners: int = 0
    """How many corners of its document the adapter can express."""
    missed_corners: tuple[str, ...] = ()
    """Those of them at which no values were judged."""

    @property
    def share(self) -> float:
        """The share of the trials that must be judged that were."""
        return self.counts.judged / self.counted if self.counted > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The verdict on a run and what it rests on."""

    verdict: RunVerdict
    terms: Terms | None
    operators: Mapping[str, OperatorVerdict]
    causes: tuple[Note, ...]
    reasons: tuple[Reason, ...]
    """At most `REASONS_SHOWN`."""
    scope: tuple[str, ...]
    """What the adapter does not offer of what was planned (`OutOfScope`)."""

    @property
    def share(self) -> float:
        """The least share that was judged of any operator's trials."""
        return min((item.share for item in self.operators.values()), default=0.0)


def listed_rules(spec: Spec, product: str) -> tuple[str, ...]:
    """The rules of an operator whose status the document lists: each of them must be judged."""
    return tuple(item.id for item in spec.constraints_for(product) if item.strength == Strength.LISTED)


def percent(share: float) -> int:
    """A share in whole percent, rounded down: what is below a bound never looks as if it were not."""
    return int(100.0 * share + 1e-9)


def conclude_run(
    operators: Mapping[str, OperatorSummary],
    terms: Terms | None,
    *,
    finished: bool = True,
    violations: Sequence[Note] = (),
    problems: Sequence[Note] = (),
) -> Conclusion:
    """The verdict on a run.

    - `terms`: None where they were not recorded.
    - `finished`: whether the run came to its end.
    - `violations`: why the run fails whatever its trials say.
    - `problems`: why the run says nothing whatever its trials say.
    """
    named = terms.named if terms is not None else ()
    parts = {
        name: _operator_verdict(name, operator, terms)
        for name, operator in operators.items()
        if name in named or _takes_part(operator)
    }
    for name in named:
        if name not in parts:
            parts[name] = _operator_verdict(name, OperatorSummary(), terms)
    causes = [*problems]
    if terms is None or (not finished and terms.plan != RunPlan.CAMPAIGN):
        causes.append(Note("it did not come to its end", NoteCode.UNFINISHED))
    if not parts:
        causes.append(Note("nothing was judged", NoteCode.NOTHING_JUDGED, {"operator": ""}))
    verdicts = [item.verdict for item in parts.values()]
    if violations:
        verdicts.append(RunVerdict.FAILS)
    elif causes:
        verdicts.append(RunVerdict.INCONCLUSIVE)
    verdict = worst_verdict(verdicts)
    shown = [item for item in parts.values() if item.verdict == verdict]
    own = {RunVerdict.FAILS: violations, RunVerdict.INCONCLUSIVE: causes}.get(verdict, ())
    reasons = [reason for item in shown for reason in item.reasons]
    if not parts:
        reasons = [reason for name, operator in operators.items() for reason in _reasons(name, operator, None)]
    return Conclusion(
        verdict=verdict,
        terms=terms,
        operators=parts,
        causes=(*own, *(cause for item in shown for cause in item.causes)),
        reasons=tuple(sorted(reasons, key=lambda reason: -reason.number)[:REASONS_SHOWN]),
        scope=_scope(operators.values()),
    )


def _scope(operators: Iterable[OperatorSummary]) -> tuple[str, ...]:
    found = {name for operator in operators for name in operator.total.out_of_scope_by_reason}
    return tuple(sorted(found, key=_scope_order))


_ASIDE = (SkipReason.UNSUPPORTED, SkipReason.NOT_CHOSEN)
"""Skips of what was not asked of the implementation at all."""


def _takes_part(operator: OperatorSummary) -> bool:
    """Whether anything of an operator was asked of the implementation."""
    total = operator.total
    aside = sum(total.skipped_by_reason.get(reason, 0) for reason in _ASIDE)
    return total.cases > total.out_of_scope + aside


def _operator_verdict(name: str, operator: OperatorSummary, terms: Terms | None) -> OperatorVerdict:
    corners = sum(not count.is_excluded for count in operator.corners.values())
    return replace(_of_counts(name, operator, terms), corners=corners, missed_corners=_missed_corners(operator))


def _missed_corners(operator: OperatorSummary) -> tuple[str, ...]:
    return tuple(name for name, count in operator.corners.items() if not (count.judged or count.is_excluded))


def _of_counts(name: str, operator: OperatorSummary, terms: Terms | None) -> OperatorVerdict:
    total = operator.total
    scope = dict(sorted(total.out_of_scope_by_reason.items(), key=lambda item: _scope_order(item[0])))
    plan = terms.plan if terms is not None else None
    counts = (
        total_of(map(operator.aim, (TrialAim.VALUES, TrialAim.STATUS))) if plan == RunPlan.PROFILE else operator.asked
    )
    # Whoever chooses cases can have them made on a software device (--unsafe).
    counted = counts.counted + (counts.unsafe if plan == RunPlan.CASES else 0)
    # Of a plan, what was not tried any more has no aim: it counts whole.
    counted += total.skipped_by_reason.get(SkipReason.STOPPED, 0) if plan == RunPlan.PROFILE else 0
    failures = total.unwaived
    if failures:
        note = Note(
            f"{name}: {failures} {'failure is' if failures == 1 else 'failures are'} not waived",
            NoteCode.FAULTS,
            {"operator": name, "n": failures},
        )
        return OperatorVerdict(verdict=RunVerdict.FAILS, counts=counts, counted=counted, scope=scope, causes=(note,))
    causes = list(_missing(name, operator, terms)) if terms is not None else []
    if causes:
        return OperatorVerdict(
            verdict=RunVerdict.INCONCLUSIVE,
            counts=counts,
            counted=counted,
            scope=scope,
            causes=tuple(causes),
            reasons=tuple(_reasons(name, operator, _aims(causes) if plan == RunPlan.PROFILE else None)),
        )
    if plan == RunPlan.CAMPAIGN:
        verdict = RunVerdict.NOTHING_FOUND
    else:
        verdict = RunVerdict.CONFORMS_WITH_WAIVERS if total.waived else RunVerdict.CONFORMS
    return OperatorVerdict(verdict=verdict, counts=counts, counted=counted, scope=scope)


def _missing(name: str, operator: OperatorSummary, terms: Terms) -> Iterator[Note]:
    """What keeps an operator without a fault from conforming."""
    asked = operator.asked
    counts = operator.aim(TrialAim.VALUES) if terms.plan == RunPlan.PROFILE else asked
    counted = counts.counted + (counts.unsafe if terms.plan == RunPlan.CASES else 0)
    if errors := operator.total.errors:
        text = f"{name}: {errors} {'trial' if errors == 1 else 'trials'} ended in an error"
        yield Note(text, NoteCode.ERRORS, {"operator": name, "n": errors})
    if not counts.judged:
        yield _nothing(name, asked)
        return
    if terms.plan == RunPlan.CAMPAIGN:
        return
    least = 100 if terms.plan == RunPlan.CASES else terms.min_judged
    # As in a run, a failure that a waiver accepts keeps no test of the gate from conforming, nor what hangs on it.
    accepted = counts.twin_waived if terms.plan == RunPlan.CHECK else 0
    if 100 * counts.judged < least * (counted - accepted):
        what = _WHAT[terms.plan]
        values: dict[str, str | int] = {
            "operator": name,
            "judged": counts.judged,
            "counted": counted,
            "share": percent(counts.judged / counted),
            "least": least,
        }
        text = f"{name}: {counts.judged} of {counted} {what} ({values['share']}%); at least {least}% must be"
        yield Note(text, NoteCode.FEW_JUDGED, values)
    if dtypes := [dtype for dtype, tried in operator.dtypes.items() if not tried.judged]:
        shown = ", ".join(dtypes)
        yield Note(f"{name}: no values were judged of {shown}", NoteCode.DTYPE, {"operator": name, "dtypes": shown})
    if rules := [rule for rule, tried in operator.rules.items() if tried.planned and not tried.judged]:
        values = {"operator": name, "n": len(rules), "of": len(operator.rules), "id": rules[0]}
        text = f"{name}: no status was judged of {len(rules)} of {values['of']} listed rules, such as {rules[0]}"
        yield Note(text, NoteCode.RULE, values)
    if terms.every_corner and (missed := _missed_corners(operator)):
        values = {"operator": name, "n": len(missed), "corner": missed[0]}
        corners = "1 corner" if len(missed) == 1 else f"{len(missed)} corners"
        yield Note(f"{name}: no values were judged at {corners}, such as {missed[0]}", NoteCode.CORNER, values)


_WHAT = {
    RunPlan.PROFILE: "valid calls were judged on values",
    RunPlan.STATUSES: "calls were judged by their status",
    RunPlan.CASES: "cases were judged",
    RunPlan.CHECK: "trials were judged",
}


def _nothing(name: str, total: Counts) -> Note:
    values: dict[str, str | int] = {"operator": name}
    if total.out_of_scope and total.out_of_scope == total.cases:
        return Note(f"{name}: the adapter does not offer it, so that nothing was judged", NoteCode.NOT_OFFERED, values)
    if total.cases and total.skipped_by_reason.get(SkipReason.UNSUPPORTED) == total.cases:
        text = f"{name}: its document does not name the product; `aclnn-cts spec show` lists what it names"
        return Note(text, NoteCode.UNSUPPORTED, values)
    return Note(f"{name}: nothing was judged", NoteCode.NOTHING_JUDGED, values)


_AIM_OF_CAUSE = {
    NoteCode.FEW_JUDGED: TrialAim.VALUES,
    NoteCode.DTYPE: TrialAim.VALUES,
    NoteCode.RULE: TrialAim.STATUS,
    NoteCode.CORNER: TrialAim.VALUES,
}


def _aims(causes: Iterable[Note]) -> frozenset[str] | None:
    """The aims whose trials the causes are about; None: all."""
    aims = {_AIM_OF_CAUSE.get(note.code, "") for note in causes}
    return None if "" in aims else frozenset(aims)


def _reasons(name: str, operator: OperatorSummary, aims: frozenset[str] | None) -> Iterator[Reason]:
    """Why trials of an operator have no verdict. Open ones are named only where there is nothing else."""
    entries = [(key, item) for key, item in operator.unjudged.items() if aims is None or item.aim in aims]
    groups: dict[str, list[UnjudgedCount]] = {}
    for key, item in [entry for entry in entries if not _is_open(entry[1])] or entries:
        groups.setdefault(key.removeprefix(f"{item.aim}: "), []).append(item)
    for items in groups.values():
        least = min(items, key=lambda item: item.trial)
        number = sum(item.number for item in items)
        yield Reason(number=number, text=least.text, operator=name, example=least.case, trial=least.trial)
    told = sum(item.number for item in operator.unjudged.values() if item.result == Result.SKIPPED)
    for reason, number in operator.total.skipped_by_reason.items() if not told else ():
        yield Reason(number=number, text=reason, operator=name, example="")


def _is_open(item: UnjudgedCount) -> bool:
    return item.kind in (SkipReason.OPEN, SkipReason.UNSAFE)


_NAMED = (OutOfScope.OPERATOR, OutOfScope.PRODUCT, OutOfScope.DTYPE, OutOfScope.FORMAT)
_SCOPE_ORDER = (
    OutOfScope.OPERATOR,
    OutOfScope.PRODUCT,
    OutOfScope.STATUSES,
    OutOfScope.PHASES,
    OutOfScope.CALL_MODES,
    OutOfScope.STRIDED_INPUTS,
    OutOfScope.STRIDED_OUTPUTS,
    OutOfScope.DTYPE,
    OutOfScope.FORMAT,
    OutOfScope.INVALID_DTYPES,
    OutOfScope.INVALID_FORMATS,
)


def _scope_word(name: str) -> str:
    """What sort of thing is not offered."""
    return name if name in _SCOPE_ORDER else name.partition(" ")[0]


def _scope_order(name: str) -> tuple[int, str]:
    word = _scope_word(name)
    return (_SCOPE_ORDER.index(word) if word in _SCOPE_ORDER else len(_SCOPE_ORDER), name)


SUFFICIENT = frozenset({"standard", "thorough", "cann-standard", "cann-l0", "cann-l1", "cann-l2"})
"""Profiles that acceptance can rest on."""


class InsufficiencyReason(str, Enum):
    """Why acceptance cannot rest on a run, whatever its verdict."""

    CAMPAIGN = "fuzz"
    CASES = "none"
    PROFILE = "profile"
    MAX_CASES = "max_cases"
    PHASES = "phase"
    MIN_JUDGED = "min_judged"
    UNFINISHED = "unfinished"


def insufficiency_of_run(terms: Terms | None, *, profile: str, finished: bool) -> tuple[InsufficiencyReason, ...]:
    """Why acceptance cannot rest on a run of that profile; empty where it can, if the run is not inconclusive."""
    plan, least = (terms.plan, terms.min_judged) if terms is not None else (RunPlan.CASES, MIN_JUDGED)
    is_campaign = plan == RunPlan.CAMPAIGN
    holds = {
        InsufficiencyReason.PHASES: plan == RunPlan.STATUSES,
        InsufficiencyReason.CAMPAIGN: is_campaign,
        InsufficiencyReason.CASES: not is_campaign and not profile,
        InsufficiencyReason.PROFILE: not is_campaign and profile and profile not in SUFFICIENT,
        InsufficiencyReason.MAX_CASES: terms is not None and terms.is_limited,
        InsufficiencyReason.MIN_JUDGED: plan == RunPlan.PROFILE and least < MIN_JUDGED,
        InsufficiencyReason.UNFINISHED: not finished,
    }
    return tuple(reason for reason in holds if holds[reason])


_PLANS = {RunPlan.STATUSES: "statuses alone", RunPlan.CASES: "chosen cases alone"}


def headline(conclusion: Conclusion) -> str:
    """The verdict in words, with what the adapter does not offer: `conforms; statuses not offered`."""
    verdict, terms = conclusion.verdict, conclusion.terms
    said = [verdict.words]
    if verdict in (RunVerdict.CONFORMS, RunVerdict.CONFORMS_WITH_WAIVERS) and terms is not None:
        said.append(_PLANS.get(terms.plan, ""))
        said.append("fewer cases than its profile has" if terms.is_limited else "")
        if terms.min_judged < MIN_JUDGED and terms.plan != RunPlan.CASES:
            said.append(f"judged at least {terms.min_judged}%, not {MIN_JUDGED}%")
        said.append(corners_text(conclusion.operators.values()))
    return "; ".join(part for part in (*said, scope_text(conclusion.scope)) if part)


def corners_text(operators: Iterable[OperatorVerdict]) -> str:
    """How many corners were judged, as `61 of 63 corners`; empty where calls were planned at none."""
    found = tuple(operators)
    every = sum(item.corners for item in found)
    judged = every - sum(len(item.missed_corners) for item in found)
    return f"{judged:,} of {every:,} corners" if judged else ""


def explain_conclusion(conclusion: Conclusion, *, causes: int = 2) -> Iterator[str]:
    """Why there is no better verdict, a line each: so many causes at most, then the most frequent reasons."""
    yield from (note.text for note in conclusion.causes[:causes])
    if (more := len(conclusion.causes) - causes) > 0:
        yield f"... and {more} more {'cause' if more == 1 else 'causes'}"
    for reason in conclusion.reasons:
        yield f"{reason.number} {reason.text}" + (f"; such as {reason.example}" if reason.example else "")


def scope_text(scope: Iterable[str]) -> str:
    """What is not offered, as `statuses, dtypes BF16 and DOUBLE not offered`; empty where nothing is missing."""
    parts = []
    for word, group in groupby(sorted(set(scope), key=_scope_order), key=_scope_word):
        names = list(group)
        if word in _NAMED and len(names) > 1:
            shown = [name.removeprefix(f"{word} ") for name in names]
            parts.append(f"{word}s {', '.join(shown[:-1])} and {shown[-1]}")
        else:
            parts.extend(names)
    return f"{', '.join(parts)} not offered" if parts else ""
