"""Mistakes of a spec file, gathered so that lint shows all of them, and what is wrong with an expression."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from aclnn_cts.core.case import POINTERS
from aclnn_cts.core.printable import alternatives_text, quote
from aclnn_cts.speclang.evaluator import Evaluator
from aclnn_cts.speclang.expression import SIZES, ExpressionNode
from aclnn_cts.speclang.expression_parser import ExpressionError, parse
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.shape import INDEX, ShapeExpression, parse_shape
from aclnn_cts.speclang.yaml_file import YamlPath


@dataclass
class SpecProblems(Problems):
    """Those of a spec file; every helper returns something usable after a mistake."""

    open: dict[YamlPath, str] = field(default_factory=dict)
    """Places of a draft that a person has to settle, and what to read: a mistake there is none yet."""
    places: Mapping[tuple[str, str], YamlPath] = field(default_factory=dict)
    """Where the entries of a built spec are written, by section and name."""

    def add(self, path: Sequence[str | int], message: str) -> None:
        """Record a mistake at a path, unless a person has to settle the place first."""
        if not self._is_open(path):
            super().add(path, message)

    def _is_open(self, path: Sequence[str | int]) -> bool:
        written = tuple(self.file.written(path)) if self.open else ()
        return any(written[: len(place)] == place for place in self.open)

    def leave_open(self, number: int, at: str, read: Sequence[str], names: Sequence[str]) -> None:
        """Record entry `number` of `open`: a place, by the parameters' names, and what to read for it."""
        section, *rest = at.split(".")
        place: YamlPath = (section, *rest)
        if section == "parameters" and rest and self.known(rest[0], names, ("open", number, "at"), "parameter"):
            place = (section, list(names).index(rest[0]), *rest[1:])
        advice = f"; read {', '.join(read)}" if read else ""
        self.open[place] = f"{self.file.location_of(('open', number))}: open: {at}{advice}"

    def place(self, section: str, name: str) -> YamlPath:
        """Where an entry of a built spec is written; its section where it is from another file."""
        return self.places.get((section, name), (section, name))

    def node(self, text: object, path: Sequence[str | int], names: Collection[str]) -> ExpressionNode | None:
        """Parse an expression and check its names, and what they are where `names` maps them to their kinds."""
        if not isinstance(text, (str, int, float)):
            self.add(path, f"{quote(text)}; expected an expression or a number")
            return None
        try:
            node = parse(text)
        except ExpressionError as error:
            self.add(path, str(error))
            return None
        if read := node.contents_read():
            self.add(
                path,
                f"{quote(str(text))}: reads the contents of {', '.join(sorted(read))}, which only the `when` of a "
                "waiver can; use shapes, dtypes and attributes",
            )
            return None
        ok = self.all_known(sorted(node.names()), names, path, f"name in the expression {quote(str(text))}:")
        # A name alone is read as the operand of an expression is.
        if (
            ok
            and isinstance(names, Mapping)
            and (message := misread_name(ExpressionNode("whole", operands=(node,)), names)) is not None
        ):
            self.add(path, f"{quote(str(text))}: {message}")
            return None
        return node if ok else None

    def expression(self, text: object, path: Sequence[str | int], names: Collection[str]) -> Evaluator:
        """Check an expression; after a mistake, one that gives 0."""
        is_right = self.node(text, path, names) is not None
        return Evaluator(text if is_right and isinstance(text, (str, int, float)) else 0)

    def shape(self, text: str, path: Sequence[str | int], names: Collection[str]) -> ShapeExpression:
        """Parse a shape expression and check its names; after a mistake, the shape of rank 0."""
        try:
            shape = parse_shape(text)
        except ExpressionError as error:
            self.add(path, str(error))
            return ShapeExpression(text=text, items=())
        ok = self.all_known(sorted(shape.names()), names, path, f"name in the shape {quote(text)}:")
        if ok and isinstance(names, Mapping) and (message := misread_shape(shape, names)) is not None:
            self.add(path, f"{quote(text)}: {message}")
            ok = False
        return shape if ok else ShapeExpression(text=text, items=())


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
    **dict.fromkeys(("sums", "ascending", "shortest", "longest", "least", "greatest"), ("int_array", RUN)),
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


def misread_name(node: ExpressionNode, kinds: Mapping[str, str]) -> str | None:
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
        if (message := misread_name(operand, kinds)) is not None:
            return message
    return None


def _misread_name(
    node: ExpressionNode, name: str, wanted: tuple[str, ...] | None, kinds: Mapping[str, str]
) -> str | None:
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
        return f"{node.value}({name}): {given}; expected {alternatives_text([_WORDS[item] for item in wanted])}{advice}"
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
        rest = misread_name(ExpressionNode("or", operands=(shape.condition,)), kinds) or misread_shape(
            shape.otherwise, kinds
        )
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
            if node is not None and (message := misread_name(node, kinds)) is not None:
                return message
    return None
