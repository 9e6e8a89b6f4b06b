"""What valid calls are made of, from a spec file: draws, parameters, modes, rows of dtypes, and the `atk` section."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.core.printable import quote
from aclnn_cts.core.regime import LEAST_LARGE
from aclnn_cts.speclang.build_constraints import ConstraintContext, DtypeRows, product_table, rank_table
from aclnn_cts.speclang.evaluator import Evaluator
from aclnn_cts.speclang.kinds_dtype import PROMOTE, names_read
from aclnn_cts.speclang.kinds_number import C_RANGES
from aclnn_cts.speclang.model import Atk, AtkArgument, Draw, Modes, Parameter
from aclnn_cts.speclang.schema import AtkArgumentModel, AtkModel, DrawModel, ModesModel, ParameterModel
from aclnn_cts.speclang.shape import INDEX
from aclnn_cts.speclang.spec_problems import RUN, SpecProblems
from aclnn_cts.speclang.yaml_file import YamlPath

_POINTERS = {
    "aclTensor": "tensor",
    "aclScalar": "scalar",
    "char": "string",
    "aclIntArray": "int_array",
    "aclBoolArray": "bool_array",
    "aclFloatArray": "float_array",
    "aclTensorList": "tensor_list",
}
_TENSORS = ("tensor", "tensor_list")
_ARRAYS = ("int_array", "bool_array", "float_array")
_DRAWN = ("int", "bool", "double", "scalar", "string")
"""Kinds whose value is that of the draw of their name."""
_MOST_ITEMS = 16
"""Items of a bool array that are drawn one by one."""


def kind_of_type(c_type: str) -> str | None:
    """What stands in a case for a C type (`core.case.argument_kind`); None for an unknown one."""
    words = c_type.replace("*", " * ").split()
    bare = [word for word in words if word not in ("const", "*")]
    if len(bare) != 1:
        return None
    if bare[0] in _POINTERS:
        return _POINTERS[bare[0]] if words.count("*") == 1 else None
    if "*" in words:
        return None
    return {"bool": "bool", "double": "double", "float": "double"}.get(bare[0], "int" if bare[0] in C_RANGES else None)


def parameter_kinds(parameters: Sequence[ParameterModel], problems: SpecProblems) -> dict[str, str]:
    """What stands in a case for each parameter (`kind_of_type`); an unknown C type is a problem, and a tensor."""
    kinds: dict[str, str] = {}
    for number, item in enumerate(parameters):
        problems.add_if(
            item.name in kinds, ("parameters", number, "name"), f"parameter {quote(item.name)} stands twice; keep one"
        )
        kind = kind_of_type(item.type)
        problems.add_if(
            kind is None,
            ("parameters", number, "type"),
            f"C type {quote(item.type)} is not known; expected a pointer to {', '.join(_POINTERS)}, an integer "
            "type, bool or double",
        )
        kinds[item.name] = kind or "tensor"
    return kinds


def with_implied_draws(
    parameters: Sequence[ParameterModel], kinds: Mapping[str, str], draws: Sequence[DrawModel]
) -> tuple[list[ParameterModel], list[DrawModel]]:
    """Parameters and draws, with one for each text with words and for each item of a bool array of a known length."""
    made: list[ParameterModel] = []
    implied: list[DrawModel] = []
    written = [draw.name or draw.run for draw in draws]
    for item in parameters:
        words, length = _value(item.words), _value(item.length)
        if kinds[item.name] == "string" and item.name not in written and isinstance(words, list):
            implied.append(DrawModel(name=item.name, one_of=[f'"{word}"' for word in words]))
        elif kinds[item.name] == "bool_array" and item.items is None and isinstance(length, int):
            places = [f"{item.name}_{place}" for place in range(min(length, _MOST_ITEMS))]
            implied.extend(DrawModel(name=place, one_of=[True, False]) for place in places)
            item = msgspec.structs.replace(item, items=f"[{', '.join(places)}]")  # noqa: PLW2901
        made.append(item)
    return made, implied


def _value(written: object) -> object:
    """The value of a property that may be a mapping."""
    return written.get("is") if isinstance(written, dict) else written


def build_parameters(
    models: Sequence[ParameterModel], context: ConstraintContext, draws: Sequence[Draw]
) -> tuple[Parameter, ...]:
    """The parameters in C order, with their shapes, dtypes and data compiled."""
    problems = context.problems
    parameters: list[Parameter] = []
    names = draw_kinds(draws)
    for number, item in enumerate(models):
        path = ("parameters", number)
        kind = context.kinds[item.name]
        text = item.shape if kind in _TENSORS else item.items
        earlier = [other.name for other in parameters if other.kind in (*_TENSORS, *_ARRAYS)]
        problems.add_if(
            kind in (*_TENSORS, *_ARRAYS) and text is None,
            path,
            f"{item.name}: {'shape' if kind in _TENSORS else 'items'} missing; say how a valid one is made",
        )
        problems.add_if(
            item.role == "inout" and kind not in _TENSORS,
            (*path, "role"),
            f"{item.name}: 'inout'; only a tensor is input and output, leave `role` out",
        )
        problems.add_if(
            item.role == "output" and item.data,
            (*path, "data"),
            f"{item.name}: an output has no contents before the call; expected `role: inout`",
        )
        problems.add_if(
            (kind == "tensor_list") != (item.length is not None),
            path,
            f"{item.name}: length missing; say how many tensors a valid list has",
        )
        problems.add_if(
            kind in _DRAWN
            and item.name not in names
            and (context.modes is None or context.modes.attribute != item.name),
            path,
            f"{item.name}: no draw of that name; add one to `draws`",
        )
        by_draws = item.format is not None and not item.format.startswith("as ")
        for reference, key in ((item.dtype, "dtype"), (None if by_draws else item.format, "format")):
            problems.add_if(
                reference is not None
                and not (reference.startswith("as ") and all(name in earlier for name in _followed(reference))),
                (*path, key),
                f"{quote(reference)}; expected 'as NAME' with an earlier tensor",
            )
        needs_dtype = kind in (*_TENSORS, "scalar") and item.dtype is None and item.dtypes is None
        problems.add_if(
            needs_dtype and (context.rows is None or item.name not in context.rows.parameters),
            path,
            f"{item.name}: neither `dtypes` nor `dtype`; add one",
        )
        # Which inputs a call gives is drawn; which outputs it computes follows from the call alone.
        presence = {**names, **context.kinds} if item.role == "input" else context.kinds
        known = {**names, **{name: context.kinds[name] for name in earlier}}
        readable = {**known, INDEX: "int"} if kind == "tensor_list" else known
        shown_to_data = {*earlier, item.name}
        made = {name: kind for name, kind in context.kinds.items() if kind not in _TENSORS or name in shown_to_data}
        templates: dict[str, tuple[Mapping[str, Any], ...]] = {
            data_kind: tuple(
                {key: _recipe_parameter(key, value, (*path, "data"), made, problems) for key, value in entry.items()}
                for entry in entries
            )
            for data_kind, entries in _recipes(item.data, (*path, "data"), problems)
        }
        parameters.append(
            Parameter(
                name=item.name,
                type=item.type,
                kind=kind,
                role=item.role or "",
                shape=problems.shape(text, (*path, "shape"), readable) if text is not None else None,
                length=problems.expression(item.length, (*path, "length"), known) if item.length is not None else None,
                dtypes=product_table(item.dtypes, (*path, "dtypes"), context, DTYPES, "dtype")
                if item.dtypes is not None
                else {},
                dtype_as=_followed(item.dtype)[0] if item.dtype is not None else None,
                dtype_else=_followed(item.dtype)[1:] if item.dtype is not None else (),
                formats=product_table(item.formats or ["ND"], (*path, "formats"), context, FORMATS, "format")
                if kind in _TENSORS
                else {},
                format_as=item.format[3:] if item.format is not None and not by_draws else None,
                format_by=problems.expression(item.format, (*path, "format"), names) if by_draws else None,
                layouts=rank_table(item.layouts or {}, (*path, "layouts"), problems),
                strided=item.strided,
                optional=bool(item.optional),
                optional_when=problems.expression(item.optional, (*path, "optional"), context.kinds)
                if isinstance(item.optional, str)
                else None,
                present=problems.expression(item.present, (*path, "present"), presence)
                if item.present is not None
                else None,
                data=templates,
            )
        )
    return tuple(parameters)


def _recipes(
    data: Mapping[Any, Any], path: YamlPath, problems: SpecProblems
) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """The recipes of each kind of data: one that is a word has the keys of `with`."""
    shared = data.get("with", {})
    for kind, entries in data.items():
        expected = dict if kind == "with" else list
        if not isinstance(entries, expected) or not isinstance(shared, dict):
            problems.add(
                (*path, kind), f"{kind}: {quote(entries)}; expected recipes in a list, and `with` as a mapping"
            )
        elif kind != "with":
            yield kind, [{"recipe": entry, **shared} if isinstance(entry, str) else entry for entry in entries]


def _recipe_parameter(
    key: str,
    value: object,
    path: YamlPath,
    kinds: Mapping[str, str],
    problems: SpecProblems,
) -> Any:  # noqa: ANN401 - a compiled expression, or the value
    """A recipe's parameter: an expression or, in brackets, a shape expression that gives an array of integers.

    It reads what is made before the tensor's data: attributes, earlier tensors and the tensor's own shape.
    """
    if not isinstance(value, str) or key in ("recipe", "of"):
        return value
    if value.startswith("["):
        return Evaluator(value if problems.shape(value, path, kinds).items else "[]")
    return problems.expression(value, path, kinds)


def _followed(reference: str) -> tuple[str, ...]:
    """The parameters that `as a or b` names."""
    return tuple(reference.removeprefix("as ").split(" or "))


def build_modes(entry: ModesModel, problems: SpecProblems, kinds: Mapping[str, str], products: Sequence[str]) -> Modes:
    """The precision modes; an operand that is written for all of them is repeated."""
    problems.known(entry.attribute, kinds, ("modes", "attribute"), "parameter")
    path: YamlPath = ("modes", "by")
    if not entry.by.startswith(PROMOTE):
        problems.known(entry.by, kinds, path, "parameter")
        sources: tuple[str, ...] = (entry.by,)
    else:
        sources = names_read(entry.by) if problems.node(entry.by, path, kinds) is not None else ()
    names: dict[int, str] = {}
    for value, name in entry.names.items():
        if not value.isdigit():
            problems.add(("modes", "names", value), f"{quote(value)}; expected an integer value of the attribute")
            continue
        names[int(value)] = name
    operands: dict[str, dict[str, tuple[str | None, ...]]] = {}
    for product, by_dtype in entry.operand.items():
        problems.known(product, products, ("modes", "operand", product), "product")
        operands[product] = {}
        for dtype, written in by_dtype.items():
            path = ("modes", "operand", product, dtype)
            row = written if isinstance(written, list) else [written] * len(entry.names)
            problems.known(dtype, DTYPES, path, "dtype")
            named = [operand for operand in row if operand is not None]
            problems.all_known(named, (*DTYPES, "HFLOAT32"), path, "operand format")
            problems.add_if(len(row) != len(names), path, f"{len(row)} entries; expected {len(names)}, one a mode")
            operands[product][dtype] = tuple(row)
    return Modes(attribute=entry.attribute, by=entry.by, sources=sources, names=names, operand=operands)


def build_rows(
    table: Mapping[str, Sequence[Any]], problems: SpecProblems, kinds: Mapping[str, str], products: Sequence[str]
) -> DtypeRows:
    """The rows of dtypes. Of a list in a row, each dtype makes a row; of a list of parameters, each has that column."""
    columns = [
        [column] if isinstance(column, str) else list(map(str, column)) for column in table.get("parameters", ())
    ]
    order = [(name, place) for place, column in enumerate(columns) for name in column]
    parameters = [name for name, _ in order]
    if problems.all_known(parameters, kinds, ("rows", "parameters"), "parameter") and len(order) > len(columns):
        order.sort(key=lambda pair: list(kinds).index(pair[0]))
    rows: dict[str, tuple[tuple[str, ...], ...]] = {}
    places: dict[str, tuple[int, ...]] = {}
    for product, entries in table.items():
        if product == "parameters" or not problems.known(product, products, ("rows", product), "product"):
            continue
        made: list[tuple[tuple[str, ...], int]] = []
        for number, entry in enumerate(entries):
            path = ("rows", product, number)
            choices = [[item] if isinstance(item, str) else item for item in entry]
            if isinstance(entry, str) or len(choices) != len(columns):
                problems.add(path, f"{len(choices)} dtypes; expected {len(columns)}, one a parameter")
                continue
            for choice in choices:
                problems.all_known(choice, DTYPES, path, "dtype")
            made += [(tuple(row[place] for _, place in order), number) for row in itertools.product(*choices)]
        rows[product] = tuple(row for row, _ in made)
        places[product] = tuple(number for _, number in made)
    return DtypeRows(parameters=tuple(name for name, _ in order), by_product=rows, places=places)


UNBOUNDED = 2**62


def build_draws(
    implied: Sequence[DrawModel], written: Sequence[DrawModel], problems: SpecProblems, kinds: Mapping[str, str]
) -> tuple[Draw, ...]:
    """Compile every draw over the names that stand before it; those that are implied stand first."""
    draws: list[Draw] = []
    for number, entry in enumerate((*implied, *written), -len(implied)):
        path = ("draws", number)
        earlier = draw_kinds(draws)
        name = entry.name or entry.run
        if name is None or (entry.name is not None and entry.run is not None):
            problems.add(path, "a draw has either `name` or `run`; give one")
            continue
        problems.add_if(name in earlier, path, f"draw {quote(name)} stands twice; keep one")
        draw = (
            _run(name, entry, path, problems, earlier)
            if entry.run is not None
            else _single(name, entry, path, problems, earlier, kinds)
        )
        if draw is not None:
            draws.append(draw)
    return tuple(draws)


def draw_kinds(draws: Sequence[Draw]) -> dict[str, str]:
    """What the names of draws stand for: `run`, or `number`."""
    return {draw.name: RUN if draw.is_run else "number" for draw in draws}


def _bounds(
    bounds: list[Any], path: YamlPath, problems: SpecProblems, names: Mapping[str, str]
) -> tuple[Evaluator, Evaluator]:
    low, high = bounds
    for bound in bounds:
        problems.add_if(
            isinstance(bound, float), path, f"{bound}; expected an integer, or an expression that gives one"
        )
    return (
        problems.expression(low if low is not None else -UNBOUNDED, path, names),
        problems.expression(high if high is not None else UNBOUNDED, path, names),
    )


def _run(name: str, entry: DrawModel, path: YamlPath, problems: SpecProblems, names: Mapping[str, str]) -> Draw | None:
    if entry.length is None:
        problems.add(path, f"run {name}: length missing; give [least, most]")
        return None
    low, high = _bounds(entry.length, (*path, "length"), problems, names)
    given = [key for key in ("numel", "total", "broadcasts_with") if getattr(entry, key) is not None]
    problems.add_if(len(given) > 1, path, f"run {name}: expected at most one of {', '.join(given)}")
    if entry.numel is not None:
        return Draw(
            name=name,
            kind="factorisation",
            low=low,
            high=high,
            value=problems.expression(entry.numel, (*path, "numel"), names),
        )
    if entry.total is not None:
        sizes = _bounds(entry.sizes or [0, None], (*path, "sizes"), problems, names)
        whole = problems.expression(entry.total, (*path, "total"), names)
        problems.add_if(
            entry.sizes is not None and entry.sizes[1] is not None,
            (*path, "sizes"),
            f"run {name}: sizes with a total have no upper bound; write [LEAST, null]",
        )
        return Draw(name=name, kind="partition", low=low, high=high, value=whole, sizes=sizes)
    sizes = _bounds(entry.sizes or [1, None], (*path, "sizes"), problems, names)
    if entry.broadcasts_with is not None:
        other = problems.expression(f"shape({entry.broadcasts_with})", (*path, "broadcasts_with"), names)
        return Draw(name=name, kind="broadcast", low=low, high=high, value=other, sizes=sizes)
    return Draw(name=name, kind="run", low=low, high=high, sizes=sizes)


def _single(
    name: str,
    entry: DrawModel,
    path: YamlPath,
    problems: SpecProblems,
    names: Mapping[str, str],
    kinds: Mapping[str, str],
) -> Draw | None:
    given = [key for key in ("in_", "is_", "one_of", "dtype_of") if getattr(entry, key) is not None]
    if len(given) != 1:
        problems.add(path, f"draw {name}: expected exactly one of in, is, one_of, dtype_of")
        return None
    problems.add_if(
        bool(entry.large) and entry.in_ is None, (*path, "large"), f"draw {name}: only one with `in` is large"
    )
    problems.add_if(
        not 0 <= entry.large <= LEAST_LARGE,
        (*path, "large"),
        f"draw {name}: large: {entry.large}; expected true, or elements of one from 2 to {LEAST_LARGE}",
    )
    if entry.dtype_of is not None:
        tensors = [item for item, kind in kinds.items() if kind in _TENSORS]
        problems.known(entry.dtype_of, tensors, (*path, "dtype_of"), "tensor")
        return Draw(name=name, kind="dtype", of=entry.dtype_of)
    if entry.in_ is not None:
        low, high = _bounds(entry.in_, (*path, "in"), problems, names)
        return Draw(name=name, kind="integer", low=low, high=high, unit=int(entry.large))
    if entry.is_ is not None:
        return Draw(name=name, kind="derived", value=problems.expression(entry.is_, (*path, "is"), names))
    choices = tuple(problems.expression(choice, (*path, "one_of"), names) for choice in entry.one_of or ())
    if not choices:
        problems.add(path, f"draw {name}: one_of is empty; list at least one value")
        return None
    return Draw(name=name, kind="choice", choices=choices)


_SECTION = "atk"
_FIELDS = {
    "tensor": ("shape", "dtype", "data"),
    "int_array": ("items",),
    "bool_array": ("items",),
    "float_array": ("items",),
    "tensor_list": (),
    "scalar": ("value", "dtype"),
    "string": ("value",),
    "int": ("value",),
    "bool": ("value",),
    "double": ("value",),
}


def build_atk(section: AtkModel, problems: SpecProblems, kinds: Mapping[str, str]) -> Atk:
    """Build the section; expressions may read the prototype's parameters and the files' other inputs."""
    for own, name in section.names.items():
        problems.known(name, kinds, (_SECTION, "names", own), "parameter")
    if section.format is not None:
        problems.known(section.format, FORMATS, (_SECTION, "format"), "format")
    names = [*kinds, *section.others]
    arguments: dict[str, AtkArgument] = {}
    for name, entry in section.arguments.items():
        place = (_SECTION, "arguments", name)
        if problems.known(name, kinds, place, "parameter"):
            arguments[name] = _argument(entry, kinds[name], place, problems, names)
    return Atk(names=dict(section.names), others=tuple(section.others), format=section.format, arguments=arguments)


def _argument(
    entry: AtkArgumentModel, kind: str, place: tuple[str, ...], problems: SpecProblems, names: list[str]
) -> AtkArgument:
    for key in (key for key in entry.__struct_fields__ if getattr(entry, key) is not None):
        problems.add_if(
            key not in _FIELDS[kind],
            (*place, key),
            f"{key}: means nothing for a parameter of the kind {kind}; leave it out",
        )
    follows = entry.dtype is not None and entry.dtype.startswith("as ")
    if entry.dtype is not None:
        problems.known(entry.dtype.removeprefix("as "), names if follows else DTYPES, (*place, "dtype"), "dtype")
    data = entry.data
    problems.add_if(
        data is not None and "recipe" not in data, (*place, "data"), "recipe: missing; name one (see docs/recipes.md)"
    )
    return AtkArgument(
        shape=problems.shape(entry.shape, (*place, "shape"), names) if entry.shape is not None else None,
        dtype=entry.dtype if not follows else None,
        dtype_as=entry.dtype.removeprefix("as ") if follows and entry.dtype is not None else None,
        data={
            key: problems.expression(value, (*place, "data"), names)
            if isinstance(value, str) and key not in ("recipe", "of")
            else value
            for key, value in data.items()
        }
        if data is not None
        else None,
        items=problems.shape(entry.items, (*place, "items"), names) if entry.items is not None else None,
        value=problems.expression(entry.value, (*place, "value"), names) if entry.value is not None else None,
    )
