"""What is wrong with the form of a value from a file: every mistake with its place, where msgspec names the first."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from datetime import date
from typing import Any, TypeAlias

from msgspec import inspect

from aclnn_cts.core.errors import did_you_mean
from aclnn_cts.core.printable import ECHO_LIMIT, alternatives_text, printable, quote
from aclnn_cts.speclang.yaml_file import YamlFile, YamlPath

_ECHO = 60
NOT_BLANK = r"\S"
"""The pattern of a text that says something."""
_WORDS: dict[type[inspect.Type], str] = {
    inspect.StrType: "a text in quotes",
    inspect.BoolType: "true or false",
    inspect.IntType: "an integer",
    inspect.FloatType: "a number",
    inspect.DateType: "a day, as 2027-01-31",
    inspect.ListType: "a list, in brackets",
    inspect.VarTupleType: "a list, in brackets",
    inspect.DictType: "a mapping, as {key: value}",
    inspect.StructType: "a mapping, as {key: value}",
    inspect.DataclassType: "a mapping, as {key: value}",
}
_LISTS = (inspect.ListType, inspect.VarTupleType)
_OBJECTS = (inspect.StructType, inspect.DataclassType)
_Mistake: TypeAlias = tuple[YamlPath, str]


def form_mistakes(file: YamlFile, value: object, form: Any, path: YamlPath = ()) -> Iterator[_Mistake]:  # noqa: ANN401 - any type
    """The mistakes of a value at a path of a file that should have a form, which is a type."""
    return _mistakes(file, value, _described(form), path)


# To look into a type takes a hundred times as long as to hold a value to it.
_described = functools.cache(inspect.type_info)


def _mistakes(file: YamlFile, value: object, form: inspect.Type, path: YamlPath) -> Iterator[_Mistake]:
    for inner in _alternatives(form):
        if isinstance(value, dict) and isinstance(inner, _OBJECTS):
            yield from _of_keys(file, value, inner, path)
            return
        if isinstance(value, dict) and isinstance(inner, inspect.DictType):
            for key, item in value.items():
                yield from _mistakes(file, key, inner.key_type, (*path, key))
                yield from _mistakes(file, item, inner.value_type, (*path, key))
            return
        if isinstance(value, list) and isinstance(inner, _LISTS) and _has_length(value, inner):
            for number, item in enumerate(value):
                yield from _mistakes(file, item, inner.item_type, (*path, number))
            return
    if not any(_is_of(value, inner) for inner in _alternatives(form)):
        words = [_words(inner) for inner in _alternatives(form) if not isinstance(inner, inspect.NoneType)]
        expected = alternatives_text(list(dict.fromkeys(words)))
        given = "not filled in" if value is None else quote(value, _ECHO)
        yield path, f"{_place(file, path)}: {given}; expected {expected}"


def _of_keys(
    file: YamlFile, value: dict[Any, object], form: inspect.StructType | inspect.DataclassType, path: YamlPath
) -> Iterator[_Mistake]:
    fields = {item.encode_name: item for item in form.fields}
    for key, item in value.items():
        if key in fields:
            yield from _mistakes(file, item, fields[key].type, (*path, key))
        else:
            hint = did_you_mean(str(key), fields)
            yield (*path, key), f"unknown key {quote(key)}; expected any of {', '.join(fields)}{hint}"
    for key in (key for key, item in fields.items() if item.required and key not in value):
        yield (*path, key), f"{_place(file, (*path, key))}: missing; add it"


def _place(file: YamlFile, path: YamlPath) -> str:
    return printable(".".join(map(str, file.written(path))) or "the file", ECHO_LIMIT)


def _alternatives(form: inspect.Type) -> tuple[inspect.Type, ...]:
    return form.types if isinstance(form, inspect.UnionType) else (form,)


def _has_length(value: list[object], form: inspect.ListType | inspect.VarTupleType) -> bool:
    return (form.min_length or 0) <= len(value) <= (len(value) if form.max_length is None else form.max_length)


def _is_of(value: object, form: inspect.Type) -> bool:
    """Whether a value that is no list and no mapping has a form."""
    if isinstance(form, inspect.LiteralType):
        return value in form.values
    if isinstance(form, inspect.EnumType):
        return value in [item.value for item in form.cls]
    if isinstance(form, inspect.StrType):
        return isinstance(value, str) and (form.pattern is None or re.search(form.pattern, value) is not None)
    if isinstance(form, inspect.DateType):
        return isinstance(value, str) and _is_day(value)
    if isinstance(form, inspect.NoneType):
        return value is None
    if isinstance(form, inspect.BoolType):
        return isinstance(value, bool)
    numbers = {inspect.IntType: (int,), inspect.FloatType: (int, float)}.get(type(form), ())
    return isinstance(form, inspect.AnyType) or (isinstance(value, numbers) and not isinstance(value, bool))


def _is_day(text: str) -> bool:
    try:
        return re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _words(form: inspect.Type) -> str:
    if isinstance(form, inspect.LiteralType):
        return alternatives_text([str(word) for word in form.values])
    if isinstance(form, inspect.EnumType):
        return alternatives_text([str(item.value) for item in form.cls])
    if isinstance(form, inspect.StrType) and form.pattern not in (None, NOT_BLANK):
        return f"a text of the form {form.pattern}"
    if isinstance(form, _LISTS) and form.min_length is not None:
        return f"a list of {'' if form.min_length == form.max_length else 'at least '}{form.min_length}"
    return _WORDS[type(form)]
