"""Case files of the ecosystem's ATK runner, turned into ours: every case is carried over, or named with the reason.

An ATK file is a JSON list of cases: the operator, and its inputs in the order of the benchmark executor, each with its
name, type, dtype, shape and value range. What a spec cannot tell of the executors stands in its `atk` section.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aclnn_cts.core.case import Argument, Case, Data, Origin, Tensor
from aclnn_cts.core.dtypes import COMPONENTS, DTYPES, FORMATS, component
from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.outside import ARRAY_LIMIT, DOCUMENT_BYTES, NON_FINITE, RANK_LIMIT, read_outside, strict_json
from aclnn_cts.core.printable import ECHO_LIMIT, printable, quote
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.generate.choices import stream_words
from aclnn_cts.speclang.binding import bind_case, infer_outputs
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Atk, AtkArgument, Parameter, Spec
from aclnn_cts.speclang.shape import compile_shape

_MOST_CASES = 100_000
"""Cases of one file."""
_SEEDS = 2**64
_REASON = 600
"""Characters of a reason."""
_NO_ARGUMENT = "non_param"
_FORMAT = "format"
_DEFAULT_FORMAT = "ND"
_ALONE = ("tensor", "attr")
_ARRAYS = ("attrs", "attr_tuple")


@dataclass(frozen=True, slots=True, kw_only=True)
class AtkEntry:
    """One ATK case: ours, or why there is none.

    One about which the document contradicts itself or says nothing is a trial of `values`: whatever status it returns
    conforms, and where it succeeds its values are judged, as ATK would.
    """

    file: str
    id: str
    """As the file has it; the position where it has none."""
    content: Trial | Case | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Input:
    """One parameter of an ATK case: a tensor or attribute, or (several parts) an array."""

    name: str
    parts: tuple[Mapping[str, Any], ...]
    array: bool

    @property
    def first(self) -> Mapping[str, Any]:
        return self.parts[0]


def import_atk(path: Path, specs: Specs, *, product_of: Callable[[Spec], str]) -> Iterator[AtkEntry]:
    """The cases of a file, in its order. `product_of` says for which product an operator's cases are made.

    Raises UsageError where the file cannot be read or is no list of cases.
    """
    text = read_outside(path, limit=DOCUMENT_BYTES, expected="an ATK case file (JSON); split a longer one")
    document = strict_json(text, where=str(path), expected="an ATK case file: the list of cases that `atk case` writes")
    if not isinstance(document, list):
        raise UsageError(f"{path}: $: {type(document).__name__}; expected the list of cases that `atk case` writes")
    if len(document) > _MOST_CASES:
        raise UsageError(f"{path}: $: {len(document)} cases; expected at most {_MOST_CASES}: split the file")
    for position, entry in enumerate(document):
        number = entry.get("id") if isinstance(entry, Mapping) else None
        identifier = str(position) if number is None else _word(number)
        seed = number % _SEEDS if isinstance(number, int) else position
        try:
            case = _case(entry, specs, product_of, seed=seed, source=f"{path.name}, id {identifier}")
        except (UnsupportedAtkError, UsageError) as reason:
            yield AtkEntry(file=str(path), id=identifier, reason=printable(str(reason), _REASON))
        else:
            is_open = evaluate(specs[case.operator], case).strength == Strength.OPEN
            yield AtkEntry(file=str(path), id=identifier, content=Trial("values", case) if is_open else case)


def _case(entry: object, specs: Specs, product_of: Callable[[Spec], str], *, seed: int, source: str) -> Case:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("inputs"), list):
        raise UnsupportedAtkError("no object with a list of inputs")
    if entry.get("expected_error_msg"):
        raise UnsupportedAtkError("it expects an error message, which no document promises")
    spec = _spec(entry, specs)
    target = Target(product=product_of(spec))
    atk = spec.atk or Atk()
    inputs = _inputs(entry["inputs"])
    form = atk.format or _format(inputs)
    given = dict(_named(inputs, spec, atk))
    needed = [item for item in spec.parameters if item.role != "output"]
    changes = [item.name for item in needed if item.name in atk.arguments]
    arguments = {
        item.name: _argument(given.get(item.name), item, seed=seed, form=form)
        for item in needed
        if item.name not in changes
    }
    settled = {**{name: _plain(item, seed=seed) for name, item in given.items()}, **arguments}
    for name in changes:
        made = _replacement(spec.parameter(name), atk.arguments[name], settled, target=target, seed=seed, form=form)
        arguments[name] = settled[name] = made
    outputs = infer_outputs(spec, arguments, target=target, format=form)
    case = Case(
        operator=spec.operator,
        arguments={item.name: (arguments | outputs).get(item.name) for item in spec.parameters},
        target=target,
        origin=Origin(
            kind="atk",
            source=f"{source}{_standard(entry)}",
            change=f"as the executor makes them: {', '.join(changes)}" if changes else None,
        ),
    )
    bind_case(specs, case, where="case")
    return case


def _spec(entry: Mapping[str, Any], specs: Specs) -> Spec:
    word = entry.get("aclnn_name")
    if not isinstance(word, str) or not word:
        raise UnsupportedAtkError("aclnn_name: missing; which operator it is for is not said")
    name = word if word.startswith("aclnn") else f"aclnn{word}"
    if name not in specs:
        raise UnsupportedAtkError(
            f"aclnn_name: {quote(word)}: there is no spec of {printable(name, ECHO_LIMIT)}"
            f"{did_you_mean(name, list(specs))}"
        )
    return specs[name]


def _inputs(entries: list[Any]) -> dict[str, _Input]:
    found: dict[str, _Input] = {}
    for position, entry in enumerate(entries):
        parts = entry if isinstance(entry, list) else [entry]
        if not parts or len(parts) > ARRAY_LIMIT or not all(isinstance(part, Mapping) for part in parts):
            raise UnsupportedAtkError(f"inputs[{position}]: no object, and no list of them")
        name, kind = parts[0].get("name"), parts[0].get("type")
        if not isinstance(name, str):
            raise UnsupportedAtkError(f"inputs[{position}]: has no name, so that its parameter is not known")
        if name in found:
            raise UnsupportedAtkError(f"inputs[{position}]: {quote(name)} stands twice")
        if not isinstance(kind, str) or kind not in (_ARRAYS if isinstance(entry, list) else _ALONE):
            raise UnsupportedAtkError(f"{_word(name)}: type {quote(kind)} is not one that case files have")
        found[name] = _Input(name, tuple(parts), array=isinstance(entry, list))
    return found


def _named(inputs: Mapping[str, _Input], spec: Spec, atk: Atk) -> Iterator[tuple[str, _Input]]:
    """Inputs by the prototype's name, or by their own where the prototype lacks them."""
    for own, item in inputs.items():
        if own == _FORMAT or item.first.get("dtype") == _NO_ARGUMENT:
            continue
        name = _name_of(own, spec, atk)
        if name is None and own not in atk.others:
            known = [parameter.name for parameter in spec.parameters]
            raise UnsupportedAtkError(f"{_word(own)}: no parameter of {spec.operator}{did_you_mean(own, known)}")
        yield name or own, item


def _name_of(own: str, spec: Spec, atk: Atk) -> str | None:
    """The parameter that an input is for: by the spec's own word for it, by name, or by name but for capitals."""
    if own in atk.names or own in atk.others:
        return atk.names.get(own)
    names = [item.name for item in spec.parameters if item.role != "output"]
    return own if own in names else next((name for name in names if name.lower() == own.lower()), None)


def _format(inputs: Mapping[str, _Input]) -> str:
    """The format that the executor gives every tensor: the attribute of that name, else ND."""
    if _FORMAT not in inputs:
        return _DEFAULT_FORMAT
    value = inputs[_FORMAT].first.get("range_values")
    if not isinstance(value, str) or value not in FORMATS:
        raise UnsupportedAtkError(f"format: {quote(value)} is no aclFormat")
    return value


def _argument(item: _Input | None, parameter: Parameter, *, seed: int, form: str) -> Argument:
    if item is None:
        raise UnsupportedAtkError(f"{parameter.name}: the case has no such input")
    if item.array != (parameter.kind == "int_array") or (item.first.get("type") == "tensor") != (
        parameter.kind == "tensor"
    ):
        raise UnsupportedAtkError(
            f"{item.name}: type {quote(item.first.get('type'))}; the prototype has {parameter.type}"
        )
    if parameter.kind == "tensor":
        return _tensor(item, name=parameter.name, seed=seed, form=form, data=True)
    values = [
        atk_attribute(
            part.get("range_values"),
            kind="int" if item.array else parameter.kind,
            c_type="int64_t" if item.array else parameter.c_type,
            seed=seed,
            name=f"{parameter.name}[{position}]" if item.array else parameter.name,
        )
        for position, part in enumerate(item.parts)
    ]
    return tuple(int(value) for value in values) if item.array else values[0]


def _tensor(item: _Input, *, name: str, seed: int, form: str, data: bool) -> Tensor:
    word, shape = item.first.get("dtype"), item.first.get("shape")
    if not isinstance(word, str) or word not in ATK_DTYPES:
        raise UnsupportedAtkError(f"{item.name}: dtype {quote(word)} is not known")
    if not isinstance(shape, list) or not all(isinstance(size, int) and not isinstance(size, bool) for size in shape):
        raise UnsupportedAtkError(f"{item.name}: shape {quote(shape)} is no list of integers")
    if len(shape) > RANK_LIMIT:
        raise UnsupportedAtkError(f"{item.name}: {len(shape)} dimensions; expected at most {RANK_LIMIT}")
    if item.first.get("outlier_values") is not None:
        raise UnsupportedAtkError(f"{item.name}: outlier_values: no recipe for outliers")
    own = item.first.get("format", item.first.get("formate"))
    dtype = ATK_DTYPES[word]
    contents = atk_data(item.first.get("range_values"), dtype=dtype, seed=seed, name=name) if data else None
    return Tensor(tuple(shape), dtype, own if isinstance(own, str) and own in FORMATS else form, data=contents)


def _plain(item: _Input, *, seed: int) -> Any:  # noqa: ANN401 - what expressions read: a tensor, numbers, or neither
    """An input as the expressions of the `atk` section see it, whether or not the prototype has it."""
    try:
        if item.first.get("type") == "tensor":
            return _tensor(item, name=item.name, seed=seed, form=_DEFAULT_FORMAT, data=False)
        values = [
            atk_attribute(part.get("range_values"), kind="int", c_type="int64_t", seed=seed, name=item.name)
            for part in item.parts
        ]
    except UnsupportedAtkError:
        return None
    return tuple(values) if item.array else values[0]


def _replacement(
    parameter: Parameter,
    replaced: AtkArgument,
    settled: Mapping[str, Any],
    *,
    target: Target,
    seed: int,
    form: str,
) -> Argument:
    """The argument that the executor makes itself."""
    own: Any = settled.get(parameter.name)
    try:
        if replaced.items is not None:
            return compile_shape(replaced.items)(settled, target)
        if replaced.value is not None:
            value: Any = replaced.value(settled, target)
            return float(value) if parameter.kind == "double" else value if parameter.kind == "bool" else int(value)
        shape = compile_shape(replaced.shape)(settled, target) if replaced.shape is not None else own.shape
        source = settled[replaced.dtype_as] if replaced.dtype_as is not None else own
        fields = {
            key: value(settled, target) if callable(value) else value for key, value in (replaced.data or {}).items()
        }
        return Tensor(tuple(shape), replaced.dtype or source.dtype, form, data=Data(seed=seed, **fields))
    except UNDEFINED:
        raise UnsupportedAtkError(
            f"{parameter.name}: what the executor makes of it does not follow from the case"
        ) from None


def _word(value: object) -> str:
    """A value of the file as a message names it."""
    return printable(value, ECHO_LIMIT) if isinstance(value, str) else quote(value)


def _standard(entry: Mapping[str, Any]) -> str:
    standard = entry.get("standard")
    accuracy = standard.get("acc") if isinstance(standard, Mapping) else None
    if not accuracy:
        return ""
    return f", acc {_word(next(iter(accuracy)) if isinstance(accuracy, Mapping) else accuracy)}"


ATK_DTYPES: Mapping[str, str] = {
    "fp16": "FLOAT16",
    "float16": "FLOAT16",
    "bf16": "BF16",
    "fp32": "FLOAT",
    "float32": "FLOAT",
    "fp64": "DOUBLE",
    "float64": "DOUBLE",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "bool": "BOOL",
    "complex64": "COMPLEX64",
    "complex128": "COMPLEX128",
}
"""aclDataType by the files' own word."""

_FARTHEST = 2.0**62
"""Magnitude of a bound; recipes have bounds of 64 bits."""
_SCALE = 20
"""Bounds that are no integers are taken to the multiples of 2^-20 within them, or finer where none lies there."""


class UnsupportedAtkError(Exception):
    """Why something cannot be carried over."""


def atk_data(ranges: object, *, dtype: str, seed: int, name: str) -> Data:
    """The recipe of a tensor's value range; raises UnsupportedAtkError for a range that no recipe stands for.

    A normal distribution whose mean and deviation are ranges themselves has them drawn by seed and name.
    """
    value = _single(ranges)
    kind = DTYPES[component(dtype)].kind
    if isinstance(value, Mapping):
        mean, deviation = _interval(value.get("mean")), _interval(value.get("std"))
        if value.get("name") != "nd" or mean is None or deviation is None or kind != "float":
            raise UnsupportedAtkError(f"{name}: range_values {_shown(ranges)}: no recipe for it in {dtype}")
        drawn = [_drawn(bounds, seed=seed, stream=f"{name}/{word}") for bounds, word in ((mean, "m"), (deviation, "s"))]
        return Data(recipe="normal", seed=seed, mean=drawn[0], std=drawn[1])
    if dtype in COMPONENTS and _interval(value) is None:
        raise UnsupportedAtkError(
            f"{name}: range_values {_shown(ranges)}: whether re and im are both meant is not known"
        )
    if kind == "bool" and (truth := _truth(value)) is not None:
        return Data(recipe="constant", mean=float(truth))
    if isinstance(value, str) and value in NON_FINITE:
        if kind != "float":
            raise UnsupportedAtkError(f"{name}: {dtype} cannot hold {value}")
        return Data(recipe="constant", mean=NON_FINITE[value])
    if isinstance(value, (bool, int, float)):
        return Data(recipe="constant", mean=_finite(value, name))
    bounds = _interval(value)
    if bounds is None:
        raise UnsupportedAtkError(f"{name}: range_values {_shown(ranges)}: no recipe for it")
    if max(map(abs, bounds)) > _FARTHEST:
        raise UnsupportedAtkError(f"{name}: range_values {_shown(ranges)}: no recipe reaches so far")
    return _uniform(bounds, kind=kind, seed=seed)


def _uniform(bounds: tuple[float, float], *, kind: str, seed: int) -> Data:
    low, high = bounds
    if kind != "float":
        return Data(recipe="integers", seed=seed, low=math.ceil(low), high=max(math.floor(high), math.ceil(low)))
    if low.is_integer() and high.is_integer():
        return Data(recipe="uniform", seed=seed, low=int(low), high=int(high))
    scale = _SCALE
    while (least := math.ceil(low * 2.0**scale)) >= (most := math.floor(high * 2.0**scale)) and scale < 60:
        scale += 10
    while max(-least, most) >= _FARTHEST:
        scale -= 10
        least, most = math.ceil(low * 2.0**scale), math.floor(high * 2.0**scale)
    return Data(recipe="uniform", seed=seed, low=least, high=max(most, least), exponent=-scale)


def atk_attribute(ranges: object, *, kind: str, c_type: str, seed: int, name: str) -> int | bool | float:
    """An attribute's value; of a range, one drawn by seed and name. Raises UnsupportedAtkError for what has none.

    A negative number for an unsigned parameter, and any number for a `bool`, become what C converts them to.
    """
    value = _single(ranges)
    if (bounds := _interval(value)) is not None:
        drawn = _drawn(bounds, seed=seed, stream=name)
        value = drawn if kind == "double" else math.floor(drawn)
    if kind == "bool" and (truth := _truth(value)) is not None:
        return truth
    if (
        kind == "int"
        and isinstance(value, (int, float))
        and not isinstance(value, bool)
        and _double(value).is_integer()
    ):
        return int(value) % 2**64 if c_type == "uint64_t" else int(value)
    if kind == "double" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return _finite(value, name)
    if kind == "double" and isinstance(value, str) and value in NON_FINITE:
        return NON_FINITE[value]
    raise UnsupportedAtkError(f"{name}: range_values {_shown(ranges)}: no value for the C type {c_type}")


def _truth(value: object) -> bool | None:
    """What C makes of a number in a `bool`: false of zero alone, so that a nan is true; None where it is no number."""
    if isinstance(value, str):
        value = NON_FINITE.get(value)
    return value != 0 if isinstance(value, (bool, int, float)) else None


def _finite(value: float, name: str) -> float:
    number = _double(value)
    if math.isinf(number):
        raise UnsupportedAtkError(f"{name}: range_values {quote(value)}: larger than any double")
    return number


def _single(ranges: object) -> object:
    """What a list of one stands for."""
    return ranges[0] if isinstance(ranges, list) and len(ranges) == 1 else ranges


def _interval(value: object) -> tuple[float, float] | None:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        return None
    numbers: list[Any] = list(value)
    if not all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers):
        return None
    low, high = (_double(number) for number in numbers)
    return (low, high) if math.isfinite(low) and math.isfinite(high) and low <= high else None


def _double(number: float) -> float:
    """A number as a double; one beyond all doubles is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _drawn(bounds: tuple[float, float], *, seed: int, stream: str) -> float:
    """A number of the interval, the same for the same seed and stream."""
    word: int = stream_words(seed, f"atk/{stream}", 1).tolist()[0]
    low, high = bounds
    number: float = low + (high - low) * (word >> 11) / 2.0**53
    return min(number, high)


def _shown(ranges: object) -> str:
    return quote(ranges, 60)
