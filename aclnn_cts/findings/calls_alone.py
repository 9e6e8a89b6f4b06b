"""The calls of a trial with several, each as a trial by itself: the plainest one that shows a fault is examined."""

from __future__ import annotations

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import case_from_json
from aclnn_cts.core.trial import Trial
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.registry import check_by_id
from aclnn_cts.trials.plan import EQUAL_CALLS, LIFE_CYCLE, ON_REQUEST, REPEATED_FAILURE

_OF_SEVERAL_CALLS = frozenset({*EQUAL_CALLS, *ON_REQUEST, *LIFE_CYCLE})
_TWIN = "twin"


def calls_alone(trial: Trial, specs: Specs) -> list[Trial]:
    """The calls of a trial with several, or of a broken call's twin; none of any other trial."""
    spec = specs[trial.case.operator]
    if trial.check == REPEATED_FAILURE:
        return [Trial("status", trial.case, after=trial.after)]
    if trial.check in _OF_SEVERAL_CALLS:
        calls = check_by_id(trial.check, where="trial").calls(trial, spec)
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
