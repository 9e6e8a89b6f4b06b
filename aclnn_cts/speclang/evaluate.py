"""What a document promises of one case: which constraints it breaks, and which statuses conform."""

from __future__ import annotations

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.statuses import ANY_ERROR, SUCCESS
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.kinds import Constraint, Strength
from aclnn_cts.speclang.model import Spec

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
    bad = 0
    for bit, requires, test, _ in spec.compiled[case.target.product]:
        if bad & requires:
            bad |= bit
            continue
        try:
            if test(case.arguments, case.target) is False:
                return True
        except UNDEFINED:
            bad |= bit
    return any(pointer in case.call.null for pointer, _ in spec.pointers)


def evaluate(spec: Spec, case: Case) -> Evaluation:
    """Evaluate every constraint of the case's product; KeyError where the operator does not support the product."""
    arguments, target = case.arguments, case.target
    bad = 0
    broken: list[Constraint] = []
    not_applicable: list[Constraint] = []
    held: list[Constraint] = []
    for bit, requires, test, constraint in spec.compiled[target.product]:
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
