"""The call that a document's example program makes, as the `examples` of a spec write it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from aclnn_cts.authoring.model import CParameter, Document, Section
from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.speclang.build_parameters import kind_of_type

_MOST_VALUES = 64
"""Values that are written out."""
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?f?\Z")
_VECTOR = r"\b{}\s*=?\s*\{{([^{{}};]{{0,4000}})\}}"
_FILLED = r"\b{}\s*\(\s*[\w.()]{{1,80}}\s*,\s*(-?[\d.]{{1,20}})f?\s*\)\s*;"
_VALUE = r"\b(?:u?int\w*|bool|double|float|size_t)\s+{}\s*=\s*([^;,]{{1,40}});"
_ARRAY = r"\b{}\s*=\s*aclCreate(?:Int|Bool|Float)Array\(\s*(\w{{1,80}})"
_SCALAR = r"\b{}\s*=\s*aclCreateScalar\(\s*&\s*(\w{{1,80}})\s*,\s*(?:aclDataType::)?ACL_(\w{{1,20}})\s*\)"
_CREATES = re.compile(r"\bCreateAclTensor\w*(?:<\w{1,20}>)?\(([^;{}]{1,800})\)\s*;")
_WORDS = {"true": True, "false": False}


class _UnreadError(Exception):
    """The program makes an argument in no usual form."""


def example_arguments(document: Document) -> Mapping[str, Any] | None:
    """The arguments of the document's first program; None where one of them is made in no usual form."""
    code = next(
        (
            item.text
            for item in document.statements
            if item.section is Section.EXAMPLE and item.address.startswith("example/code")
        ),
        "",
    )
    found = re.search(rf"\b{document.operator}GetWorkspaceSize\s*\(([^;{{}}]{{1,4000}})\)\s*;", code)
    words = [word.strip() for word in found[1].split(",")] if found is not None else []
    if len(words) != len(document.parameters) + 2:
        return None
    try:
        return {
            item.name: _argument(code, item, word) for item, word in zip(document.parameters, words[:-2], strict=True)
        }
    except _UnreadError:
        return None


def _argument(code: str, item: CParameter, word: str) -> Any:  # noqa: ANN401 - what a spec writes for it
    kind = kind_of_type(item.type)
    if word == "nullptr":
        return None
    if kind == "tensor":
        return _tensor(code, word, has_values=item.type.startswith("const"))
    if kind in ("int_array", "bool_array", "float_array"):
        values = _vector(code, _found(_ARRAY, code, word)[1])
        return [bool(value) for value in values] if kind == "bool_array" else values
    if kind == "scalar":
        name, dtype = _found(_SCALAR, code, word).groups()
        return {"scalar": {"dtype": dtype, "value": _number(_found(_VALUE, code, name)[1])}}
    if kind in ("int", "bool", "double"):
        is_name = re.match(r"[A-Za-z_]\w*\Z", word) is not None and word not in _WORDS
        value = _number(_found(_VALUE, code, word)[1] if is_name else word)
        return {"double": float, "bool": bool, "int": int}[kind](value)
    raise _UnreadError


def _tensor(code: str, name: str, *, has_values: bool) -> str:
    """A tensor as `DTYPE [SIZES] FORMAT = VALUES`."""
    for made in _CREATES.finditer(code):
        words = [word.strip() for word in made[1].split(",")]
        dtype = re.search(r"\bACL_(?!FORMAT)(\w+)", made[1])
        if words[-1] != f"&{name}" or dtype is None or dtype[1] not in DTYPES:
            continue
        form = re.search(r"\bACL_FORMAT_(\w+)", made[1])
        sizes = _vector(code, words[1])
        values = _vector(code, words[0], count=math.prod(int(size) for size in sizes)) if has_values else []
        if (has_values and dtype[1] in ("FLOAT16", "BF16")) or (form is not None and form[1] not in FORMATS):
            # Bits of a narrow format are no values.
            raise _UnreadError
        tail = f" {form[1]}" if form is not None and form[1] != "ND" else ""
        return f"{dtype[1]} {[int(size) for size in sizes]}{tail}" + (f" = {_values_text(values)}" if values else "")
    raise _UnreadError


def _values_text(values: Sequence[Any]) -> str:
    values = [int(value) if float(value).is_integer() else value for value in values]
    first, last = values[0], values[-1]
    if all(value == first for value in values):
        return f"{first}"
    if isinstance(first, int) and all(value == first + place for place, value in enumerate(values)):
        return f"{first}..{last}"
    if len(values) > _MOST_VALUES:
        raise _UnreadError
    return ", ".join(map(str, values))


def _vector(code: str, name: str, *, count: int = 0) -> list[Any]:
    """The items of a vector: listed, or so many times one number."""
    name = name.partition(".")[0]
    if (found := re.search(_VECTOR.format(re.escape(name)), code)) is not None:
        values = [_number(word) for word in found[1].split(",") if word.strip()]
        if count and len(values) != count:
            raise _UnreadError
        return values
    return [_number(_found(_FILLED, code, name)[1])] * count


def _found(pattern: str, code: str, name: str) -> re.Match[str]:
    found = re.search(pattern.format(re.escape(name)), code)
    if found is None:
        raise _UnreadError
    return found


def _number(word: str) -> Any:  # noqa: ANN401 - a number or a truth value
    word = word.strip()
    if word in ("true", "false"):
        return _WORDS[word]
    if _NUMBER.match(word) is None:
        raise _UnreadError
    value = float(word.rstrip("f"))
    return int(value) if value.is_integer() and not re.search("[.eE]", word) else value
