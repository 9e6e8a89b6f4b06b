"""What outputs a call must be given: shapes, dtypes and formats that follow from its inputs by the spec.

The free names of the spec are found by laying the shapes of inputs, and the items of int arrays, over the patterns that
valid ones are made by; the outputs' own patterns then give their shapes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from aclnn_cts.core.case import Argument, Tensor, TensorList, tensors_in
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.kinds_promotion import is_allowed, relations
from aclnn_cts.speclang.model import Parameter, Spec
from aclnn_cts.speclang.shape import INDEX, ShapeExpression, ShapeItem, compile_shape


def infer_outputs(
    spec: Spec,
    arguments: Mapping[str, Argument],
    *,
    target: Target,
    format: str,  # noqa: A002 - the word for it
) -> dict[str, Tensor | TensorList | None]:
    """The outputs that belong to the other arguments, in the prototype's order, contiguous and without contents.

    Those that a valid call leaves out are None.

    Raises UsageError where a shape does not follow from the inputs.
    """
    names = _bound_names(spec, arguments, target)
    outputs: dict[str, Tensor | TensorList | None] = {}
    for item in spec.parameters:
        if item.role != "output" or item.shape is None:
            continue
        if spec.leaves_out(item, arguments, target):
            outputs[item.name] = None
            continue
        known = {**names, **arguments, **outputs}
        dtype = _dtype(spec, item, {**arguments, **outputs}, target.product)
        shape = compile_shape(item.shape)
        try:
            if item.length is None:
                outputs[item.name] = Tensor(shape(known, target), dtype, format)
            else:
                places = range(int(item.length(known, target)))
                shapes = [shape({**known, INDEX: place}, target) for place in places]
                outputs[item.name] = TensorList(tuple(Tensor(sizes, dtype, format) for sizes in shapes))
        except (*UNDEFINED, KeyError, AttributeError):
            raise UsageError(f"{item.name}: its shape {item.shape.text} does not follow from the inputs") from None
    return outputs


def _bound_names(spec: Spec, arguments: Mapping[str, Argument], target: Target) -> dict[str, Any]:
    """Free names by value: of each pattern that has one unknown run at most, until no pattern tells more.

    Where two inputs contradict each other, the first in the prototype's order decides: the call is invalid then, which
    is for the constraints to say.
    """
    names: dict[str, Any] = {}
    pending = []
    for item in spec.parameters:
        value = arguments.get(item.name)
        if item.role == "output" or item.shape is None:
            continue
        places = [value] if isinstance(value, tuple) else [tensor.shape for tensor in tensors_in(value)]
        for place, sizes in enumerate(places):
            with contextlib.suppress(*UNDEFINED):
                pending.append((item.shape.chosen({**arguments, INDEX: place}, target), sizes))
    while True:
        waiting = [(pattern, sizes) for pattern, sizes in pending if not _laid_over(pattern, sizes, names, arguments)]
        if len(waiting) == len(pending):
            return names
        pending = waiting


def _laid_over(
    pattern: ShapeExpression, sizes: tuple[int, ...], names: dict[str, Any], arguments: Mapping[str, Argument]
) -> bool:
    """Bind the names of a pattern; False where it cannot be told yet which sizes are whose."""
    lengths = [_length(item, names, arguments) for item in pattern.items]
    if lengths.count(None) > 1:
        return False
    free = len(sizes) - sum(length for length in lengths if length is not None)
    if free < 0:
        return True
    at = 0
    for item, length in zip(pattern.items, lengths, strict=True):
        taken = sizes[at : at + (free if length is None else length)]
        at += len(taken)
        if item.node.kind != "name" or item.start is not None or item.stop is not None:
            continue
        name = str(item.node.value)
        if name not in arguments:
            names.setdefault(name, taken if item.spliced else taken[0] if taken else 0)
    return True


def _length(item: ShapeItem, names: Mapping[str, Any], arguments: Mapping[str, Argument]) -> int | None:
    """How many sizes an item stands for; None where that is not known."""
    if not item.spliced:
        return 1
    if item.start is not None or item.stop is not None:
        return None
    known = names.get(str(item.node.value), arguments.get(str(item.node.value)))
    if isinstance(known, Tensor):
        return len(known.shape)
    return len(known) if isinstance(known, tuple) else None


def _dtype(spec: Spec, item: Parameter, arguments: Mapping[str, Argument], product: str) -> str:
    """The dtype that follows another's, or the row's; else that of the first input where the output may have it."""
    if item.dtype_as is not None and item.name not in spec.row_parameters:
        names = (item.dtype_as, *item.dtype_else)
        given_dtypes = (tensor.dtype for name in names for tensor in tensors_in(arguments.get(name)))
        # What it follows may be left out of this call: then it has the dtype that this one would have.
        return next(given_dtypes, "") or _dtype(spec, spec.parameter(item.dtype_as), arguments, product)
    given = {name: tensor.dtype for name, value in arguments.items() for tensor in tensors_in(value)[:1]}
    if item.name in spec.row_parameters and spec.rows is not None:
        for row in spec.rows.get(product, ()):
            entry = dict(zip(spec.row_parameters, row, strict=True))
            if all(given.get(name, dtype) == dtype for name, dtype in entry.items()):
                return entry[item.name]
    own = item.dtypes.get(product, ())
    fitting = [
        dtype for dtype in own if is_allowed(relations(spec, product), {**given, item.name: dtype}, Target(product))
    ]
    own = tuple(fitting) or own
    first = next((given[name] for name in spec.inputs if name in given), "")
    return first if first in own or not own else own[0]
