"""Data recipes to arrays, alone or in batches, and what is known of them beforehand (`docs/recipes.md`).

Nothing but raw Philox words, integers, addition, subtraction, multiplication, division and square root in a stated
order stands behind an element, so neither NumPy's version nor the processor's features show.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import msgspec
import numpy as np

from aclnn_cts.core.case import Case, Data, Number, Tensor, real_view
from aclnn_cts.core.dtypes import COMPONENTS, DTYPES, component, components, from_components, numpy_dtype
from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.printable import quote
from aclnn_cts.core.registry import items_by_name
from aclnn_cts.core.rounding import widen
from aclnn_cts.generate import recipes_attention, recipes_exact, recipes_real
from aclnn_cts.generate.choices import RandomStreams, philox
from aclnn_cts.generate.layouts import (
    FLOAT_LAYOUTS,
    Array,
    as_tensor_dtype,
    fill_dtype,
    integer_range,
    storage_dtype,
    to_storage,
)
from aclnn_cts.generate.recipes_exact import WINDOW, argmax, integer_bounds
from aclnn_cts.generate.request import CallContents, Request
from aclnn_cts.speclang.kinds_data import INDEX_RECIPES, SEGMENTS, STRUCTURES

CHUNK = 2**15
"""Elements that an elementwise recipe is asked for at a time; even, as two elements may share a word."""

_PARAMETERS = ("low", "high", "exponent", "mean", "std", "of", "axis", "epsilon", *WINDOW)


_MOST_ITEMS = 8
"""Items that an array of a window may have."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """One way to fill tensors of one dtype: `fill(requests, counts)` gives so many elements of each, flat and joined.

    Small tensors are filled together, as each step of NumPy costs as much for one of them as for all.
    """

    name: str
    fill: Callable[[Sequence[Request], Sequence[int]], Array]
    reads: tuple[str, ...] = ()
    """The parameters of `core.case.Data` that mean something to it, beside the seed."""
    needs: tuple[str, ...] = ()
    elementwise: bool = True
    """Whether an element depends on nothing but its own words and position."""
    whole: bool = False
    """Whether it is computed from the whole call, the inputs of such recipes apart."""
    floating: bool = False
    """Whether it makes floating data; a tensor of another dtype then holds `integers` by default bounds."""


RECIPES: Mapping[str, Recipe] = items_by_name(
    "recipe",
    (
        Recipe(name="integers", fill=recipes_exact.integers, reads=("low", "high", "exponent")),
        Recipe(name="indices", fill=recipes_exact.indices, reads=("low", "high")),
        Recipe(name="few_indices", fill=recipes_exact.few_indices, reads=("low", "high")),
        Recipe(name="equal_indices", fill=recipes_exact.equal_indices, reads=("low", "high")),
        Recipe(name="hot_indices", fill=recipes_exact.hot_indices, reads=("low", "high")),
        Recipe(name="zipf_indices", fill=recipes_exact.zipf_indices, reads=("low", "high")),
        Recipe(
            name="distinct_indices",
            fill=recipes_exact.distinct_indices,
            reads=("low", "high", "axis"),
            elementwise=False,
        ),
        Recipe(name="end_indices", fill=recipes_exact.end_indices, reads=("low", "high")),
        Recipe(name="seen_indices", fill=recipes_exact.seen_indices, reads=("high", "axis"), elementwise=False),
        Recipe(name="ramp", fill=recipes_exact.ramp, reads=("low", "high")),
        Recipe(
            name="argmax",
            fill=argmax,
            reads=("of", "axis", "low", "high", *WINDOW),
            needs=("of", "kernel"),
            elementwise=False,
        ),
        Recipe(name="offsets", fill=recipes_exact.offsets, reads=("low", "high", "axis"), elementwise=False),
        Recipe(name="ends", fill=recipes_exact.ends, reads=("low", "high", "axis"), elementwise=False),
        Recipe(name="lengths", fill=recipes_exact.lengths, reads=("low", "high", "axis"), elementwise=False),
        Recipe(
            name="partial_lengths",
            fill=recipes_exact.partial_lengths,
            reads=("low", "high", "axis"),
            elementwise=False,
        ),
        Recipe(name="permutation", fill=recipes_exact.permutation, reads=("low", "axis"), elementwise=False),
        Recipe(name="boxes", fill=recipes_exact.boxes, reads=("high", "axis"), elementwise=False),
        Recipe(name="regions", fill=recipes_exact.regions, reads=("high", "kernel", "axis"), elementwise=False),
        Recipe(name="bits", fill=recipes_exact.bits, reads=("mean",)),
        Recipe(
            name="band",
            fill=recipes_attention.band,
            reads=("low", "high", "mean", "kernel", "padding"),
            elementwise=False,
        ),
        Recipe(name="zeros", fill=recipes_exact.zeros),
        Recipe(name="constant", fill=recipes_exact.constant, reads=("mean",)),
        Recipe(name="one_hot", fill=recipes_exact.one_hot, reads=("high", "axis"), elementwise=False),
        Recipe(name="normal", fill=recipes_real.normal, reads=("mean", "std"), floating=True),
        Recipe(name="outliers", fill=recipes_real.outliers, reads=("mean", "std"), elementwise=False, floating=True),
        Recipe(name="uniform", fill=recipes_real.uniform, reads=("low", "high", "exponent"), floating=True),
        Recipe(
            name="repeated",
            fill=recipes_real.repeated,
            reads=("low", "high", "exponent", "axis"),
            elementwise=False,
            floating=True,
        ),
        Recipe(name="positive", fill=recipes_real.positive, floating=True),
        Recipe(name="softmax", fill=recipes_real.softmax, reads=("axis",), elementwise=False, floating=True),
        Recipe(
            name="rstd",
            fill=recipes_real.rstd,
            reads=("of", "epsilon"),
            needs=("of",),
            elementwise=False,
            floating=True,
        ),
        Recipe(
            name="invstd",
            fill=recipes_real.invstd,
            reads=("of", "axis", "epsilon"),
            needs=("of",),
            elementwise=False,
            floating=True,
        ),
        Recipe(
            name="mean", fill=recipes_real.mean, reads=("of", "axis"), needs=("of",), elementwise=False, floating=True
        ),
        Recipe(name="softmax_max", fill=recipes_attention.softmax_max, elementwise=False, whole=True, floating=True),
        Recipe(name="softmax_sum", fill=recipes_attention.softmax_sum, elementwise=False, whole=True, floating=True),
        Recipe(name="attention", fill=recipes_attention.attention, elementwise=False, whole=True, floating=True),
        Recipe(name="wide", fill=recipes_real.wide, reads=("low", "high"), floating=True),
        Recipe(name="subnormal", fill=recipes_real.subnormal, floating=True),
        Recipe(name="large", fill=recipes_real.large, floating=True),
        Recipe(name="infinite", fill=recipes_real.infinite, floating=True),
        Recipe(name="patterns", fill=recipes_real.patterns, floating=True),
        Recipe(name="special", fill=recipes_real.special, floating=True),
        Recipe(name="swamped", fill=recipes_real.swamped, floating=True),
        Recipe(name="dominated", fill=recipes_real.dominated, reads=("axis",), elementwise=False, floating=True),
        Recipe(name="cancel", fill=recipes_real.cancel, reads=("axis",), elementwise=False, floating=True),
    ),
    lambda recipe: recipe.name,
)

_BOUNDED = ("integers", "uniform", "repeated", "wide")
"""Recipes with a range that is not empty."""
_ALONG_THE_LAST = frozenset(
    {"softmax", "repeated", "dominated", "cancel", "boxes", "regions", "distinct_indices", *SEGMENTS}
)
"""Recipes that without an axis are along the last one."""

_IGNORED: Mapping[str | None, tuple[str, ...]] = MappingProxyType(
    {None: _PARAMETERS}
    | {name: tuple(word for word in _PARAMETERS if word not in recipe.reads) for name, recipe in RECIPES.items()}
)
"""Parameters that mean nothing to a recipe, and to explicit values."""
_READ_IGNORED: Mapping[str | None, Callable[[Data], tuple[object, ...]]] = MappingProxyType(
    {name: operator.attrgetter(*words) for name, words in _IGNORED.items()}
)
"""All of them at once."""


def check_data(data: Data, *, name: str = "") -> Recipe | None:
    """The recipe of a parameter's data, None for explicit values.

    Raises UsageError for an unknown recipe, one with a parameter that it does not read, or without one that it needs.
    """
    where = f"arguments.{name}.tensor.data" if name else "data"
    recipe = None
    if data.recipe is not None:
        recipe = RECIPES.get(data.recipe)
        if recipe is None:
            known = ", ".join(RECIPES)
            raise UsageError(
                f"{where}.recipe: {quote(data.recipe)}; expected one of {known}{did_you_mean(data.recipe, RECIPES)}"
            )
    ignored = _READ_IGNORED[data.recipe](data)
    if ignored.count(None) < len(ignored):
        given = zip(_IGNORED[data.recipe], ignored, strict=True)
        parameter, value = next((word, value) for word, value in given if value is not None)
        reads = recipe.reads if recipe is not None else ()
        what = f"recipe {data.recipe!r} reads" if recipe is not None else "explicit values read"
        raise UsageError(
            f"{where}.{parameter}: {quote(value)}; {what} {', '.join(reads) or 'no parameter'}; leave it out"
        )
    for parameter in recipe.needs if recipe is not None else ():
        if getattr(data, parameter) is None:
            raise UsageError(
                f"{where}.{parameter}: missing; recipe {quote(data.recipe)} is computed from another parameter"
            )
    _check_numbers(data, where)
    return recipe


def _check_numbers(data: Data, where: str) -> None:
    low, high = data.low, data.high
    if low is not None and high is not None and low > high and data.recipe in _BOUNDED:
        raise UsageError(f"{where}.low: {quote(low)}; expected at most high, which is {quote(high)}")
    for parameter in ("low", "high"):
        value = getattr(data, parameter)
        if value is not None and not -(2**63) <= value < 2**64:
            raise UsageError(f"{where}.{parameter}: {quote(value)}; expected an integer of 64 bits")
    for parameter in WINDOW:
        value = getattr(data, parameter) or ()
        if len(value) > _MOST_ITEMS or not all(-(2**63) <= item < 2**63 for item in value):
            raise UsageError(f"{where}.{parameter}: {quote(value)}; expected at most {_MOST_ITEMS} integers of 64 bits")
    if not 0 <= data.seed < 2**64:
        raise UsageError(f"{where}.seed: {quote(data.seed)}; expected an integer from 0 to 2^64 - 1")
    # Outside the rank it is the last one: data follow an attribute that a broken call has out of range.
    if data.axis is not None and not -(2**63) <= data.axis < 2**63:
        raise UsageError(f"{where}.axis: {quote(data.axis)}; expected an integer of 64 bits")
    if data.exponent is not None and not -1022 <= data.exponent <= 1023:
        raise UsageError(f"{where}.exponent: {quote(data.exponent)}; expected an integer from -1022 to 1023")


def array(
    tensor: Tensor,
    *,
    arrays: Mapping[str, Array],
    name: str,
    streams: RandomStreams | None = None,
    contents: CallContents | None = None,
) -> Array:
    """The contents of parameter `name` in the NumPy dtype and the logical shape of its tensor, contiguous.

    `arrays` holds the contents of the parameters that others are computed from, `contents` those of the whole call, and
    `streams` is what many tensors are filled from one after another. A dtype that NumPy has no counterpart of gives
    zero bytes. Raises UsageError for data
    that mean nothing (`check_data`) or are missing.
    """
    data = tensor.data
    if data is None:
        raise UsageError(
            f"arguments.{name}.tensor.data: missing; expected `values` or a `recipe`, as the call reads it"
        )
    recipe = check_data(data, name=name)
    if min(tensor.shape, default=0) < 0:
        raise UsageError(
            f"arguments.{name}.tensor.data: a tensor of the shape {list(tensor.shape)} has no elements; leave "
            f"`data` out"
        )
    source = None
    if data.of is not None:
        source = arrays.get(data.of)
        if source is None:
            known = ", ".join(arrays) or "none here"
            raise UsageError(
                f"arguments.{name}.tensor.data.of: {quote(data.of)}; expected a tensor with data ({known})"
                f"{did_you_mean(data.of, arrays)}"
            )
    with np.errstate(all="ignore"):
        if recipe is None:
            return _expanded(
                from_components(_explicit(real_view(tensor), data.values or (), name), tensor.dtype), tensor
            )
        return _expanded(_fill(recipe, tensor, data, source, name, streams, contents), tensor)


def _expanded(contents: Array, tensor: Tensor) -> Array:
    """The contents, with those of the first index along axes whose elements share one place in memory."""
    axes = tensor.expanded_axes
    if not axes:
        return contents
    first = contents[tuple(slice(1) if axis in axes else slice(None) for axis in range(contents.ndim))]
    return np.ascontiguousarray(np.broadcast_to(first, contents.shape))


def effective_recipe(recipe: Recipe, tensor: Tensor, data: Data) -> tuple[Recipe, Data]:
    """What fills a tensor: `integers` by default bounds where the dtype cannot hold the recipe's floating data.

    Such a tensor belongs to a case that is invalid for its dtype and keeps the recipe of its valid twin. Of a complex
    tensor the recipe fills the real view (`core.case.real_view`), along an axis of the elements.
    """
    if recipe.floating and fill_dtype(component(tensor.dtype)) not in FLOAT_LAYOUTS:
        return RECIPES["integers"], Data(recipe="integers", seed=data.seed)
    if tensor.dtype in COMPONENTS and tensor.shape and (data.axis is not None or recipe.name in _ALONG_THE_LAST):
        return recipe, msgspec.structs.replace(data, axis=recipes_exact.axis_of(tensor, data.axis))
    return recipe, data


def _fill(
    recipe: Recipe,
    tensor: Tensor,
    data: Data,
    source: Array | None,
    name: str,
    streams: RandomStreams | None,
    contents: CallContents | None,
) -> Array:
    if not tensor.numel:
        try:
            return np.zeros(tensor.shape, storage_dtype(tensor.dtype))
        except ValueError:
            sizes = quote(list(tensor.shape))
            raise UsageError(
                f"arguments.{name}.tensor.shape: {sizes}; expected sizes that an empty array can have"
            ) from None
    recipe, data = effective_recipe(recipe, tensor, data)
    stream = f"data/{name}"
    raw = philox(data.seed, stream).random_raw if streams is None else streams.open(data.seed, stream)
    view = msgspec.structs.replace(real_view(tensor), dtype=fill_dtype(component(tensor.dtype)))
    count = view.numel
    source = source if source is None else components(source)
    request = Request(name=name, tensor=view, data=data, raw=raw, source=source, contents=contents)
    if count <= CHUNK or not recipe.elementwise:
        return as_tensor_dtype(recipe.fill((request,), (count,)).reshape(view.shape), tensor.dtype)
    result = np.empty(count, storage_dtype(view.dtype))
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        part = msgspec.structs.replace(request, start=start)
        result[start : start + size] = recipe.fill((part,), (size,))
    return as_tensor_dtype(result.reshape(view.shape), tensor.dtype)


def _explicit(tensor: Tensor, values: tuple[Number, ...], name: str) -> Array:
    where = f"arguments.{name}.tensor.data.values"
    if len(values) != tensor.numel:
        raise UsageError(f"{where}: {len(values)} numbers; expected {tensor.numel} for the shape {list(tensor.shape)}")
    if DTYPES[tensor.dtype].kind not in ("signed", "unsigned"):
        return to_storage(np.array([_float64(value) for value in values]), tensor.dtype).reshape(tensor.shape)
    least, most = integer_range(tensor.dtype)
    whole = []
    for index, value in enumerate(values):
        number = value if isinstance(value, int) else _float64(value)
        if not math.isfinite(number) or not least <= round(number) <= most:
            raise UsageError(
                f"{where}[{index}]: {quote(value)}; expected an integer that {tensor.dtype} holds ({least} to {most})"
            )
        whole.append(round(number))
    return np.array(whole, dtype=numpy_dtype(tensor.dtype)).reshape(tensor.shape)


def _float64(value: Number) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if isinstance(value, int) and value > 0 else -math.inf


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
    streams = RandomStreams()
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
    asked: Iterable[tuple[Case, Sequence[str]]], found: Iterable[dict[str, Array]], streams: RandomStreams
) -> Iterator[_Part]:
    """The small tensors that a recipe fills, and nothing is wrong with."""
    for (case, names), made in zip(asked, found, strict=True):
        for name in names:
            tensor = case.tensor(name)
            if tensor is None or tensor.data is None or not 0 < tensor.numel <= _SMALL or tensor.expanded_axes:
                continue
            try:
                recipe = check_data(tensor.data, name=name)
                raw = streams.open(tensor.data.seed, f"data/{name}")
            except UsageError:
                continue
            # What is computed from the whole call is left to `_completed`, which has it.
            if recipe is not None and not recipe.whole:
                recipe, data = effective_recipe(recipe, tensor, tensor.data)
                view = msgspec.structs.replace(real_view(tensor), dtype=fill_dtype(component(tensor.dtype)))
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
                made[request.name] = as_tensor_dtype(flat[start : start + count].reshape(request.tensor.shape), dtype)
                start += count


def _completed(
    case: Case, names: Sequence[str], made: dict[str, Array], streams: RandomStreams | None
) -> dict[str, Array]:
    for name in names:
        if name not in made:
            _make(case, name, made, (), streams)
    return {name: made[name] for name in names if name in made}


def _make(
    case: Case, name: str, made: dict[str, Array], behind: tuple[str, ...], streams: RandomStreams | None
) -> None:
    tensor = case.tensor(name)
    if name in made or tensor is None or tensor.data is None:
        return
    of = tensor.data.of
    if of is not None:
        where = f"arguments.{name}.tensor.data.of"
        if of not in case.arguments and case.tensor(of) is None:
            raise UsageError(
                f"{where}: {quote(of)}; expected an argument of the case{did_you_mean(of, case.arguments)}"
            )
        if of == name or of in behind:
            raise UsageError(f"{where}: {quote(of)}; the data are computed from themselves")
        _make(case, of, made, (*behind, name), streams)
    if _is_whole(tensor):
        _make_whole(case, made, behind, streams)
        return
    # A null or unspecified source belongs to an invalid case, which must have its other data all the same.
    missing = {of: np.zeros(0)} if of is not None and of not in made else made
    made[name] = array(tensor, arrays=missing, name=name, streams=streams)


def _is_whole(tensor: Tensor) -> bool:
    data = tensor.data
    recipe = None if data is None or data.recipe is None else RECIPES.get(data.recipe)
    return recipe is not None and recipe.whole


def _make_whole(case: Case, made: dict[str, Array], behind: tuple[str, ...], streams: RandomStreams | None) -> None:
    """All tensors that are computed from the whole call, which takes every other one."""
    tensors = {name: value for name, value in case.arguments.items() if isinstance(value, Tensor)}
    whole = {name: tensor for name, tensor in tensors.items() if _is_whole(tensor)}
    for name in (name for name in tensors if name not in whole):
        _make(case, name, made, (*behind, *whole), streams)
    contents = CallContents({**case.arguments, **made})
    for name, tensor in whole.items():
        made[name] = array(tensor, arrays=made, name=name, streams=streams, contents=contents)


_SAVED = ("softmax_max", "softmax_sum", "attention")
_REAL = frozenset(
    ("normal", "outliers", "uniform", "repeated", "positive", "softmax", "rstd", "invstd", "mean", *_SAVED)
)
"""Recipes of numbers that are multiples of nothing in particular."""


def lattice(tensor: Tensor) -> float | None:
    """A power of two of which every element is an integer multiple; None where none is known.

    Known of `integers`, index data, `regions`, `zeros`, `one_hot`, `constant` and explicit values where finite,
    and 1 for an integer dtype. Where all elements are 0, or there are none, any power would do, and 1 is given.
    """
    tensor = real_view(tensor)
    data = tensor.data
    if data is None:
        return None
    layout = FLOAT_LAYOUTS.get(tensor.dtype)
    if layout is None:
        return 1.0 if DTYPES[tensor.dtype].kind in ("signed", "unsigned", "bool") else None
    if data.recipe in _REAL and tensor.numel:
        return None
    if (recipe := check_data(data)) is not None:
        _, data = effective_recipe(recipe, tensor, data)
    if data.recipe in ("zeros", "one_hot", *INDEX_RECIPES, *STRUCTURES) or not tensor.numel:
        return 1.0 / recipes_exact.REGION_STEPS if data.recipe == "regions" and tensor.numel else 1.0
    if data.recipe == "integers":
        # Rounding to a coarser format moves to multiples of larger powers of two, so this one still divides.
        unit = 2.0 ** (data.exponent or 0)
        largest = max(map(abs, integer_bounds(tensor, data))) * unit
        return unit if largest <= layout.largest else None
    if data.recipe == "constant":
        with np.errstate(all="ignore"):
            return _lowest_bit(to_storage(np.array([1.0 if data.mean is None else data.mean]), tensor.dtype))
    return _lowest_bit(array(tensor, arrays={}, name="")) if data.recipe is None else None


def _lowest_bit(values: Array) -> float | None:
    """The largest power of two that divides all of these floating numbers; None where one is inf or nan."""
    numbers = widen(values).reshape(-1)
    if not np.isfinite(numbers).all():
        return None
    mantissas, exponents = np.frexp(numbers[numbers != 0.0])
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    return float(np.ldexp((whole & -whole).astype(np.float64), exponents - 53).min()) if whole.size else 1.0
