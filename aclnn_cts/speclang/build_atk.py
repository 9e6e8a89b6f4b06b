"""The `atk` section of a spec: what ATK case files call things, and what their executors put in place of them."""

from __future__ import annotations

from collections.abc import Mapping

from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.speclang.model import Atk, AtkArgument
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import AtkArgumentModel, AtkModel

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


def build_atk(section: AtkModel, problems: Problems, kinds: Mapping[str, str]) -> Atk:
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
    entry: AtkArgumentModel, kind: str, place: tuple[str, ...], problems: Problems, names: list[str]
) -> AtkArgument:
    for key in entry.model_fields_set:
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
