"""The arguments of a case against the C prototype, and the outputs that belong to its inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from aclnn_cts.core.case import POINTERS, Argument, Case, Tensor, TensorList, argument_kind, tensors_in
from aclnn_cts.core.case_json import check_int64
from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.printable import quote
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression import UNDEFINED, ExpressionNode
from aclnn_cts.speclang.kinds_dtype import are_dtypes_allowed, relations
from aclnn_cts.speclang.kinds_number import C_RANGES
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Parameter, Spec
from aclnn_cts.speclang.package import check_product
from aclnn_cts.speclang.shape import INDEX, ShapeExpression, ShapeItem, compile_shape


def bind_case(specs: Specs, case: Case, *, where: str) -> Spec:
    """The spec of a case's operator, after checking operator, product and arguments; UsageError says what is wrong."""
    known = list(specs)
    if case.operator not in specs:
        raise UsageError(
            f"{where}: $.operator: {quote(case.operator)} is not known; `aclnn-cts ops` lists the operators"
            f"{did_you_mean(case.operator, known)}"
        )
    spec = specs[case.operator]
    check_product(case.product, where=f"{where}: $.product")
    check_prototype(spec, case, where=where)
    return spec


def check_prototype(spec: Spec, case: Case, *, where: str, path: str = "$.arguments.") -> None:
    """UsageError where the arguments do not fit the prototype or its C types.

    `path`: what stands before the name of an argument in messages.
    """
    names = [item.name for item in spec.parameters]
    for name in case.arguments:
        if name not in names:
            raise UsageError(
                f"{where}: $.arguments: unknown argument {quote(name)}; {spec.operator} takes {', '.join(names)}"
                f"{did_you_mean(name, names)}"
            )
    for item in spec.parameters:
        if item.name not in case.arguments:
            raise UsageError(
                f"{where}: $.arguments.{item.name}: missing; {spec.operator} takes {', '.join(names)} (null for a "
                "null pointer)"
            )
        _check_argument(item, case.arguments[item.name], where=f"{where}: {path}{item.name}")


def _check_argument(item: Parameter, value: Argument, *, where: str) -> None:
    if value is None:
        if item.kind in POINTERS:
            return
        raise UsageError(f"{where}: null; {item.type} is no pointer, expected {{{quote(item.kind)}: ...}}")
    kind = argument_kind(value)
    if kind == "int" and item.kind == "double":
        raise UsageError(f"{where}: int; expected {{'double': ...}} for the C type double")
    if kind != item.kind:
        raise UsageError(f"{where}: {kind}; expected {item.kind} for the C type {item.type}")
    if item.kind == "int" and isinstance(value, int):
        low, high = C_RANGES[item.c_type]
        if not low <= value <= high:
            raise UsageError(f"{where}: {quote(value)}; expected {item.type}, in [{low}, {high}]")
    if isinstance(value, tuple):
        check_int64(value, where=where)
    for tensor in tensors_in(value):
        _check_tensor(item, tensor, where=where)


def _check_tensor(item: Parameter, tensor: Tensor, *, where: str) -> None:
    if tensor.data is not None and not item.is_input:
        raise UsageError(f"{where}: data; {item.name} is an output alone, expected none")
    for sizes in (tensor.shape, tensor.strides or (), tensor.storage_shape or (), (tensor.offset,)):
        check_int64(sizes, where=where)


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
    at, is_told = 0, True
    size: int | tuple[int, ...]
    for item, length in zip(pattern.items, lengths, strict=True):
        taken = sizes[at : at + (free if length is None else length)]
        at += len(taken)
        if item.spliced and item.node.kind == "name" and item.start is None and item.stop is None:
            unknown, size = [item.node], taken
        elif item.spliced:
            continue
        else:
            unknown, product = _unknown(item.node, {**arguments, **names})
            size = taken[0] // product if taken and product else 0
        is_told = is_told and len(unknown) < 2
        if len(unknown) == 1 and unknown[0].kind == "name" and unknown[0].value not in arguments:
            names.setdefault(str(unknown[0].value), size)
    return is_told


def _unknown(node: ExpressionNode, names: Mapping[str, Any]) -> tuple[list[ExpressionNode], int]:
    """The factors of a product that are no numbers yet, and the product of the others."""
    if node.kind == "arithmetic" and node.value == "*":
        (left, first), (right, second) = (_unknown(operand, names) for operand in node.operands)
        return left + right, first * second
    value = node.value if node.kind == "number" else names.get(str(node.value)) if node.kind == "name" else None
    return ([], value) if isinstance(value, int) else ([node], 1)


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
        dtype
        for dtype in own
        if are_dtypes_allowed(relations(spec, product), {**given, item.name: dtype}, Target(product))
    ]
    own = tuple(fitting) or own
    first = next((given[name] for name in spec.inputs if name in given), "")
    return first if first in own or not own else own[0]
