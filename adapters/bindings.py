"""Bindings: which function of a library computes an operator, and from which of its parameters. Data, never code.

The vocabulary is closed: names of parameters, literal values, names of the library's functions, and the conversions of
`Conversion`. What a name of a function leads to is the library's to decide (`adapters/torch_bindings.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from aclnn_cts.core.case_json import canonical_json
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.printable import quote
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.shared_schema import FileEntry
from aclnn_cts.speclang.yaml_file import YamlFile, read_yaml

_IDENTIFIER = "^[A-Za-z_][A-Za-z_0-9]*$"
_FUNCTION = r"^[A-Za-z_][A-Za-z_0-9.]*$"
_ITEMS = 64
"""Items of a list, and operands of anything, that a file may write."""
_DEPTH = 12
"""Values within values."""
_SHIPPED = "library_bindings"
"""The folder beside this file with a folder for each library."""


class BindingForm(str, Enum):
    """How a binding reaches its gradients."""

    DIRECT = "direct"
    """Functions of the library compute them."""
    AUTOGRAD = "autograd"
    """The library differentiates a forward pass."""
    FUNCTION = "function"
    """A Python function of ours, by its name."""


class Conversion(str, Enum):
    """What may be made of a value on its way to a function."""

    SHAPE = "shape"
    """`{shape: x}`: the sizes of a tensor."""
    SIZE = "size"
    """`{size: [x, axis]}`: one of them."""
    NUMEL = "numel"
    """`{numel: x}`: how many elements a tensor has."""
    DTYPE = "dtype"
    """`{dtype: x}`: the dtype of a tensor."""
    PROMOTED = "promoted"
    """`{promoted: [x, y]}`: the dtype that tensors promote to, whatever their numbers of dimensions are."""
    FORMAT = "format"
    """`{format: x}`: the format of a tensor that is a parameter, as a word to choose by."""
    CAST = "cast"
    """`{cast: [x, INT32, INT64]}`: a tensor in the last dtype, unless it has one of them already."""
    BITS = "bits"
    """`{bits: [mask, x]}`: a packed bit mask, lowest bit first, as a BOOL tensor of the shape of x."""
    ZEROS = "zeros"
    """`{zeros: x}`: a tensor like x, of zeros. x may be an output."""
    ITEM = "item"
    """`{item: [xs, n]}`: an item of several results, or of an array."""
    DEFAULT = "default"
    """`{default: [x, y]}`: x, or y where x is a null pointer."""
    NONZERO = "nonzero"
    """`{nonzero: n}`: n, or null where it is 0."""
    SIGNED = "signed"
    """`{signed: n}`: an unsigned number as a signed one; -1 from 2^63 on."""
    NEGATIVE = "negative"
    """`{negative: n}`: -n."""


_OPERANDS: Mapping[Conversion, tuple[int, int]] = MappingProxyType(
    {
        Conversion.SIZE: (2, 2),
        Conversion.PROMOTED: (2, 8),
        Conversion.CAST: (2, 8),
        Conversion.BITS: (2, 2),
        Conversion.ITEM: (2, 2),
        Conversion.DEFAULT: (2, 2),
    }
)
"""Fewest and most; one where nothing is said."""

_Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter of the operator, or what `let` names so."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a word, true, false or null."""

    value: int | float | str | None


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Convert:
    """A conversion of its operands."""

    kind: Conversion
    operands: tuple[Value, ...]
    path: _Path = field(default=(), compare=False)
    """Where it is in its file."""


@dataclass(frozen=True, slots=True)
class Choose:
    """One of several values, by the text of another one: `none`, `0`, `true`."""

    by: Value
    options: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A function of the library and its arguments by name."""

    function: str
    arguments: Mapping[str, Value]
    path: _Path
    """Its place in the file."""


Value: TypeAlias = Name | Literal | Items | Convert | Choose | LibraryCall


@dataclass(frozen=True, slots=True)
class CalledAs:
    """A call of the library, whose results are the outputs in order, as a training makes it."""

    call: LibraryCall
    unused: Mapping[str, object]
    """Parameters that the call does without, each with the value that it has then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One operator's binding."""

    operator: str
    form: BindingForm
    file: YamlFile
    outputs: Mapping[str, Value | None]
    """By output parameter: its value; of the autograd form the name that the gradient is for. None: by `call`."""
    let: Mapping[str, Value] = field(default_factory=dict)
    """Values by name, in order; one may read those before it."""
    call: LibraryCall | None = None
    """Of the direct form: the function whose results are the outputs, in order."""
    gradients: Mapping[str, Value] = field(default_factory=dict)
    """Of the autograd form: by the name of a result of the forward pass, the gradient that it is given."""
    function: str = ""
    like: tuple[Value, ...] = ()
    """Of the direct form, what the result is like, so that a function can write it into memory of that form: tensors
    whose promoted dtype it has, and whose common shape where `shape` says no other."""
    shape: Value | None = None
    cast: bool = False
    """Results are cast to the dtypes of the outputs."""
    wanted: tuple[Value, ...] = ()
    """By output: whether it is asked for. Empty: all are."""
    unused: Mapping[str, tuple[object, ...] | None] = field(default_factory=dict)
    """Parameters that the library does without, and the values that they may have; None: any."""
    recomputed: tuple[str, ...] = ()
    """Tensors of the forward pass that the library computes again from its inputs."""
    called_as: CalledAs | None = None
    """The call of a training that computes the operator, where the binding does not say so itself."""

    @property
    def path(self) -> _Path:
        return ("bindings", self.operator)

    @property
    def sha256(self) -> str:
        """The start of the SHA-256 of the entry, whatever its order, layout and comments."""
        return hashlib.sha256(canonical_json(self.file.content["bindings"][self.operator])).hexdigest()[:16]

    @property
    def where(self) -> str:
        """`file:line: bindings.OPERATOR`."""
        return self.at(self.path)

    def at(self, path: _Path) -> str:
        """A place in its file, with the line."""
        return f"{self.file.location_of(path)}: {'.'.join(map(str, path))}"

    @property
    def filled(self) -> list[str]:
        """Its outputs; a result that is none has its number for a name."""
        return [name for name in self.outputs if not name.isdecimal()]


_Word = Annotated[str, Meta(pattern=_IDENTIFIER)]
_Function = Annotated[str, Meta(pattern=_FUNCTION)]
_Operator = Annotated[str, Meta(pattern="^aclnn[A-Za-z0-9]+$")]


class _ResultModel(FileEntry, frozen=True, kw_only=True):
    like: Any
    shape: Any = None


class _CalledAsModel(FileEntry, frozen=True, kw_only=True):
    call: _Function
    arguments: dict[_Word, Any]
    unused: dict[_Word, Any] = msgspec.field(default_factory=dict)


class _BindingModel(FileEntry, frozen=True, kw_only=True):
    let: dict[_Word, Any] = msgspec.field(default_factory=dict)
    call: _Function | None = None
    arguments: dict[_Word, Any] | None = None
    gradients: dict[_Word, Any] | None = None
    function: _Word | None = None
    outputs: Any
    result: _ResultModel | None = None
    cast: bool = False
    wanted: Any = None
    unused: dict[_Word, Any] = msgspec.field(default_factory=dict)
    recomputed: tuple[_Word, ...] = ()
    called_as: _CalledAsModel | None = None


class _FileModel(FileEntry, frozen=True, kw_only=True):
    bindings: dict[_Operator, _BindingModel]


def shipped_bindings(library: str) -> Mapping[str, Binding]:
    """The bindings of the package on a library, which lie in a file for each operator."""
    found: dict[str, Binding] = {}
    for path in sorted((Path(__file__).resolve().parent / _SHIPPED / library).glob("*.yaml")):
        found |= read_bindings(path, name=f"adapters/{_SHIPPED}/{library}/{path.name}")
    return MappingProxyType(found)


def read_bindings(path: Path, *, name: str | None = None) -> Mapping[str, Binding]:
    """The bindings of a file by operator. Raises UsageError with every mistake, its line and its place."""
    file = read_yaml(path, name=name)
    problems = Problems(file)
    found: dict[str, Binding] = {}
    model = problems.read(_FileModel, file.content)
    for operator, entry in model.bindings.items() if model is not None else ():
        found[operator] = _Reader(problems, ("bindings", operator)).binding(operator, entry)
    if problems.messages:
        raise UsageError("\n".join(problems.sorted()))
    return MappingProxyType(found)


def read_own_bindings(files: Sequence[Path], specs: Mapping[str, Spec]) -> tuple[dict[str, Binding], dict[str, str]]:
    """The bindings of a user's files, held to the specs of their operators; and what a manifest records of the files.

    Raises UsageError with every mistake of names, and for an operator that two files bind.
    """
    found: dict[str, Binding] = {}
    for path in files:
        for operator, binding in read_bindings(path).items():
            if operator in found:
                raise UsageError(f"{binding.where}: is bound by {found[operator].where} too; remove one of them")
            found[operator] = binding
    mistakes = [
        message
        for operator, binding in found.items()
        if operator in specs
        for message in check_spec(binding, specs[operator])
    ]
    if mistakes:
        raise UsageError("\n".join(mistakes))
    if not files:
        return {}, {}
    texts = {binding.file.name: binding.file.text for binding in found.values()}
    digest = hashlib.sha256("\0".join(texts.values()).encode())
    facts = {"bindings": ", ".join(map(str, files)), "bindings_sha256": digest.hexdigest()}
    return found, facts | {f"binding.{operator}": binding.sha256 for operator, binding in found.items()}


class _Reader:
    """Makes the values of one entry, and records its mistakes."""

    def __init__(self, problems: Problems, path: _Path) -> None:
        self._problems = problems
        self._path = path

    def binding(self, operator: str, entry: _BindingModel) -> Binding:
        path = self._path
        let = {name: self.value(raw, (*path, "let", name)) for name, raw in entry.let.items()}
        form = self._form(entry)
        call = None
        if entry.call is not None:
            call = LibraryCall(
                entry.call, self._arguments(entry.arguments or {}, (*path, "arguments")), (*path, "call")
            )
        elif entry.arguments is not None:
            self._add((*path, "arguments"), "are those of `call`, which is missing; add it")
        gradients = {name: self.value(raw, (*path, "gradients", name)) for name, raw in (entry.gradients or {}).items()}
        for name in gradients:
            if name not in let:
                self._add(
                    (*path, "gradients", name), f"{quote(name)}; expected a name of `let`{did_you_mean(name, let)}"
                )
        called_as = None
        if (called := entry.called_as) is not None:
            place = (*path, "called_as")
            call_as = LibraryCall(
                called.call, self._arguments(called.arguments, (*place, "arguments")), (*place, "call")
            )
            called_as = CalledAs(call_as, called.unused)
        result = entry.result or _ResultModel(like=None)
        if entry.result is not None and call is None:
            self._add((*path, "result"), "is that of `call`, which is missing; remove it")
        return Binding(
            operator=operator,
            form=form,
            file=self._problems.file,
            outputs=self._outputs(entry.outputs, named=entry.call is None and entry.function is None),
            let=MappingProxyType(let),
            call=call,
            gradients=MappingProxyType(gradients),
            function=entry.function or "",
            like=self._list(result.like, (*path, "result", "like")),
            shape=None if result.shape is None else self.value(result.shape, (*path, "result", "shape")),
            cast=entry.cast,
            wanted=self._list(entry.wanted, (*path, "wanted")),
            unused=MappingProxyType({name: self._values(name, raw) for name, raw in entry.unused.items()}),
            recomputed=tuple(entry.recomputed),
            called_as=called_as,
        )

    def _form(self, entry: _BindingModel) -> BindingForm:
        keys = {"call": entry.call, "gradients": entry.gradients, "function": entry.function}
        given = [key for key, value in keys.items() if value is not None]
        if len(given) > 1 or (not given and not entry.let):
            self._add(
                self._path, f"has {' and '.join(given) or 'no way to a result'}; expected one of {', '.join(keys)}"
            )
        if entry.function is not None:
            return BindingForm.FUNCTION
        return BindingForm.DIRECT if entry.gradients is None else BindingForm.AUTOGRAD

    def _outputs(self, raw: object, *, named: bool) -> Mapping[str, Value | None]:
        path = (*self._path, "outputs")
        if not named and isinstance(raw, list) and raw and all(item is None or _is_word(item) for item in raw):
            for name in sorted({item for item in raw if item is not None and raw.count(item) > 1}):
                self._add(path, f"{name} is the output of several results; keep one")
            # A result that is no output keeps its place.
            return MappingProxyType({str(name or number): None for number, name in enumerate(raw)})
        if named and isinstance(raw, dict) and raw and all(_is_word(name) for name in raw):
            return MappingProxyType({name: self.value(item, (*path, name)) for name, item in raw.items()})
        form = "a mapping of outputs to values" if named else "a list of outputs, one for each result"
        self._add(path, f"{quote(raw)}; expected {form}")
        return {}

    def _list(self, raw: object, path: _Path) -> tuple[Value, ...]:
        if raw is None:
            return ()
        items = raw if isinstance(raw, list) else [raw]
        return tuple(self.value(item, (*path, number)) for number, item in enumerate(items))

    def _values(self, name: str, raw: object) -> tuple[object, ...] | None:
        """The values that an unused parameter may have."""
        if raw == "any":
            return None
        if isinstance(raw, list) and raw and all(not isinstance(item, dict) for item in raw):
            return tuple(tuple(item) if isinstance(item, list) else item for item in raw)
        self._add((*self._path, "unused", name), f"{quote(raw)}; expected `any`, or a list of values")
        return None

    def value(self, raw: object, path: _Path, *, depth: int = 0) -> Value:
        """The value that something in the file means; after a mistake, null."""
        if depth > _DEPTH:
            self._add(path, f"values are nested deeper than {_DEPTH} levels; name one under `let`")
            return Literal(None)
        if raw is None or isinstance(raw, (bool, int, float)):
            return Literal(raw)
        if isinstance(raw, str):
            if _is_word(raw):
                return Name(raw)
            self._add(path, f"{quote(raw)}; expected the name of a parameter, or {{text: WORD}} for a word")
        elif isinstance(raw, list):
            if len(raw) <= _ITEMS:
                return Items(tuple(self.value(item, (*path, n), depth=depth + 1) for n, item in enumerate(raw)))
            self._add(path, f"{len(raw)} items; expected at most {_ITEMS}")
        elif isinstance(raw, dict):
            return self._mapping(raw, path, depth=depth + 1)
        return Literal(None)

    def _mapping(self, raw: Mapping[str, object], path: _Path, *, depth: int) -> Value:
        if set(raw) == {"text"} and isinstance(raw["text"], str):
            return Literal(raw["text"])
        if set(raw) == {"call", "arguments"} and isinstance(raw["arguments"], dict):
            function = raw["call"]
            if isinstance(function, str) and all(_is_word(part) for part in function.split(".")):
                where = (*path, "call")
                return LibraryCall(
                    function, self._arguments(raw["arguments"], (*path, "arguments"), depth=depth), where
                )
            self._add((*path, "call"), f"{quote(function)}; expected the name of a function")
            return Literal(None)
        if set(raw) == {"choose", "from"}:
            return self._choose(raw["choose"], raw["from"], path, depth=depth)
        known = {kind.value: kind for kind in Conversion}
        if len(raw) == 1 and (word := next(iter(raw))) in known:
            return self._convert(known[word], raw[word], (*path, word), depth=depth)
        words = [*known, "text", "call", "choose"]
        given = ", ".join(map(quote, list(raw)[:4])) or "an empty mapping"
        self._add(path, f"{given}; expected one of {', '.join(words)}{did_you_mean(str(next(iter(raw), '')), words)}")
        return Literal(None)

    def _convert(self, kind: Conversion, raw: object, path: _Path, *, depth: int) -> Value:
        operands = raw if isinstance(raw, list) else [raw]
        least, most = _OPERANDS.get(kind, (1, 1))
        if not least <= len(operands) <= most:
            expected = least if least == most else f"{least} to {most}"
            self._add(path, f"{len(operands)} operands; expected {expected}")
            return Literal(None)
        made = []
        for number, operand in enumerate(operands):
            place = (*path, number) if isinstance(raw, list) else path
            is_dtype = kind is Conversion.CAST and number and isinstance(operand, str)
            if is_dtype and not self._problems.known(str(operand), DTYPES, place, "dtype"):
                return Literal(None)
            if kind is Conversion.FORMAT and not (isinstance(operand, str) and _is_word(operand)):
                self._add(place, f"{quote(operand)}; expected the name of a parameter")
                return Literal(None)
            made.append(Literal(str(operand)) if is_dtype else self.value(operand, place, depth=depth))
        return Convert(kind, tuple(made), path)

    def _choose(self, by: object, raw: object, path: _Path, *, depth: int) -> Value:
        options: Iterable[tuple[object, object]] = ()
        if isinstance(raw, list):
            options = enumerate(raw)
        elif isinstance(raw, dict):
            options = raw.items()
        else:
            self._add(
                (*path, "from"), f"{quote(raw)}; expected a list of values from 0 on, or a mapping of words to values"
            )
        made = {
            str(key): self.value(option, (*path, "from", key), depth=depth)  # type: ignore[arg-type]  # str or int
            for key, option in options
        }
        return Choose(self.value(by, (*path, "choose"), depth=depth), MappingProxyType(made))

    def _arguments(self, raw: Mapping[Any, object], path: _Path, *, depth: int = 0) -> Mapping[str, Value]:
        return MappingProxyType({str(name): self.value(item, (*path, name), depth=depth) for name, item in raw.items()})

    def _add(self, path: _Path, message: str) -> None:
        self._problems.add(path, f"{'.'.join(map(str, path))}: {message}")


def _is_word(raw: object) -> bool:
    return isinstance(raw, str) and raw.isascii() and raw.isidentifier()


def _parts(value: Value) -> Iterator[Value]:
    """A value and all values in it."""
    yield value
    inner: Sequence[Value] = ()
    if isinstance(value, Items):
        inner = value.items
    elif isinstance(value, Convert):
        inner = value.operands
    elif isinstance(value, Choose):
        inner = (value.by, *value.options.values())
    elif isinstance(value, LibraryCall):
        inner = tuple(value.arguments.values())
    for item in inner:
        yield from _parts(item)


def _values_of(binding: Binding) -> Iterator[Value]:
    """All values that a binding writes, each with those in it."""
    tops: list[Value] = [*binding.let.values(), *binding.gradients.values(), *binding.wanted]
    tops += [value for value in binding.outputs.values() if value is not None]
    if binding.call is not None:
        tops.append(binding.call)
    for top in tops:
        yield from _parts(top)


def parameters_of(binding: Binding) -> frozenset[str]:
    """The parameters of the operator that a binding names, wherever it does."""
    used = {value.name for value in _values_of(binding) if isinstance(value, Name)} - set(binding.let)
    return frozenset(used | set(binding.filled) | set(binding.unused) | set(binding.recomputed))


def check_names(binding: Binding, *, parameters: Sequence[str], outputs: Sequence[str] | None = None) -> list[str]:
    """What is wrong with a binding's names, held to the operator's parameters: each has its place in the binding.

    `outputs`: those of the parameters that are outputs, where that is known.
    """
    let = list(binding.let)
    placed, filled = parameters_of(binding), set(binding.filled)
    if (called := binding.called_as) is not None:
        placed |= {value.name for value in _parts(called.call) if isinstance(value, Name)} | set(called.unused)
    found = [
        f"{binding.where}: {quote(name)} is no parameter of the operator and no name of `let`; expected any of "
        f"{', '.join([*parameters, *let])}{did_you_mean(name, [*parameters, *let])}"
        for name in sorted(placed - set(parameters))
    ]
    if binding.form is not BindingForm.FUNCTION:
        found += [
            f"{binding.where}: the parameter {name} has no place; use it, or name it under `unused` or `recomputed`"
            for name in parameters
            if name not in placed
        ]
    if outputs is not None:
        found += [
            f"{binding.where}.outputs: {name} is no output of the operator; expected {', '.join(outputs)}"
            for name in sorted((filled & set(parameters)) - set(outputs))
        ]
        named = filled | set(binding.unused) | set(binding.recomputed)
        found += [f"{binding.where}.outputs: {name} is missing; add it" for name in outputs if name not in named]
    return found


def check_spec(binding: Binding, spec: Spec) -> list[str]:
    """`check_names` against a spec."""
    outputs = [item.name for item in spec.parameters if item.is_output]
    return check_names(binding, parameters=[item.name for item in spec.parameters], outputs=outputs)
