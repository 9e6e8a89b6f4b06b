"""Lint by drawing: whether rules notice a shape, or a dtype, that no valid call has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from aclnn_cts.core.case import Case, Tensor, with_arguments
from aclnn_cts.generate.configuration import Drawing
from aclnn_cts.generate.proof_draws import Doubt, DoubtTally
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import is_broken
from aclnn_cts.speclang.kinds_dtype import OTHER_DTYPES, relations
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.shape import ShapeExpression


def unguarded_shapes(sampler: Sampler, cases: Sequence[tuple[Drawing, Case]]) -> list[Doubt]:
    """Tensors that may have their elements in another shape, though no valid call is drawn so.

    A rule on the number of elements admits every shape of that number. Where a document says no more, the tensor has a
    run of its own: then valid calls have all of these shapes.
    """
    tally = DoubtTally()
    free = _freely_shaped(sampler.spec)
    for number, (_, case) in enumerate(cases):
        for name, tensor in _tensors(case):
            if name in free or 0 in tensor.shape:
                continue
            for shape in _reshaped(tensor.shape):
                changed = with_arguments(case, {name: msgspec.structs.replace(tensor, shape=shape)})
                if not is_broken(sampler.spec, changed):
                    what = f"{name}: another shape of as many elements breaks no constraint"
                    tally.add(number, "parameters", name, what, f"{list(shape)} instead of {list(tensor.shape)}")
                    break
    advice = "encode its shape, or draw it as a run of its own where the document states the number alone"
    return tally.doubts(len(cases), advice)


def _freely_shaped(spec: Spec) -> frozenset[str]:
    """The parameters with a run that no other parameter's shape reads, but for one that it broadcasts to."""
    runs = {draw.name for draw in spec.draws if draw.is_run}
    read = {item.name: _plainly_read(item.shape) & runs for item in spec.parameters if item.shape is not None}
    every = [run for names in read.values() for run in names]
    return frozenset(name for name, names in read.items() if any(every.count(run) == 1 for run in names))


def _plainly_read(shape: ShapeExpression) -> frozenset[str]:
    """The names that a shape reads otherwise than to broadcast with them."""
    only = shape.items[0].node if len(shape.items) == 1 else None
    return frozenset() if only is not None and only.value == "broadcast" else shape.names()


def _reshaped(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    yield from dict.fromkeys(other for other in ((*shape, 1), (1, *shape), (math.prod(shape),)) if other != shape)


def unguarded_dtypes(sampler: Sampler, cases: Sequence[tuple[Drawing, Case]]) -> list[Doubt]:
    """Tensors that may have a dtype that no valid call with the same pointers has beside those of the others.

    A dtype that is bound to that of an optional tensor is free where that is a null pointer. Dtypes that promote or are
    converted are left out: of these, valid calls have a choice of all rows.
    """
    tally = DoubtTally()
    rules = relations(sampler.spec, sampler.target.product)
    related = {name for rule in rules for name in (rule.of, *rule.reads)}
    for number, (drawing, case) in enumerate(cases):
        for name, tensor in _tensors(case):
            for dtype in OTHER_DTYPES if name not in related else ():
                changed = with_arguments(case, {name: msgspec.structs.replace(tensor, dtype=dtype)})
                if dtype == tensor.dtype or is_broken(sampler.spec, changed) or _is_drawn(sampler, drawing, changed):
                    continue
                null = ", ".join(key for key, value in case.arguments.items() if value is None)
                what = f"{name}: a dtype that valid calls never have there breaks no constraint"
                example = f"{dtype} instead of {tensor.dtype}{f', without {null}' if null else ''}"
                tally.add(number, "parameters", name, what, example)
                break
    return tally.doubts(len(cases), "bind it to a tensor that is always given, or put it into `rows`")


def _is_drawn(sampler: Sampler, drawing: Drawing, changed: Case) -> bool:
    """Whether another row of dtypes gives the same drawing those of a changed case."""
    wanted = _dtypes(changed)
    rows = sampler.dtype_rows
    return any(_dtypes(sampler.case(msgspec.structs.replace(drawing, dtypes=row))) == wanted for row in rows)


def _dtypes(case: Case) -> dict[str, str]:
    return {name: tensor.dtype for name, tensor in _tensors(case)}


def _tensors(case: Case) -> Iterator[tuple[str, Tensor]]:
    return ((name, value) for name, value in case.arguments.items() if isinstance(value, Tensor))
