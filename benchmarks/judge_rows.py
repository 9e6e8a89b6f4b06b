"""One row of the table, an operator in one dtype and mode: counts over the standard plan's cases."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.target import Target
from aclnn_cts.execution.executor import CallPerformer, CallRequest, PerformedCall
from aclnn_cts.execution.judging import Judge
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.model import load_precision
from aclnn_cts.oracles import registry
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.precision_probe import PrecisionCheck
from aclnn_cts.trials.plan import Part
from benchmarks.emulated_operators import EMULATIONS, TERMS_LIMIT, terms_of
from benchmarks.judge_calls import (
    BOUND,
    Call,
    Faulty,
    Outputs,
    accusers,
    correct_ways,
    faulty_calls,
    out_of_bound,
)

_BLOCK = 256
_BATCH = 64
_EXAMPLES = 5
_DOUBLE = "DOUBLE"
_FAR = 2.0**200
"""Products of five numbers between its reciprocal and it neither overflow nor underflow in DOUBLE."""
_HALF_OUTPUTS: Mapping[str, tuple[str, ...]] = {
    "aclnnConvTbcBackward": ("gradWeight",),
    "aclnnEmbeddingDenseBackward": (),
}
"""The outputs that torch accumulates in FLOAT for halves, where these are not all (docs/findings-torch-cpu.md)."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Row:
    """What a row is of: the dtype is that of the first output; the mode is empty where the operator has none."""

    operator: str
    dtype: str
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """How much is counted in a row, at least."""

    calls: int = 5_000
    elements: int = 1_000_000
    faulty_cases: int = 400
    """Of which the correct and the faulty calls are put to all judges, and of torch's calls as many."""
    torch_calls: int = 2_000
    seed: int = 0


@dataclass(slots=True, kw_only=True)
class FaultCount:
    """What came of one fault."""

    calls: int = 0
    """In which it changed an element."""
    alike: int = 0
    """In which every element still lies among those of correct implementations on the same data."""
    found: Counter[str] = field(default_factory=Counter)
    accused: Counter[str] = field(default_factory=Counter)
    """Found by a judge that finds a correct implementation at fault on the same data."""


@dataclass(slots=True, kw_only=True)
class RowCount:
    """What came of one row."""

    row: Row
    calls: int = 0
    elements: int = 0
    torch_calls: int = 0
    compared: int = 0
    """Calls that were put to the other tolerances too."""
    alarms: Counter[str] = field(default_factory=Counter)
    """Calls of correct implementations that a judge finds at fault."""
    faults: dict[str, FaultCount] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    """False alarms of the bound: how each was computed, and the case."""

    def take(self, call: Call, outputs: Outputs, *, compared: bool, how: str) -> frozenset[str]:
        """A call of a correct implementation, put to the bound or to all judges; gives those that find it at fault."""
        self.calls += 1
        self.elements += sum(array.size for array in outputs.values())
        if compared:
            alarms = accusers(call, outputs)
            self.compared += 1
        else:
            alarms = frozenset({BOUND} if out_of_bound(call, outputs) else ())
        self.alarms.update(alarms)
        if BOUND in alarms and len(self.examples) < _EXAMPLES:
            self.examples.append(f"{how}: {msgspec.json.encode(call.case).decode()}")
        return alarms


def rows() -> list[Row]:
    """All rows of operators with an emulation on the default product, and those of DOUBLE, which torch alone has."""
    found: list[Row] = []
    specs = load_specs()
    for spec in map(specs.__getitem__, EMULATIONS):
        sampler = Sampler(spec, Target())
        dtypes = dict.fromkeys(dtypes[spec.outputs[0]] for dtypes in sampler.dtype_rows)
        for dtype in sorted(dtypes, key=("FLOAT", "FLOAT16", "BF16").index):
            if spec.modes is None:
                found.append(Row(operator=spec.operator, dtype=dtype, mode=""))
                continue
            supported = spec.modes.supported(sampler.target.product, dtype)
            found.extend(Row(operator=spec.operator, dtype=dtype, mode=spec.modes.names[mode]) for mode in supported)
        found.append(Row(operator=spec.operator, dtype=_DOUBLE, mode=""))
    return found


def _cases(row: Row, spec: Spec, seed: int) -> Iterator[Case]:
    """A row's cases that the standard plan has for values, without end; DOUBLE takes the place of FLOAT.

    The numbers that tell formats apart (the check `precision`) and random cases (`values`) take turns, until there
    are random cases alone.
    """
    sampler = Sampler(spec, Target())
    dtype = "FLOAT" if row.dtype == _DOUBLE else row.dtype

    def wanted(case: Case) -> bool:
        output = case.arguments[spec.outputs[0]]
        if not isinstance(output, Tensor) or output.dtype != dtype or case.call.phases == 1:
            return False
        return row.dtype == _DOUBLE or spec.mode(case).name == row.mode

    telling = filter(wanted, _telling(spec, sampler, seed))
    for case in filter(wanted, _random(spec, sampler, seed)):
        for chosen in (*itertools.islice(telling, 1), case):
            yield _doubled(chosen) if row.dtype == _DOUBLE else chosen


def _telling(spec: Spec, sampler: Sampler, seed: int) -> Iterator[Case]:
    check = PrecisionCheck()
    for trial in check.trials(Part(spec.operator, check.id, "valid"), sampler, seed=seed):
        yield trial.case


def _random(spec: Spec, sampler: Sampler, seed: int) -> Iterator[Case]:
    name = f"{spec.operator}/{sampler.target.product}/valid"
    for first in itertools.count(step=_BLOCK):
        for choices in stream_block(seed, name, first, _BLOCK):
            yield sampler.case(sampler.draw(choices))


def _doubled(case: Case) -> Case:
    """The case with all floating tensors in DOUBLE, which no document lists."""
    arguments = {
        name: msgspec.structs.replace(value, dtype=_DOUBLE)
        if isinstance(value, Tensor) and value.dtype in ("FLOAT", "FLOAT16", "BF16")
        else value
        for name, value in case.arguments.items()
    }
    return msgspec.structs.replace(case, arguments=arguments)


def count_row(row: Row, amount: Amount, *, with_torch: bool) -> RowCount:
    """Count one row."""
    specs = load_specs()
    spec = specs[row.operator]
    judge = Judge(spec=spec, oracle=registry.load(spec.stem), precision=load_precision(), has_statuses=False)
    count = RowCount(row=row)
    if with_torch:
        host = open_host("torch:outputs=copy", target=Target(), specs=specs, isolate=False)
        with host:
            needed = replace(amount, torch_calls=amount.calls) if row.dtype == _DOUBLE else amount
            _count_torch(count, judge, host, needed)
    if row.dtype != _DOUBLE:
        _count_emulations(count, judge, amount)
    return count


def _count_emulations(count: RowCount, judge: Judge, amount: Amount) -> None:
    for number, case in enumerate(_cases(count.row, judge.spec, amount.seed)):
        compared = number < amount.faulty_cases
        if not compared and count.calls >= amount.calls and count.elements >= amount.elements:
            return
        call = Call.make(judge, case)
        if terms_of(call.question) > TERMS_LIMIT:
            continue
        correct = []
        accused: frozenset[str] = frozenset()
        for way, through in correct_ways(call, number):
            outputs = call.emulated(way, through=through)
            correct.append(outputs)
            accused |= count.take(call, outputs, compared=compared, how=f"{way} through={through}")
        for faulty in faulty_calls(call, number) if compared else ():
            _take_fault(count, call, faulty, [*correct, faulty.twin], accused | accusers(call, faulty.twin))


def _take_fault(
    count: RowCount, call: Call, faulty: Faulty, correct: Sequence[Outputs], accused: frozenset[str]
) -> None:
    """One fault in one call; `accused` names who finds a correct implementation at fault on the same data."""
    tally = count.faults.setdefault(faulty.fault, FaultCount())
    found = accusers(call, faulty.outputs)
    tally.calls += 1
    tally.found.update(found)
    tally.accused.update(found & accused)
    tally.alike += all(_within(got, [outputs[name] for outputs in correct]) for name, got in faulty.outputs.items())


def _within(got: Float64, others: list[Float64]) -> bool:
    """Whether each element lies between the least and the greatest of the others."""
    stack = np.stack(others)
    with np.errstate(all="ignore"):
        inside = (np.fmin.reduce(stack) <= got) & (got <= np.fmax.reduce(stack))
    return bool((inside | (np.isnan(got) & np.isnan(stack).any(axis=0))).all())


def _count_torch(count: RowCount, judge: Judge, host: SessionHost, amount: Amount) -> None:
    names = judge.spec.outputs
    if count.row.dtype in ("FLOAT16", "BF16"):
        names = _HALF_OUTPUTS.get(count.row.operator, names)
    if not names:
        return
    performer = CallPerformer(host=host, specs={judge.spec.operator: judge.spec})
    batch: list[Case] = []
    tried = 0
    for case in _cases(count.row, judge.spec, amount.seed):
        batch.append(case)
        if len(batch) < _BATCH:
            continue
        for performed in performer.perform([CallRequest(item) for item in batch]):
            tried += 1
            _take(count, judge, performed, names, compared=count.torch_calls < amount.faulty_cases)
        batch = []
        elements = amount.elements if count.row.dtype == _DOUBLE else 0
        if count.torch_calls >= amount.torch_calls and count.elements >= elements:
            return
        if tried > 64 * amount.torch_calls + 4096:
            raise HarnessError(f"{count.row}: torch answered {count.torch_calls} of {tried} calls")


def _beyond(performed: PerformedCall, *, double: bool) -> bool:
    """Whether a call is not counted: an x that torch doubles to inf, or data at the ends of DOUBLE's range.

    Oracles compute in float64. Where their own products overflow or underflow there is nothing that DOUBLE could be
    held to, and no document lists it.
    """
    for name, array in performed.arrays.items():
        if array.dtype.kind in "iub" or not array.size:
            continue
        size = np.abs(array.astype(np.float64))
        if double and ((size > _FAR) | ((size < 1.0 / _FAR) & (size > 0.0))).any():
            return True
        if name == "x" and not double and (np.isfinite(size) & (size >= math.ldexp(1.0, 127))).any():
            return True
    return False


def _take(count: RowCount, judge: Judge, performed: PerformedCall, names: tuple[str, ...], *, compared: bool) -> None:
    """One call that torch answered; what the findings name (a doubled input that overflows) is left out."""
    if performed.outcome.ended != CallEnd.RETURNED or not performed.got:
        return
    if _beyond(performed, double=count.row.dtype == _DOUBLE):
        return
    call = Call.make(judge, performed.case)
    outputs = {name: performed.got[name].astype(np.float64) for name in names}
    count.torch_calls += 1
    count.take(call, outputs, compared=compared, how="torch")
