"""What a document promises of one case: the order of its constraints, which it breaks, which statuses conform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.outcome import ANY_ERROR, SUCCESS
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.evaluator import Evaluator
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.kinds import Strength, Test
from aclnn_cts.speclang.kinds_tensor import CallPointerRule
from aclnn_cts.speclang.model import Constraint, ConstraintTest, Spec

_DECIDING = (Strength.LISTED, Strength.LIMIT, Strength.OPEN, Strength.ACCURACY)


class Evaluation(msgspec.Struct, frozen=True):
    """Every constraint on one case: broken, not applicable (it requires a broken one, or is undefined), or holding."""

    broken: tuple[Constraint, ...]
    not_applicable: tuple[Constraint, ...]
    held: tuple[Constraint, ...]
    """Those that hold and were put to the test (their `when` is true)."""

    @property
    def statuses(self) -> tuple[str, ...]:
        """The statuses that conform, most specific first."""
        return promised_statuses(self.broken)

    @property
    def strength(self) -> str:
        """`valid` where nothing is broken, else what decides among the broken: listed, limit, open or accuracy."""
        strengths = {item.strength for item in self.broken}
        return next((strength for strength in _DECIDING if strength in strengths), "valid")

    @property
    def has_values(self) -> bool:
        """Whether the values of a call that breaks something are judged where it succeeds."""
        if self.strength == Strength.OPEN:
            return all(item.valued for item in self.broken)
        return self.strength == Strength.LIMIT


def promised_statuses(broken: tuple[Constraint, ...]) -> tuple[str, ...]:
    """The statuses that conform where `broken` are broken: names, then `ACLNN_ERR_*`, then success.

    Codes that the document lists win. Where something without a code is broken beside them, any error conforms, since
    the document does not order its checks. Success conforms only where nothing broken is promised to be an error, and
    nothing else does where accuracy alone is withdrawn.
    """
    broken = tuple([item for item in broken if item.strength != Strength.ACCURACY])
    if not broken:
        return (SUCCESS,)
    names = dict.fromkeys(name for item in broken for name in item.statuses if name != ANY_ERROR)
    silent = [item for item in broken if not item.statuses]
    anonymous = [item for item in broken if ANY_ERROR in item.statuses]
    promised = list(names)
    if anonymous or silent:
        promised.append(ANY_ERROR)
    if len(silent) == len(broken):
        promised.append(SUCCESS)
    return tuple(promised)


def is_broken(spec: Spec, case: Case) -> bool:
    """Whether the case breaks any constraint: what `evaluate` finds, without a look behind the first that is broken."""
    return bool(first_broken(spec, case))


def first_broken(spec: Spec, case: Case) -> str:
    """The id of the first constraint in the order of evaluation that the case breaks; empty where it breaks none."""
    bad = 0
    for bit, requires, test, constraint in spec.tests[case.target.product]:
        if bad & requires:
            bad |= bit
            continue
        try:
            if test(case.arguments, case.target) is False:
                return constraint.id
        except UNDEFINED:
            bad |= bit
    return next((constraint.id for pointer, constraint in spec.pointers if pointer in case.call.null), "")


def evaluate(spec: Spec, case: Case) -> Evaluation:
    """Evaluate every constraint of the case's product; KeyError where the operator does not support the product."""
    arguments, target = case.arguments, case.target
    bad = 0
    broken: list[Constraint] = []
    not_applicable: list[Constraint] = []
    held: list[Constraint] = []
    for bit, requires, test, constraint in spec.tests[target.product]:
        if bad & requires:
            bad |= bit
            not_applicable.append(constraint)
            continue
        try:
            outcome = test(arguments, target)
        except UNDEFINED:
            bad |= bit
            not_applicable.append(constraint)
            continue
        if outcome:
            held.append(constraint)
        elif outcome is False:
            bad |= bit
            broken.append(constraint)
    for pointer, constraint in spec.pointers:
        (broken if pointer in case.call.null else held).append(constraint)
    return Evaluation(tuple(broken), tuple(not_applicable), tuple(held))


class ConstraintTests(dict[str, tuple[ConstraintTest, ...]]):
    """The tests of an operator's constraints by product, made when a product is first asked for.

    A test gives None where its `when` is false: it holds, and nothing was put to the test.
    """

    def __init__(self, constraints: Sequence[Constraint], products: Sequence[str]) -> None:
        super().__init__()
        self._constraints = [item for item in constraints if not isinstance(item.rule, CallPointerRule)]
        self._products = products
        self._bits = {item.id: 1 << position for position, item in enumerate(constraints)}

    def __missing__(self, product: str) -> tuple[ConstraintTest, ...]:
        if product not in self._products:
            raise KeyError(product)
        bits = self._bits
        self[product] = tuple(
            (
                bits[item.id],
                sum(bits[name] for name in item.requires if name in bits),
                _with_condition(item.rule.test, item.when),
                item,
            )
            for item in self._constraints
            if item.applies_to(product)
        )
        return self[product]


def _with_condition(test: Test, evaluator: Evaluator | None) -> Test:
    if evaluator is None:
        return test
    when = evaluator.compiled

    def conditional(arguments: Mapping[str, Any], target: Target) -> bool | None:
        return test(arguments, target) if when(arguments, target) else None

    return conditional
