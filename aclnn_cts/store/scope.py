"""What an adapter declared to offer: fixed before the plan, kept with the run, and subtracted from what is planned.

A declaration names operators, products, dtypes, formats, layouts, phases, statuses and call modes; never sizes or
values. What an implementation refuses without having declared it counts against it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.core.case import Case, Tensor, owner
from aclnn_cts.core.case_json import canonical_json
from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.core.errors import HarnessError, did_you_mean
from aclnn_cts.core.printable import quote
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import OutOfScope, Result, TrialAim, Verdict, aim_of
from aclnn_cts.speclang.model import Spec

Names = tuple[str, ...] | None
"""Sorted names; None: all."""


class PlannedCall(Protocol):
    """A call to be made, as `execution.executor` has it."""

    @property
    def case(self) -> Case: ...
    @property
    def call_mode(self) -> Mapping[str, str | int | bool]: ...


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What an implementation offers, as its adapter declared it."""

    operators: Names = None
    products: Names = None
    dtypes: Names = None
    formats: Names = None
    strided_inputs: bool = True
    strided_outputs: bool = True
    phases: bool = True
    statuses: bool = True
    rejections: bool = False
    """Without statuses: it rejects broken calls with clear errors, which are judged."""
    call_modes: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """Of the canonical JSON, in hexadecimal."""
        return hashlib.sha256(canonical_json(self)).hexdigest()

    def offers(self, operator: str, product: str) -> bool:
        """Whether anything of an operator is offered for a product."""
        return _has(self.operators, operator) and _has(self.products, product)

    def outside(self, trial: Trial, calls: Sequence[PlannedCall], spec: Spec) -> str:
        """What of a trial is not offered (`OutOfScope`); empty where it can be made.

        `calls` are all of its calls. A broken call for an implementation without statuses is made all the same: it may
        crash, write elsewhere, or be rejected.
        """
        if not _has(self.operators, trial.case.operator):
            return f"{OutOfScope.OPERATOR} {trial.case.operator}"
        if not _has(self.products, trial.case.product):
            return f"{OutOfScope.PRODUCT} {trial.case.product}"
        broken = aim_of(trial) == TrialAim.STATUS
        # Where nothing is judged of a broken call, its valid twin shows nothing.
        asked = calls if not broken or self.statuses or self.rejections else calls[-1:]
        reasons = (reason for call in asked if (reason := self._excluded(call, spec, broken=broken)))
        found = next(reasons, "")
        return OutOfScope.STATUSES if found and broken and not self.statuses else found

    def _excluded(self, call: PlannedCall, spec: Spec, *, broken: bool) -> str:
        case = call.case
        if not self.phases and (case.call.phases == 1 or case.call.null):
            return OutOfScope.PHASES
        if set(call.call_mode) - set(self.call_modes):
            return OutOfScope.CALL_MODES
        whole = self.strided_inputs and self.strided_outputs and self.dtypes is None and self.formats is None
        for name, tensor in () if whole else case.tensors():
            of = owner(name)
            if _is_view(tensor) and of in spec.outputs and not self.strided_outputs:
                return OutOfScope.STRIDED_OUTPUTS
            if _is_view(tensor) and of in spec.inputs and not self.strided_inputs:
                return OutOfScope.STRIDED_INPUTS
            if not _has(self.dtypes, tensor.dtype):
                return OutOfScope.INVALID_DTYPES if broken else f"{OutOfScope.DTYPE} {tensor.dtype}"
            if not _has(self.formats, tensor.format):
                return OutOfScope.INVALID_FORMATS if broken else f"{OutOfScope.FORMAT} {tensor.format}"
        return ""

    def verdict(self, trial: Trial, calls: Sequence[PlannedCall], spec: Spec) -> Verdict | None:
        """The verdict on a trial that is out of scope; None on any other."""
        if not (reason := self.outside(trial, calls, spec)):
            return None
        return Verdict(result=Result.OUT_OF_SCOPE, kind=reason, message=f"the adapter does not offer it: {reason}")

    def listed_dtypes(self, rows: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
        """Every parameter with each of its dtypes that is offered (`grad FLOAT`), from the rows of a dtype table."""
        offered = (row for row in rows if all(_has(self.dtypes, dtype) for dtype in row.values()))
        return tuple(dict.fromkeys(f"{name} {dtype}" for row in offered for name, dtype in row.items()))


def declared_scope(capabilities: Capabilities, *, adapter: str) -> Scope:
    """The scope that an adapter declares. HarnessError for an unknown dtype or format: it would exclude everything.

    `adapter`: the word of `--adapter`.
    """
    for field, known in (("dtypes", DTYPES), ("formats", FORMATS)):
        names: frozenset[str] | None = getattr(capabilities, field)
        for name in sorted(names or ()):
            if name not in known:
                raise HarnessError(
                    f"--adapter {adapter}: capabilities.{field}: {quote(name)} is not known; expected names such as "
                    f"{', '.join(sorted(known)[:3])}{did_you_mean(name, known)}"
                )
    return Scope(
        operators=_sorted(capabilities.operators),
        products=_sorted(capabilities.products),
        dtypes=_sorted(capabilities.dtypes),
        formats=_sorted(capabilities.formats),
        strided_inputs=capabilities.strided_inputs,
        strided_outputs=capabilities.strided_outputs,
        phases=capabilities.phases,
        statuses=capabilities.statuses,
        rejections=capabilities.rejections,
        call_modes=tuple(sorted(capabilities.call_modes)),
    )


def _sorted(names: frozenset[str] | None) -> Names:
    return None if names is None else tuple(sorted(names))


def _has(names: Names, name: str) -> bool:
    return names is None or name in names


def _is_view(tensor: Tensor) -> bool:
    """Whether its elements lie otherwise than in a plain array."""
    return not tensor.is_contiguous or tensor.offset != 0
