"""The documents themselves as an implementation: the promised statuses, and the oracle's values correctly rounded.

It shows that harness and documents agree with themselves, and is what other implementations are tried against first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.adapters.protocol import Buffers, Call, Capabilities, Inexpressible
from aclnn_cts.adapters.results import MESSAGE_LIMIT, outcome_of, run_each
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.dtypes import component, components, from_components, promoted_inputs
from aclnn_cts.core.errors import OracleError
from aclnn_cts.core.expected import Condensed, Float64, OracleInput
from aclnn_cts.core.outcome import STATUSES, SUCCESS, CallEnd, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.evaluate import Evaluation, evaluate
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.load import package_folder
from aclnn_cts.speclang.model import Spec

Values: TypeAlias = Callable[[OracleInput], Mapping[str, Float64]]
"""Of one operator: its outputs in float64."""

_SUCCESS = STATUSES[SUCCESS]
_NULLPTR = STATUSES["ACLNN_ERR_PARAM_NULLPTR"]
_INVALID = STATUSES["ACLNN_ERR_PARAM_INVALID"]

_LARGE = 1 << 22
"""Elements of a tensor above which outputs are computed without their rows of 0."""


class ReferenceAdapter:
    """Opens the reference; it has no options."""

    def open(self, target: Target, specs: Mapping[str, Spec]) -> ReferenceSession:
        """Open it for a product; the specs of all operators that will be asked for must be there."""
        return ReferenceSession(target, specs)


class ReferenceSession:
    """Runs in the process of whoever asks: NumPy alone, and nothing that could crash."""

    def __init__(self, target: Target, specs: Mapping[str, Spec]) -> None:
        self._specs = specs
        self._oracles: dict[str, Values] = {}
        self.capabilities = Capabilities(
            description="NumPy float64 oracle with the documented statuses",
            statuses=True,
            phases=True,
            measured=frozenset({"numpy"}),
            in_place=True,
            deterministic=True,
        )
        self.environment: Mapping[str, str] = MappingProxyType(
            {"implementation": "reference", "numpy": np.__version__, "product": target.product}
        )

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Answer each call; what an oracle raises becomes the outcome."""
        return run_each(calls, self._call)

    def close(self) -> None:
        """Nothing is held."""

    def _call(self, call: Call) -> Outcome:
        case = call.case
        spec = self._specs.get(case.operator)
        if spec is None or case.product not in spec.products:
            raise Inexpressible(f"no document here says anything of {case.operator} on {case.product}")
        evaluation = evaluate(spec, case)
        # A limit without a code is kept like a rule: PARAM_INVALID is the error that arguments get.
        status = STATUSES.get(evaluation.statuses[0], _INVALID)
        unsaid = evaluation.strength == Strength.OPEN
        if status and not unsaid:
            return _refusal(spec, evaluation, status)
        if "workspaceSize" in case.call.null or "executor" in case.call.null:
            # Where the document does not say: an answer has nowhere to go.
            return Outcome(phase_one=_NULLPTR)
        if call.buffers is None or case.call.phases == 1:
            return Outcome(phase_one=_SUCCESS, workspace_size=0)
        try:
            results = self._compute(spec, case, call.buffers)
        except (ArithmeticError, IndexError, KeyError, TypeError, ValueError, OracleError) as error:
            if not unsaid and isinstance(error, OracleError):
                # A mistake in the oracle's file accuses no implementation.
                return Outcome(ended=CallEnd.NOT_RUN, message=str(error)[:MESSAGE_LIMIT])
            if not unsaid:
                raise
            # The document leaves open what becomes of such a call; one without a value can only be refused.
            return Outcome(phase_one=_INVALID, message=f"{type(error).__name__}: {error}")
        written = outcome_of(call, results)
        return Outcome(phase_one=_SUCCESS, phase_two=_SUCCESS, workspace_size=0, facts=written.facts)

    def _compute(self, spec: Spec, case: Case, buffers: Buffers) -> dict[str, NDArray[Any]]:
        from aclnn_cts.core.rounding import as_operand, to_dtype  # noqa: PLC0415 - a refused call never needs it

        question = OracleInput(
            tensors=promoted_inputs(
                {name: as_operand(components(buffer.view)) for name, buffer in buffers.inputs.items()},
                spec.promoting,
                spec.computed_in(case),
            ),
            arguments=case.arguments,
            target=case.target,
            updated=spec.updated_tensors(case),
        )
        condensed = self._condensed(spec, question)
        question = question if condensed is None else condensed.question
        values = self._values(spec)(question)
        results = {}
        for name in spec.computed_outputs(case):
            if name not in buffers.outputs:
                continue
            dtype, whole = _descriptor(case, name).dtype, _descriptor(case, name).shape
            rounded = to_dtype(np.broadcast_to(values[name], question.shape(name)), component(dtype))
            written = from_components(rounded, dtype)
            results[name] = written if condensed is None else np.zeros(whole, written.dtype)
            if condensed is not None:
                results[name][condensed.rows[name]] = written
        return results

    def _condensed(self, spec: Spec, question: OracleInput) -> Condensed | None:
        """The smaller call of one with a large output, most rows of which are 0."""
        if all(value.numel <= _LARGE for value in question.arguments.values() if isinstance(value, Tensor)):
            return None
        from aclnn_cts.oracles import registry  # noqa: PLC0415 - statuses alone need no oracle

        condense = registry.load_condense(spec.stem, folders=_folders(spec))
        return None if condense is None else condense(question, {})

    def _values(self, spec: Spec) -> Values:
        if spec.stem not in self._oracles:
            from aclnn_cts.oracles import registry  # noqa: PLC0415 - statuses alone need no oracle

            self._oracles[spec.stem] = registry.load(spec.stem, folders=_folders(spec)).values
        return self._oracles[spec.stem]


def _folders(spec: Spec) -> tuple[Path, ...]:
    """Where an operator's oracle lies, if it is none of ours."""
    own = (package_folder() / f"{spec.stem}.yaml").exists()
    return () if own else (Path(spec.path).parent,)


def _refusal(spec: Spec, evaluation: Evaluation, status: int) -> Outcome:
    of_phase_two = [constraint for pointer, constraint in spec.pointers if pointer == "workspace"]
    if all(constraint in of_phase_two for constraint in evaluation.broken):
        return Outcome(phase_one=_SUCCESS, phase_two=status, workspace_size=0)
    return Outcome(phase_one=status)


def _descriptor(case: Case, name: str) -> Tensor:
    descriptor = case.tensor(name)
    if descriptor is None:
        raise TypeError(f"{name} is {case.arguments.get(name)!r}, not a tensor")
    return descriptor
