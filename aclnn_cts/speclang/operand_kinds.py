"""Whether an expression reads its names as what they are: a run or a tensor is no number, an item no dimension."""

from __future__ import annotations

from collections.abc import Mapping

from aclnn_cts.core.case import POINTERS
from aclnn_cts.core.printable import either
from aclnn_cts.speclang.expression import SIZES, Node
from aclnn_cts.speclang.shape import INDEX, ShapeExpression

RUN = "run"
"""The kind of a draw of several dimensions, beside the kinds of parameters."""

_WORDS = {
    "tensor": "a tensor",
    "scalar": "a scalar",
    "string": "a text",
    "int_array": "an int array",
    "bool_array": "a bool array",
    "float_array": "a float array",
    "tensor_list": "a list of tensors",
    RUN: "a run of dimensions",
}
_SIZED = ("tensor", "int_array", RUN)
_TAKES = {
    **dict.fromkeys(("rank", "numel", "shape", "sizes", "broadcast", "broadcasts"), _SIZED),
    "empty": (*_SIZED, "tensor_list"),
    **dict.fromkeys(("dim", "itemsize", "offset", "recipe"), ("tensor",)),
    **dict.fromkeys(("format", "contiguous"), ("tensor", "tensor_list")),
    **dict.fromkeys(("dtype", "promote", "castable"), ("tensor", "scalar", "tensor_list")),
    **dict.fromkeys(("sums", "ascending"), ("int_array", RUN)),
    "sum": ("int_array", "bool_array", "float_array", RUN),
    "value": ("scalar",),
    "given": POINTERS,
    **dict.fromkeys(("len", "item"), ("int_array", "bool_array", "float_array", "tensor_list", RUN)),
}
"""The kinds that the first operand of a function may have, or each operand; the others take numbers."""
_ALIKE = frozenset({"broadcast", "broadcasts", "promote", "castable"})
"""Functions all of whose operands have the same kinds."""
_SIZES = ("shape", "sizes", *SIZES)
_INSTEAD = {("dim", "int_array"): "item", ("dim", RUN): "item", ("item", "tensor"): "dim", ("len", "tensor"): "rank"}


def misread(node: Node, kinds: Mapping[str, str]) -> str | None:
    """What is wrong with the first name that is read as something else than it is; None where all is well."""
    sizes = [operand for operand in node.operands if operand.kind == "call" and operand.value in _SIZES]
    is_compared = node.kind == "compare" and set(node.value) <= {"==", "!="} and len(sizes) == len(node.operands)
    if sizes and node.kind not in ("call", "if", "whole") and not is_compared:
        word = sizes[0].value
        return f"{word}(...) is several sizes; expected a number, or by == and != {word}(...) beside other sizes"
    if node.kind == "call" and node.value == "item" and node.operands[1].kind == "word":
        return f'item(..., "{node.operands[1].value}"): the place of an item is a number'
    for place, operand in enumerate(node.operands):
        is_typed = node.kind == "call" and (place == 0 or node.value in _ALIKE)
        wanted = _TAKES.get(str(node.value)) if is_typed else None
        if operand.kind == "name" and (message := _misread_name(node, str(operand.value), wanted, kinds)) is not None:
            return message
        if (message := misread(operand, kinds)) is not None:
            return message
    return None


def _misread_name(node: Node, name: str, wanted: tuple[str, ...] | None, kinds: Mapping[str, str]) -> str | None:
    kind = kinds.get(name)
    if kind is None or (kind in wanted if wanted is not None else kind not in _WORDS):
        return None
    if kind == "string" and wanted is None and node.kind == "compare":
        return None
    given = f"{name} is {_WORDS.get(kind, 'a number')}"
    if wanted is not None:
        instead = _INSTEAD.get((str(node.value), kind))
        advice = f"; write {instead}({name}, ...)" if instead in ("dim", "item") else ""
        advice = f"; write {instead}({name})" if instead == "rank" else advice
        return f"{node.value}({name}): {given}; expected {either([_WORDS[item] for item in wanted])}{advice}"
    reads = {
        "tensor": f"dim({name}, 0) or numel({name})",
        "int_array": f"{name}[0] or numel({name})",
        "scalar": f"value({name})",
        "string": f'{name} == "word"',
        RUN: f"rank({name}) or numel({name})",
    }
    return f"{given}; expected a number, such as {reads.get(kind, f'{name}[0]')}"


def misread_shape(shape: ShapeExpression, kinds: Mapping[str, str]) -> str | None:
    """The same for a shape expression: `*` takes what has sizes, and what has sizes takes a `*`."""
    if shape.condition is not None and shape.otherwise is not None:
        rest = misread(Node("or", operands=(shape.condition,)), kinds) or misread_shape(shape.otherwise, kinds)
        if rest is not None:
            return rest
    for item in shape.items:
        name = str(item.node.value) if item.node.kind == "name" else None
        kind = kinds.get(name) if name is not None else None
        beside = ("tensor_list",) if INDEX in kinds else ()
        if item.spliced and kind is not None and kind not in (*_SIZED, *beside):
            return f"*{name}: {name} is a number; leave the * out"
        if not item.spliced and kind in _WORDS:
            return f"{name} is {_WORDS[kind]}; write *{name} for all its sizes"
        for node in (item.node, item.start, item.stop):
            if node is not None and (message := misread(node, kinds)) is not None:
                return message
    return None
