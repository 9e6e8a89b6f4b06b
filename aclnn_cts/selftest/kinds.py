"""Kinds of mutants outside of the formula: how inputs are read, results stored, calls refused, and when a mutant acts.

The kinds of operations are the emulator's (`formula.mutants`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, TensorList, owner
from aclnn_cts.core.dtypes import INEXACT, component
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.core.outcome import STATUSES
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat, covers, rounded, spacing, toward_zero
from aclnn_cts.formula.mutants import Mutant, Site, kinds_of
from aclnn_cts.generate.predicate import Predicate, compile_predicate

Values: TypeAlias = NDArray[Any]

PLACES = 1 << 16
"""Parts in which `Mutant.place` counts where an element is."""

ROUNDED: Mapping[str, BinaryFormat] = MappingProxyType(
    {f"in {name}": BINARY_FORMATS[name] for name in ("HFLOAT32", "BF16", "FLOAT16")}
)
"""Kinds that round an operand or a result to a format."""


class MutationInput(NamedTuple):
    """What a kind is given beside the values."""

    amount: float
    """The value of the mutant."""
    question: OracleInput
    place: int
    """Which element is changed."""


Mutation: TypeAlias = Callable[[Values, MutationInput], Values]


def _rounding(form: BinaryFormat) -> Mutation:
    return lambda values, _: rounded(values, form)


def _with(index: int | slice, change: Callable[[Values], Values | float]) -> Mutation:
    """Part of the values changed along the dimension that the amount names."""

    def changed(values: Values, asked: MutationInput) -> Values:
        made = np.array(values)
        if made.ndim and made.shape[int(asked.amount)]:
            part = np.moveaxis(made, int(asked.amount), 0)
            part[index] = change(part[index])
        return made

    return changed


def _element(change: Callable[[float], float]) -> Mutation:
    """One element changed, where there is one."""

    def changed(values: Values, asked: MutationInput) -> Values:
        made = np.array(values)
        made[np.unravel_index(asked.place, made.shape)] = change(float(made.reshape(-1)[asked.place]))
        return made

    return changed


def _rest_is_zero(values: Values, asked: MutationInput, *, axis: int) -> Values:
    """Zeros beyond the last whole block of rows (all leading dimensions together) or of columns."""
    lines = np.array(values).reshape(-1, values.shape[-1])
    count, block = lines.shape[axis], int(asked.amount)
    if count > block:
        np.moveaxis(lines, axis, 0)[count // block * block :] = 0.0
    return lines.reshape(values.shape)


def _swapped(axis: int) -> Mutation:
    """Two neighbours along a dimension that is counted from the end."""

    def swapped(values: Values, asked: MutationInput) -> Values:
        made = np.array(values)
        pair = np.moveaxis(made, axis, 0)[asked.place : asked.place + 2]
        pair[...] = pair[::-1].copy()
        return made

    return swapped


def _read_across(values: Values, asked: MutationInput) -> Values:
    """Read as if the first dimensions, so many, came after the next one in memory."""
    lead = int(asked.amount)
    rows, columns = int(np.prod(values.shape[:lead])), values.shape[lead]
    read = values.reshape(columns, rows, -1).swapaxes(0, 1)
    return np.ascontiguousarray(read).reshape(values.shape)


def _reciprocal_deviation(values: Values, asked: MutationInput) -> Values:
    """1 / rms of the rows of x."""
    x = asked.question.tensors["x"].reshape(values.size, -1)
    return np.asarray(1.0 / np.sqrt((x * x).mean(1) + 1e-6)).reshape(values.shape)


def _neighbours_once(values: Values, asked: MutationInput) -> Values:
    """Rows that were divided by how often their index occurs, divided by how many runs it has instead."""
    indices = asked.question.tensors["indices"].reshape(-1).astype(np.int64)
    starts = indices[np.append(True, indices[1:] != indices[:-1])] if indices.size else indices
    counts, runs = (np.maximum(np.bincount(each, minlength=len(values)), 1) for each in (indices, starts))
    return values * (counts / runs)[:, None]


INPUT_KINDS: Mapping[str, Mutation] = MappingProxyType(
    {
        **{name: _rounding(form) for name, form in ROUNDED.items()},
        "nan as 0": lambda values, _: np.where(np.isnan(values), 0.0, values),
        "at most": lambda values, asked: np.minimum(values, values.dtype.type(asked.amount)),
        "modulo": lambda values, asked: values % int(asked.amount),
        "as a signed byte": lambda values, _: (values + 128) % 256 - 128,
        "first doubled": _with(slice(1), lambda part: 2.0 * part),
        "first as 0": _with(slice(1), lambda _: 0.0),
        "last as 0": _with(slice(-1, None), lambda _: 0.0),
        "all but the first as 0": _with(slice(1, None), lambda _: 0.0),
        "first repeated": _with(slice(None), lambda part: part[:1]),
        "reversed": _with(slice(None), lambda part: part[::-1].copy()),
        "read across": _read_across,
        "one tile early": lambda values, asked: np.append(
            values.reshape(-1)[: int(asked.amount)], values.reshape(-1)[: -int(asked.amount)]
        ).reshape(values.shape),
        "computed from x": _reciprocal_deviation,
    }
)
"""How an input is read (in float64 or int64)."""

VIEW_KINDS = ("strides ignored", "offset ignored")
"""How the memory of an input is read, or of an output written."""

OUTPUT_KINDS: Mapping[str, Mutation] = MappingProxyType(
    {
        "negated": lambda values, _: -values,
        "scaled": lambda values, asked: values * asked.amount,
        "rest of rows as 0": functools.partial(_rest_is_zero, axis=0),
        "rest of columns as 0": functools.partial(_rest_is_zero, axis=1),
        "neighbours counted once": _neighbours_once,
        "element zeroed": _element(lambda _: 0.0),
        "element doubled": _element(lambda value: 2.0 * value),
        "element negated": _element(lambda value: -value),
        "rows swapped": _swapped(-2),
        "columns swapped": _swapped(-1),
    }
)
"""What is wrong with a result before it is rounded."""

STALE = "element stale"
"""An element of an output is that of the call before."""


def _finer(values: Values, form: BinaryFormat) -> Values:
    """Rounded to one bit more than a format has, ties away from zero."""
    step = 0.5 * spacing(values, form)
    return np.where(np.isfinite(values), np.copysign(np.floor(np.abs(values) / step + 0.5) * step, values), values)


def _clamped(values: Values, form: BinaryFormat) -> Values:
    return np.clip(values, -form.largest, form.largest)


STORE_KINDS: Mapping[str, Callable[[Values, BinaryFormat], Values]] = MappingProxyType(
    {
        "truncated": lambda values, form: np.where(np.isfinite(values), toward_zero(values, form), values),
        "subnormals flushed": lambda values, form: np.where(np.abs(values) < form.smallest_normal, 0.0, values),
        "rounded twice": _finer,
        "inf clamped": _clamped,
        "in FLOAT16": lambda values, _: rounded(values, BINARY_FORMATS["FLOAT16"]),
    }
)
"""What is wrong with how a result is rounded to its dtype."""

ULPS = "element 2 ulp off"

SPOILED = "every element spoiled"


def spoil_elements(values: Values, form: BinaryFormat) -> Values:
    """Put each number, nan as well, at the farther end of its format: beyond any bound that leaves it to judge."""
    least = -form.largest if form.signed else 0.0
    return np.where(values >= (least + form.largest) / 2.0, least, form.largest)


UNCHECKED, REFUSED, OTHER_STATUS, LATE, CRASH = "unchecked", "refused", "other status", "in phase two", "crash"

KINDS: Mapping[Site, Collection[str]] = MappingProxyType(
    {
        Site.INPUT: (*INPUT_KINDS, *VIEW_KINDS),
        Site.ARGUMENT: ("other value", *ROUNDED),
        Site.OUTPUT: (*OUTPUT_KINDS, STALE),
        Site.STORE: (*STORE_KINDS, ULPS, SPOILED, VIEW_KINDS[0]),
        Site.STATUS: (UNCHECKED, REFUSED, OTHER_STATUS, LATE, CRASH),
    }
)
"""The kinds of each site but operations."""


def known_kinds(mutant: Mutant) -> Collection[str]:
    """The kinds that a mutant's site has."""
    return kinds_of(mutant.of.partition("|")[0]) if mutant.site is Site.OPERATION else KINDS[mutant.site]


@functools.lru_cache(maxsize=4096)
def _predicate(trigger: str) -> Predicate:
    return compile_predicate(trigger)


def meets_trigger(trigger: str, case: Case) -> bool:
    """Whether a call meets a trigger."""
    return not trigger or _predicate(trigger)(case)


def names_constraint(mutant: Mutant, identifier: str) -> bool:
    """Whether a mutant of the status is about a constraint: one of its patterns, apart by spaces, fits the id."""
    return any(fnmatchcase(identifier, pattern) for pattern in mutant.of.split() or ["*"])


def fires(mutant: Mutant, case: Case, broken: Collection[str]) -> bool:
    """Whether a call that breaks these constraints meets the trigger and has what is changed."""
    if mutant.site is Site.STATUS and mutant.kind != REFUSED:
        return any(names_constraint(mutant, each) for each in broken) and meets_trigger(mutant.trigger, case)
    if broken:
        return False
    if mutant.site is not Site.STATUS and not _has_what_is_changed(mutant, case):
        return False
    return meets_trigger(mutant.trigger, case)


def changed_tensor(mutant: Mutant, case: Case) -> str:
    """The name of the output that an element is changed of: the mutant's, or one of its list."""
    value = case.arguments.get(mutant.of)
    if not isinstance(value, TensorList) or not len(value):
        return mutant.of
    return f"{mutant.of}[{(mutant.place * len(value)) // PLACES}]"


def _has_what_is_changed(mutant: Mutant, case: Case) -> bool:
    """Whether there is a value, two rows or columns to swap, or an operand that the format does not hold."""
    if case.call.phases != 2:
        return False
    if mutant.site in (Site.OUTPUT, Site.STORE) and mutant.of:
        output = case.tensor(changed_tensor(mutant, case))
        if output is None or 0 in output.shape:
            return False
        if mutant.kind in ("rows swapped", "columns swapped"):
            axis = 1 if mutant.kind == "columns swapped" else 2
            return len(output.shape) >= axis and output.shape[-axis] > 1
    if mutant.site is Site.INPUT and mutant.kind in ROUNDED:
        return any(
            tensor.data is not None
            and mutant.of in ("", owner(name))
            and tensor.dtype in INEXACT
            and not covers(ROUNDED[mutant.kind], BINARY_FORMATS[component(tensor.dtype)])
            for name, tensor in case.tensors()
        )
    return True


def place_of(mutant: Mutant, number: int) -> int:
    """Which of so many places is changed: one of the last block where the mutant is about that."""
    if mutant.block and number > mutant.block:
        rest = number % mutant.block or mutant.block
        return number - rest + (mutant.place * rest) // PLACES
    return (mutant.place * number) // PLACES


def describe_mutant(mutant: Mutant) -> str:
    """The mutant in words, as a reader of a report takes it."""
    where = {Site.STATUS: "", Site.OPERATION: "an operation, "}.get(mutant.site, "all tensors, ")
    where = f"{mutant.of.replace('|', ' or ')}, " if mutant.of else where
    share = f" at {mutant.place / PLACES:.0%}" if re.match("element|rows|columns", mutant.kind) else ""
    value = f" {mutant.value}" if mutant.value else ""
    trigger = f", where {mutant.trigger}" if mutant.trigger else ""
    return f"{where}{mutant.kind}{value}{share}{trigger}"


def status_named(word: str) -> int:
    """The status that a mutant returns."""
    return STATUSES[f"ACLNN_ERR_{word}"]
