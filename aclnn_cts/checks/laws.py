"""Laws as checks: those of an operator's oracle, and the values of each call beside the relation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.checks.plan import Part
from aclnn_cts.core.case import Case, Origin, real_view
from aclnn_cts.core.errors import HarnessError, UsageError, nearest
from aclnn_cts.core.expected import ExpectedOutput, OracleInput
from aclnn_cts.core.faults import severity
from aclnn_cts.core.law import Law, LawCall, LawInput, Parameters
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.printable import shown
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import FAILED_CHECKS, UNJUDGED_VALUES, VALUE_CHECK, Result, Skip, Verdict
from aclnn_cts.execution.executor import Performed
from aclnn_cts.execution.judging import Judge, Limits, widened
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.law import RELATION_FACT, judge_law, law_output
from aclnn_cts.oracles import registry
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.load import package_folder
from aclnn_cts.speclang.model import Spec

PREFIX = "law/"
"""Before a law's id, it makes the id of a check."""

LAW_KIND = "law"
"""The kind of case that a law's base is."""

ATTEMPTS = 64
"""Base cases that are tried before a trial counts as withheld."""

_SIXTEENTHS = (1, 3, 3, 6, 16)
"""Most elements of a tensor of a base case, in sixteenths of the law's `base_elements`: small ones say more when they
fail."""

_CANDIDATES = 16
"""Bases of which a law that wants long sums takes one."""


def laws_of(spec: Spec) -> Mapping[str, Law]:
    """The laws of an operator by id, from the `LAWS` of its oracle; none where that states none.

    Raises UsageError where there is no oracle, HarnessError where a law stands twice in it.
    """
    return _laws(spec.stem, _folders(spec))


def _folders(spec: Spec) -> tuple[Path, ...]:
    """Where an operator's oracle lies, if it is none of ours."""
    own = (package_folder() / f"{spec.stem}.yaml").exists()
    return () if own else (Path(spec.path).parent,)


@cache
def _laws(stem: str, folders: tuple[Path, ...]) -> Mapping[str, Law]:
    found: dict[str, Law] = {}
    for law in registry.load_laws(stem, folders=folders):
        if law.id in found:
            raise HarnessError(
                f"the oracle of {stem} states the law {shown(law.id)} twice; expected one entry of LAWS a law"
            )
        found[law.id] = law
    return MappingProxyType(found)


@cache
def shipped_laws() -> Mapping[str, Law]:
    """One law of each id that our own oracles state; HarnessError where two of one id say different things."""
    found: dict[str, Law] = {}
    for stem in registry.available():
        for identifier, law in _laws(stem, ()).items():
            first = found.setdefault(identifier, law)
            if (first.en, first.zh) != (law.en, law.zh):
                raise HarnessError(
                    f"the law {shown(identifier)} of {stem} says {shown(law.en)}; elsewhere it says {shown(first.en)}"
                )
    return MappingProxyType(found)


def law_ids(spec: Spec) -> tuple[str, ...]:
    """The ids of the checks that an operator's laws are."""
    return tuple(PREFIX + identifier for identifier in laws_of(spec))


def law_of(spec: Spec, check: str) -> Law:
    """The law of an operator that a check's id names; UsageError where the operator has none such."""
    laws = laws_of(spec)
    identifier = check.removeprefix(PREFIX)
    if identifier not in laws:
        raise UsageError(
            f"check {shown(check)}: {spec.operator} has no such law; expected one of "
            f"{', '.join(law_ids(spec)) or 'none'}{nearest(check, law_ids(spec))}"
        )
    return laws[identifier]


@dataclass(frozen=True, slots=True)
class RegisteredLaw:
    """One law, for every operator whose oracle states it."""

    id: str
    sentence: str

    def trials(self, part: Part, sampler: Sampler, *, seed: int) -> Iterator[Trial]:
        """Trials on small base cases. Fewer come where no base of `ATTEMPTS` gave calls that hold every constraint.

        A law that wants long sums gets the base with most of them out of `_CANDIDATES`: left to chance, few sums have
        the three terms from which on their order can show.
        """
        spec = sampler.spec
        law = law_of(spec, self.id)
        for number in range(part.first, part.first + part.count):
            bases = self._bases(law, sampler, number, seed=seed)
            if law.long_sums:
                candidates = list(islice(bases, _CANDIDATES))
                bases = iter(sorted(candidates, key=lambda trial: orders(spec, trial.case), reverse=True))
            yield from islice(bases, 1)

    def _bases(self, law: Law, sampler: Sampler, number: int, *, seed: int) -> Iterator[Trial]:
        """What can be the trial of that number."""
        spec = sampler.spec
        stream = f"{spec.operator}/{sampler.target.product}/{self.id}"
        budgets = [law.base_elements * part // 16 for part in _SIXTEENTHS]
        for attempt in range(ATTEMPTS):
            choices = StreamChoices(seed, stream, number * ATTEMPTS + attempt)
            drawing = sampler.draw(choices, budget=choices.pick(budgets))
            case = sampler.case(drawing, origin=Origin(kind=LAW_KIND))
            trial = Trial(self.id, case, dict(law.draw(choices.integer)))
            if usable(law, spec, trial):
                yield trial

    def calls(self, trial: Trial, spec: Spec) -> tuple[Case, ...]:
        """What the law makes of the base case and the trial's parameters."""
        made = law_calls(trial, spec)
        if not made:
            raise UsageError(
                f"a trial of {shown(trial.check)} takes a case that the law applies to; this one has other sizes, "
                "attributes or contents than it needs"
            )
        return made

    def judge(self, trial: Trial, performed: Sequence[Performed], judge: Judge, evaluation: Evaluation) -> Verdict:
        """The relations among the calls and the values of each, once all of them came back in form."""
        demand_valid(trial, evaluation)
        forms = [verdict for item in performed if (verdict := judge.form(item)) is not None]
        if forms:
            return forms[deciding(forms, (Result.FAILED, Result.ERROR, Result.SKIPPED, Result.OUT_OF_SCOPE)) or 0]
        judge = judge.with_answers(performed)
        limits = [judge.limits(item) for item in performed]
        relation = judge_law(
            law_of(judge.spec, trial.check),
            _input(judge.spec, trial),
            _law_calls(performed, limits, coarse=False),
            models={name: part.model for name, part in limits[0].items()},
            coarse=lambda: _law_calls(performed, limits, coarse=True),
            mode=judge.spec.mode(trial.case).name,
        )
        return with_values(relation, [judge.values(item) for item in performed], check=RELATION_FACT)


def law_calls(trial: Trial, spec: Spec) -> tuple[Case, ...]:
    """The calls of a law's trial; none where the law does not apply to its case.

    Raises UsageError for a law that the operator does not have, and for parameters that do not fit.
    """
    law, base = law_of(spec, trial.check), _input(spec, trial)
    try:
        made = law.calls(base) if law.applies(base.case) else ()
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # Somebody may have written the trial.
        raise UsageError(
            f"trial: $.parameters: {dict(base.parameters)}; the law {shown(law.id)} cannot use them on this case "
            f"({type(error).__name__}: {error}); keep those that a run has written"
        ) from None
    return tuple(msgspec.structs.replace(call, origin=base.case.origin) for call in made)


def exact_law(trial: Trial, judge: Judge) -> tuple[Law, LawInput, list[LawCall]]:
    """What a law's check takes, as if every call had given its exact result."""
    law, base = law_of(judge.spec, trial.check), _input(judge.spec, trial)
    made = [
        Performed(case=case, outcome=Outcome(), arrays=case_arrays(case, judge.spec.given_inputs(case)))
        for case in law_calls(trial, judge.spec)
    ]
    limits = [judge.limits(item) for item in made]
    exact = [
        msgspec.structs.replace(item, got={name: _whole(part, item.case, name) for name, part in parts.items()})
        for item, parts in zip(made, limits, strict=True)
    ]
    return law, base, _law_calls(exact, limits, coarse=False)


def _whole(limits: Limits, case: Case, name: str) -> NDArray[Any]:
    tensor = case.tensor(name)
    return np.broadcast_to(limits.expected.value, () if tensor is None else real_view(tensor).shape)


def usable(law: Law, spec: Spec, trial: Trial) -> bool:
    """Whether a trial's base is small, has data and is one of the law's, and every call of it holds all constraints."""
    case = trial.case
    if case.call.phases != 2 or any(tensor.numel > law.base_elements for _, tensor in case.tensors()):
        return False
    if not law.applies(case):
        return False
    made = law.calls(_input(spec, trial))
    return bool(made) and not any(evaluate(spec, call).broken for call in made)


def orders(spec: Spec, case: Case) -> int:
    """How much the order of evaluation can matter: the roundings beyond the first, over all elements of an output.

    How often an element is rounded on its way, the oracle says; where that is once, as in a sum of two terms, every
    order gives the same. The output with the most counts.
    """
    oracle = registry.load(spec.stem, folders=_folders(spec))
    tensors = _contents(spec, case)
    question = OracleInput(tensors=tensors, arguments=case.arguments, target=case.target, updated=spec.updated(case))
    return max(map(_beyond_the_first, oracle(question).values()), default=0)


def _beyond_the_first(output: ExpectedOutput) -> int:
    """How many roundings follow the first one of an element, over all that are judged.

    An element that is open tells nothing. Nor does one whose share of error is no number: 0 of 0, or of nan.
    """
    counts = np.zeros(output.value.shape, np.int64)
    for term in output.terms:
        if term.kind == "compute":
            counts += term.count
    if output.error is not None and output.arithmetic is not None:
        with np.errstate(all="ignore"):
            rounded = np.clip(output.error / (output.arithmetic.roundoff * np.abs(output.value)), 0, 2**20)
        counts += np.where(np.isnan(rounded), 0, rounded).astype(np.int64)
    if output.open is not None:
        counts = np.where(output.open, 0, counts)
    return int(np.maximum(counts - 1, 0).sum())


def _contents(spec: Spec, case: Case) -> dict[str, NDArray[Any]]:
    """The contents of a case's inputs as oracles and laws take them."""
    return widened(case, case_arrays(case, spec.given_inputs(case)))


def _input(spec: Spec, trial: Trial) -> LawInput:
    return LawInput(case=trial.case, tensors=_contents(spec, trial.case), parameters=_parameters(trial))


def _parameters(trial: Trial) -> Parameters:
    for name, value in trial.parameters.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"trial: $.parameters.{name}: {shown(value)}; expected an integer")
    return trial.parameters


def _law_calls(
    performed: Sequence[Performed], limits: Sequence[Mapping[str, Limits]], *, coarse: bool
) -> list[LawCall]:
    return [
        LawCall(
            case=item.case,
            tensors=widened(item.case, item.arrays),
            outputs={
                name: law_output(
                    item.got[name],
                    part.expected,
                    part.model,
                    operands=part.operands,
                    deterministic=item.case.target.deterministic is True,
                    coarse=coarse,
                )
                for name, part in parts.items()
            },
        )
        for item, parts in zip(performed, limits, strict=True)
    ]


def demand_valid(trial: Trial, evaluation: Evaluation) -> None:
    """UsageError for a case that breaks a constraint."""
    if evaluation.broken:
        names = ", ".join(item.id for item in evaluation.broken)
        raise UsageError(
            f"a trial of {shown(trial.check)} takes a case that holds all constraints; this one breaks {names}"
        )


def demand_broken(trial: Trial, evaluation: Evaluation) -> None:
    """UsageError for a case that breaks no constraint."""
    if not evaluation.broken:
        raise UsageError(f"a trial of {shown(trial.check)} takes a case that breaks a constraint; this one holds all")


def deciding(verdicts: Sequence[Verdict], results: Sequence[str]) -> int | None:
    """The place of the verdict that decides: the first of the first of these results that one has; None: none has."""
    places = (place for result in results for place, item in enumerate(verdicts) if item.result == result)
    return next(places, None)


def of_call(verdict: Verdict, number: int, calls: int) -> Verdict:
    """The verdict of a trial of so many calls that the one on call `number` decides."""
    if calls == 1 or verdict.result != Result.FAILED:
        return verdict
    return msgspec.structs.replace(verdict, message=f"call {number} of {calls}: {verdict.message}")


def with_values(own: Verdict, values: Sequence[Verdict], *, check: str) -> Verdict:
    """The verdict of a trial.

    - `own`: of its own check, whose name is `check`, once its calls came back in form.
    - `values`: of each call by itself, in their order.

    A dispute of oracles takes the place of a pass. Other values that cannot be judged leave `own` as it is, with the
    fact why.
    """
    if (broken := next((item for item in values if item.result == Result.ERROR), None)) is not None:
        return broken
    wrong = [place for place, item in enumerate(values) if item.result == Result.FAILED]
    failed = own.result == Result.FAILED
    if wrong:
        worst = min(wrong, key=lambda place: (severity(values[place].kind).order, place))
        found = of_call(values[worst], worst + 1, len(values))
        if not failed:
            return _with_checks(found, VALUE_CHECK)
        values_first = severity(found.kind).order <= severity(own.kind).order
        first, second = (found, own) if values_first else (own, found)
        both = msgspec.structs.replace(first, message=f"{first.message}; also: {second.message}")
        return _with_checks(both, *((VALUE_CHECK, check) if values_first else (check, VALUE_CHECK)))
    if failed:
        return _with_checks(own, check)
    unjudged = [item for item in values if item.result != Result.PASSED]
    if (dispute := next((item for item in unjudged if item.kind == Skip.DISPUTE), None)) is not None:
        return dispute
    if unjudged:
        return msgspec.structs.replace(own, facts={**own.facts, UNJUDGED_VALUES: unjudged[0].kind})
    return own


def _with_checks(verdict: Verdict, *checks: str) -> Verdict:
    return msgspec.structs.replace(verdict, facts={**verdict.facts, FAILED_CHECKS: list(checks)})
