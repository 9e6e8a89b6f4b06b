"""What the records of a run by a vendor's acceptance standard show, counted for each operator."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from aclnn_cts.core.case import Case, Data, Tensor, TensorList
from aclnn_cts.core.dtypes import INEXACT
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.standard import (
    CASCADE,
    COMBINED_STATE,
    GENERATED,
    OF_MODELS,
    SAVED_STATE,
    Distribution,
    Standard,
    source_details,
)
from aclnn_cts.core.verdict import Record, Result, ToleranceVerdict, TrialAim, aim_of, is_judged
from aclnn_cts.speclang.model import Parameter, Spec
from aclnn_cts.store.manifest import Manifest
from aclnn_cts.store.store_reader import ResultReader

Kept = TypeVar("Kept")


@dataclass(slots=True, kw_only=True)
class StandardTally:
    """The records of one operator in one run by a standard."""

    standard: Standard
    spec: Spec
    manifest: Manifest
    options: Mapping[str, Mapping[str, str]]
    """By factor, what is combined, and why no valid call has an option; an empty text: one has."""
    saved: tuple[str, ...] = ()
    """Inputs that the formula's forward pass gives."""
    cascaded: int = 0
    """Generated cases with such inputs."""
    number: Counter[str] = field(default_factory=Counter)
    """By what the cases are: how many were judged."""
    failed: int = 0
    """Cases that were judged and failed."""
    unjudged: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By what they are and by reason, cases that were made and not judged."""
    distinct: set[bytes] = field(default_factory=set)
    """Judged cases, seeds left out."""
    dtypes: Counter[str] = field(default_factory=Counter)
    reached: set[tuple[str, str]] = field(default_factory=set)
    """Factor and option."""
    pairs: set[tuple[tuple[str, str], tuple[str, str]]] = field(default_factory=set)
    combinations: set[tuple[tuple[str, str], ...]] = field(default_factory=set)
    sizes: set[int] = field(default_factory=set)
    largest: int = 0
    """Elements of a tensor of a case that was judged on values."""
    values: Counter[str] = field(default_factory=Counter)
    documented: dict[str, str] = field(default_factory=dict)
    """Floating inputs whose contents the document settles, with the recipe of one."""
    special: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind of special case, and dtype of the first floating input (with the value)."""
    longest: dict[str, int] = field(default_factory=dict)
    elements: int = 0
    """Of all outputs."""
    repeated: int = 0
    unequal: int = 0
    figures: Counter[str] = field(default_factory=Counter)
    """By verdict of the standard's tolerance, outputs."""
    without: Counter[str] = field(default_factory=Counter)
    """By reason, outputs that it says nothing of."""
    benchmarks: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    """By result, calls that break a rule."""

    def add(self, record: Record) -> None:
        """Count one record."""
        if aim_of(record.trial) == TrialAim.STATUS:
            left = "outside" if record.verdict.result == Result.OUT_OF_SCOPE else "open"
            self.broken["judged" if is_judged(record.verdict) else left] += 1
            self.broken["failed"] += record.verdict.result == Result.FAILED
            return
        name, what, details = source_details(record.trial.case.origin.source or "")
        if name != self.standard.name:
            return
        case, verdict = record.trial.case, record.verdict
        if verdict.result not in (Result.PASSED, Result.FAILED):
            is_outside = verdict.result == Result.OUT_OF_SCOPE
            self.unjudged[what, verdict.result if is_outside else verdict.kind or verdict.result] += 1
            return
        self.number[what] += 1
        self.failed += verdict.result == Result.FAILED
        self.distinct.add(_without_seeds(case, is_generated=what == GENERATED))
        self._figures(record)
        tensors = self._inputs(case)
        first = next((tensor.dtype for _, tensor in tensors if tensor.dtype in INEXACT), "")
        if what == GENERATED:
            self._generated(tensors, details)
        if what in (GENERATED, OF_MODELS):
            self.dtypes.update({tensor.dtype for _, tensor in tensors})
        else:
            self.special[what, f"{first} {details.get('of', '')}".strip()] += 1
        self._long(case, what)
        if case.call.phases != 1:
            self.largest = max([self.largest, *(tensor.numel for _, tensor in case.tensors())])

    @property
    def listed(self) -> frozenset[str]:
        """The dtypes of inputs that the document lists for the run's product."""
        found = (item.dtypes.get(self.manifest.target.product, ()) for item in self._given)
        return frozenset(name for names in found for name in names)

    @property
    def floats(self) -> frozenset[str]:
        """Those of the first floating input, each of which has special cases; an empty text for an operator without."""
        product = self.manifest.target.product
        each = ([name for name in item.dtypes.get(product, ()) if name in INEXACT] for item in self._given)
        return frozenset(next(filter(None, each), [""]))

    @property
    def _given(self) -> Iterator[Parameter]:
        return (item for item in self.spec.parameters if item.is_input)

    def _inputs(self, case: Case) -> list[tuple[str, Tensor]]:
        outputs = frozenset(self.spec.outputs)
        return [(name, tensor) for name, tensor in case.tensors() if name.partition("[")[0] not in outputs]

    def _figures(self, record: Record) -> None:
        """Outputs, repeats, and what the standard's tolerance says."""
        case, verdict = record.trial.case, record.verdict
        outputs = (case.tensor(name) for name in self.spec.outputs)
        self.elements += sum(tensor.numel for tensor in outputs if tensor is not None and case.call.phases != 1)
        if record.trial.parameters.get("repeats"):
            self.repeated += 1
            self.unequal += verdict.kind == Fault.NONDETERMINISTIC
        for result in verdict.tolerances.get(self.standard.tolerance, {}).values():
            self.figures[result.verdict] += 1
            if result.verdict == ToleranceVerdict.NOT_APPLICABLE:
                self.without[result.why] += 1
            if result.benchmark:
                self.benchmarks[result.benchmark] += 1

    def _generated(self, tensors: Sequence[tuple[str, Tensor]], details: Mapping[str, str]) -> None:
        self.values[details.get("values", "")] += 1
        self.cascaded += CASCADE in details
        had = tuple((name, label) for name, label in details.items() if name not in ("values", CASCADE))
        self.reached.update(had)
        self.pairs.update(itertools.combinations(had, 2))
        self.combinations.add(had)
        drawn = next((entry for entry in self.standard.values if entry.name == details.get("values")), None)
        for name, tensor in tensors:
            self.sizes.update(tensor.shape)
            data = tensor.data
            if tensor.dtype not in INEXACT or data is None or data.recipe is None:
                continue
            if drawn is None or not _is_drawn(data, drawn):
                self.documented[name.partition("[")[0]] = data.recipe

    def _long(self, case: Case, what: str) -> None:
        longest = max((size for _, tensor in case.tensors() for size in tensor.shape), default=0)
        self.longest[what] = max(self.longest.get(what, 0), longest)


def _is_drawn(data: Data, values: Distribution) -> bool:
    """Whether contents are those of a distribution, and not what the document says of the input."""
    if data.recipe != values.recipe:
        return False
    if values.recipe == "uniform":
        high = math.ldexp(data.high or 0, data.exponent or 0)
        return data.low == -(data.high or 0) and math.isclose(high, values.bound, rel_tol=1e-6)
    return data.mean is not None and values.deviation[0] <= (data.std or 0.0) <= values.deviation[1]


def _without_seeds(case: Case, *, is_generated: bool) -> bytes:
    """What tells a case from others when seeds do not count, nor the numbers that a forward pass made of them."""
    drop = Data() if is_generated else None
    arguments = {name: _unseeded(value, drop) for name, value in case.arguments.items()}
    return hashlib.sha256(msgspec.json.encode(msgspec.to_builtins(arguments), order="sorted")).digest()[:12]


def _unseeded(value: Any, explicit: Data | None) -> Any:  # noqa: ANN401 - any argument
    """An argument without its seed; `explicit` takes the place of explicit numbers, where it is given."""
    if isinstance(value, Tensor) and value.data is not None:
        data = value.data if value.data.recipe is not None else explicit or value.data
        return msgspec.structs.replace(value, data=msgspec.structs.replace(data, seed=0))
    if isinstance(value, TensorList):
        return TensorList(tuple(_unseeded(item, explicit) for item in value.items))
    return value


def saved_by_forward(results: ResultReader, operator: str) -> tuple[str, ...]:
    """The inputs of an operator that a forward pass gives, as a run keeps them. Raises HarnessError as below."""
    return tuple(_kept(results, SAVED_STATE + operator, list[str]) or ())


def combined_options(results: ResultReader, operator: str) -> Mapping[str, Mapping[str, str]]:
    """By factor, the options of an operator that a run's standard combines, each with why no valid call has it.

    Empty where the run keeps none.

    Raises HarnessError where it is damaged.
    """
    return _kept(results, COMBINED_STATE + operator, dict[str, dict[str, str]]) or {}


def _kept(results: ResultReader, key: str, kind: type[Kept]) -> Kept | None:
    stored = results.state(key)
    try:
        return None if stored is None else msgspec.convert(stored, kind)
    except msgspec.ValidationError as error:
        raise HarnessError(f"{results.path} (state {key}): {error}; the file is damaged or newer") from None
