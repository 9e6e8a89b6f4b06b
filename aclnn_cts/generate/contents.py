"""The contents of a case's tensors: of one case alone, or of a batch, whose small tensors are filled together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from aclnn_cts.core.case import Case, real_view
from aclnn_cts.core.dtypes import component, components
from aclnn_cts.core.errors import UsageError, nearest
from aclnn_cts.core.printable import shown
from aclnn_cts.generate.layouts import Array, carried, carrier
from aclnn_cts.generate.philox import Streams
from aclnn_cts.generate.recipes import Recipe, array, check_data, effective
from aclnn_cts.generate.request import Request

_SMALL = 2**12
"""Elements of a tensor up to which it is filled together with others."""

_Part: TypeAlias = "tuple[Recipe, Request, str, dict[str, Array]]"
"""A tensor to fill, how, its dtype, and where its contents go."""


def case_arrays(case: Case, inputs: Iterable[str]) -> dict[str, Array]:
    """The contents of the named arguments of a case, in the order given, without those that are null or hold no data.

    A tensor that another is computed from is made first. Raises UsageError as `array` does, and for data that are
    computed from themselves or from something that is no argument of the case.
    """
    return _completed(case, list(inputs), {}, None)


def many_arrays(asked: Sequence[tuple[Case, Sequence[str]]]) -> list[dict[str, Array] | UsageError]:
    """What `case_arrays` gives of each case and the arguments named with it, or the error that it raises."""
    found: list[dict[str, Array]] = [{} for _ in asked]
    streams = Streams()
    parts = list(_small_parts(asked, found, streams))
    _fill_together([part for part in parts if part[1].data.of is None])
    # What is computed from a tensor that is not made by now is left to `_completed`, as all that is wrong.
    _fill_together(
        [
            (recipe, msgspec.structs.replace(request, source=components(made[request.data.of])), dtype, made)
            for recipe, request, dtype, made in parts
            if request.data.of in made
        ]
    )
    results: list[dict[str, Array] | UsageError] = []
    for (case, names), made in zip(asked, found, strict=True):
        try:
            results.append(_completed(case, names, made, streams))
        except UsageError as error:
            results.append(error)
    return results


def _small_parts(
    asked: Iterable[tuple[Case, Sequence[str]]], found: Iterable[dict[str, Array]], streams: Streams
) -> Iterator[_Part]:
    """The small tensors that a recipe fills, and nothing is wrong with."""
    for (case, names), made in zip(asked, found, strict=True):
        for name in names:
            tensor = case.tensor(name)
            if tensor is None or tensor.data is None or not 0 < tensor.numel <= _SMALL:
                continue
            try:
                recipe = check_data(tensor.data, name=name)
                raw = streams.open(tensor.data.seed, f"data/{name}")
            except UsageError:
                continue
            if recipe is not None:
                recipe, data = effective(recipe, tensor, tensor.data)
                view = msgspec.structs.replace(real_view(tensor), dtype=carrier(component(tensor.dtype)))
                if data.of == tensor.data.of:
                    yield recipe, Request(name=name, tensor=view, data=data, raw=raw), tensor.dtype, made


def _fill_together(parts: Iterable[_Part]) -> None:
    groups: dict[tuple[str, str], list[_Part]] = {}
    for part in parts:
        recipe, request, *_ = part
        groups.setdefault((recipe.name, request.tensor.dtype), []).append(part)
    with np.errstate(all="ignore"):
        for group in groups.values():
            counts = [request.tensor.numel for _, request, *_ in group]
            flat = group[0][0].fill([request for _, request, *_ in group], counts)
            start = 0
            for (_, request, dtype, made), count in zip(group, counts, strict=True):
                made[request.name] = carried(flat[start : start + count].reshape(request.tensor.shape), dtype)
                start += count


def _completed(case: Case, names: Sequence[str], made: dict[str, Array], streams: Streams | None) -> dict[str, Array]:
    for name in names:
        if name not in made:
            _make(case, name, made, (), streams)
    return {name: made[name] for name in names if name in made}


def _make(case: Case, name: str, made: dict[str, Array], behind: tuple[str, ...], streams: Streams | None) -> None:
    tensor = case.tensor(name)
    if name in made or tensor is None or tensor.data is None:
        return
    of = tensor.data.of
    if of is not None:
        where = f"arguments.{name}.tensor.data.of"
        if of not in case.arguments and case.tensor(of) is None:
            raise UsageError(f"{where}: {shown(of)}; expected an argument of the case{nearest(of, case.arguments)}")
        if of == name or of in behind:
            raise UsageError(f"{where}: {shown(of)}; the data are computed from themselves")
        _make(case, of, made, (*behind, name), streams)
    # A null or unspecified source belongs to an invalid case, which must have its other data all the same.
    missing = {of: np.zeros(0)} if of is not None and of not in made else made
    made[name] = array(tensor, arrays=missing, name=name, streams=streams)
