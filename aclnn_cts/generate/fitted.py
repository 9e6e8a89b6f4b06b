"""Cases from outside against the specs: apart from reading them, so that whoever only stores cases loads no specs."""

from __future__ import annotations

from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import UsageError
from aclnn_cts.generate.recipes import check_data
from aclnn_cts.speclang.binding import bind_case
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec

__all__ = ["fitted_case"]


def fitted_case(specs: Specs, case: Case, *, where: str) -> Spec:
    """The spec of a case's operator; UsageError where arguments do not fit the prototype, or data mean nothing."""
    spec = bind_case(specs, case, where=where)
    for name, tensor in case.tensors():
        if tensor.data is not None:
            try:
                check_data(tensor.data, name=name)
            except UsageError as error:
                raise UsageError(f"{where}: $.{error}") from None
    return spec
