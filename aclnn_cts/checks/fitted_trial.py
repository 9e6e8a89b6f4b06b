"""Trials and cases from outside against the specs and the registered checks: known before anything is run.

Apart from reading them, so that whoever only stores cases loads no specs.
"""

from __future__ import annotations

from aclnn_cts.checks.registry import check, check_trial
from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.trial import Trial
from aclnn_cts.generate.recipes import check_data
from aclnn_cts.speclang.binding import bind_case
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec


def _fitted_case(specs: Specs, case: Case, *, where: str) -> Spec:
    """The spec of a case's operator; UsageError where arguments do not fit the prototype, or data mean nothing."""
    spec = bind_case(specs, case, where=where)
    for name, tensor in case.tensors():
        if tensor.data is not None:
            try:
                check_data(tensor.data, name=name)
            except UsageError as error:
                raise UsageError(f"{where}: $.{error}") from None
    return spec


def fitted_trial(specs: Specs, item: Trial | Case, *, where: str) -> Spec:
    """The spec of a trial's operator.

    UsageError, opened by `where`, where arguments of any of its calls do not fit the prototype, the calls before it are
    made for another target, or its check is unknown or cannot judge the case.
    """
    if isinstance(item, Case):
        return _fitted_case(specs, item, where=where)
    spec = _fitted_case(specs, item.case, where=where)
    for number, earlier in enumerate(item.after):
        _fitted_case(specs, earlier.case, where=f"{where} ($.after[{number}].case)")
        if earlier.case.target != item.case.target:
            raise UsageError(
                f"{where}: $.after[{number}].case: made for another target than the trial's own case; expected the same"
                " product, soc and settings"
            )
    if item.case.product in spec.products:
        check_trial(item, spec, where=where)
    else:
        check(item.check, where=f"{where}: $.check")
    return spec
