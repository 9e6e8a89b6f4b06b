"""Built specs as plain data beside their files, so that a process that needs one neither parses nor checks YAML.

As with Python's bytecode, what is kept is made again wherever anything that it was made from has changed: a file of the
specs, or the code that builds them. It is data and no code, and what is damaged counts as not there.
A process whose code has changed on the disk since it began neither reads nor keeps any.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.core.case import Argument
from aclnn_cts.speclang import kinds, kinds_data, kinds_dtype, kinds_number, kinds_size, kinds_tensor, model
from aclnn_cts.speclang.evaluate import ConstraintTests
from aclnn_cts.speclang.evaluator import Evaluator
from aclnn_cts.speclang.kinds_tensor import CallPointerRule
from aclnn_cts.speclang.model import Clause, Example, Spec
from aclnn_cts.speclang.package import package_folder
from aclnn_cts.speclang.shape import ShapeExpression, parse_shape
from aclnn_cts.speclang.spec_claims import SpecClaim

_STARTED = time.time()
_FOLDER = "compiled"
_SHARED = ("interface.yaml", "products.yaml", "wording.yaml", "families/*.yaml")
"""What a spec is made from beside its own file."""
_DIGEST = 32
_WINDOW = 1 << zlib.MAX_WBITS
"""Bytes of a dictionary that zlib looks at."""
_LARGEST = 1 << 24
"""Bytes of a built spec."""
_EVALUATOR = 1
"""The code of the extension that holds an expression."""
_CLASS = "@"
"""The key that holds the class of an object; no name in a spec has this form."""
_FROM_FILE = ("path", "sha256", "text", "tests", "pointers")
"""Fields of a spec that its file or its constraints give."""


def read_compiled(path: Path, text: str, *, name: str) -> Spec | None:
    """The spec that was built from a file of the package; None where none is kept or what it was built from changed."""
    if not _is_up_to_date():
        return None
    try:
        kept = _kept(path).read_bytes()
    except OSError:
        return None
    digests, content = kept[: 2 * _DIGEST], kept[2 * _DIGEST :]
    if digests != _made_from(text) + hashlib.sha256(content).digest():
        return None
    unpacked = zlib.decompressobj(zdict=_dictionary(text)).decompress(content, _LARGEST)
    written = msgspec.msgpack.decode(unpacked, strict=False, ext_hook=_evaluator)
    given = {
        key: value if key in ("clauses", "claims", "precision") else _object(value) for key, value in written.items()
    }
    given["clauses"] = _Clauses(given["clauses"], tuple[Clause, ...])
    given["claims"] = _Claims(given["claims"], dict[str, SpecClaim])
    given["precision"] = tuple(given.get("precision", ()))
    constraints = given["constraints"]
    return Spec(
        **given,
        path=name,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
        tests=ConstraintTests(constraints, given["products"]),
        pointers=tuple((item.rule.of, item) for item in constraints if isinstance(item.rule, CallPointerRule)),
    )


def write_compiled(path: Path, spec: Spec) -> None:
    """Keep the spec of a file of the package; OSError where its folder cannot be written."""
    if not _is_up_to_date():
        return
    given = {key: value for key, value in _given_fields(spec).items() if key not in _FROM_FILE}
    given["clauses"] = msgspec.msgpack.encode([_given_fields(clause) for clause in spec.clauses])
    given["claims"] = msgspec.msgpack.encode({address: _given_fields(claim) for address, claim in spec.claims.items()})
    packer = zlib.compressobj(level=9, zdict=_dictionary(spec.text))
    content = packer.compress(msgspec.msgpack.encode(given)) + packer.flush()
    kept = _kept(path)
    kept.parent.mkdir(exist_ok=True)
    unfinished = kept.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(_made_from(spec.text) + hashlib.sha256(content).digest() + content)
    unfinished.replace(kept)


def _given_fields(value: Any) -> dict[str, Any]:  # noqa: ANN401 - an object of any class
    """The fields that an object was made with, as plain data, without those that have their default."""
    return {
        item.name: _plain(found)
        for item in fields(value)
        if item.init and (found := getattr(value, item.name)) != item.default
    }


def _plain(value: Any) -> object:  # noqa: ANN401 - whatever a spec holds
    if isinstance(value, Evaluator):
        return msgspec.msgpack.Ext(_EVALUATOR, msgspec.msgpack.encode(value.text))
    if isinstance(value, ShapeExpression):
        return {_CLASS: "ShapeExpression", "text": value.text}
    if isinstance(value, Example):
        arguments = msgspec.msgpack.encode(value.arguments)
        return {_CLASS: "Example", **_given_fields(value), "arguments": {_CLASS: "arguments", "content": arguments}}
    if is_dataclass(value):
        return {_CLASS: type(value).__name__, **_given_fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return {_CLASS: "frozenset", "items": sorted(value)}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value


class _Later:
    """A part of a spec that is made from its data when it is first read: to judge a call takes none."""

    def __init__(self, content: bytes, form: Any) -> None:  # noqa: ANN401 - a type
        self._content = content
        self._form = form

    @functools.cached_property
    def _made(self) -> Any:  # noqa: ANN401 - of that type
        return msgspec.msgpack.decode(self._content, type=self._form, ext_hook=_evaluator)

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - as its kind of collection has it
        return self._made[key]


class _Clauses(_Later, Sequence[Clause]):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self[:] == tuple(other)

    def __hash__(self) -> int:
        return hash(self._content)


class _Claims(_Later, Mapping[str, SpecClaim]):
    def __iter__(self) -> Iterator[str]:
        return iter(self._made)


def _evaluator(code: int, content: memoryview) -> Evaluator:
    """The one extension."""
    del code
    return Evaluator(msgspec.msgpack.decode(content))


def _object(value: Any) -> Any:  # noqa: ANN401 - whatever a spec holds
    if type(value) is list:
        return tuple([item if type(item) is str else _object(item) for item in value])
    if type(value) is not dict:
        return value
    name = value.pop(_CLASS, None)
    made = {key: item if type(item) is str else _object(item) for key, item in value.items()}
    return made if name is None else _MADE_BY[name](**made)


def _kept(path: Path) -> Path:
    folder = package_folder()
    return folder / _FOLDER / f"{'.'.join(path.relative_to(folder).with_suffix('').parts)}.msgpack"


def _dictionary(text: str) -> bytes:
    """What a built spec has much of, so that a wheel holds it once: the stock sentences and the spec's own text."""
    return (_stock_sentences() + text.encode())[-_WINDOW:]


@functools.cache
def _stock_sentences() -> bytes:
    return (package_folder() / "wording.yaml").read_bytes()


def _made_from(text: str) -> bytes:
    return hashlib.sha256(_shared() + text.encode()).digest()


@functools.cache
def _sources() -> Sequence[Path]:
    packages = Path(__file__).parent, Path(__file__).parent.parent / "core"
    files = [path for folder in packages for path in folder.iterdir() if path.suffix in (".py", ".yaml")]
    return sorted([*files, *(path for pattern in _SHARED for path in package_folder().glob(pattern))])


@functools.cache
def _is_up_to_date() -> bool:
    """Whether the code of this process is that on the disk; asked once, as `_shared` is."""
    return all(path.stat().st_mtime < _STARTED for path in _sources())


@functools.cache
def _shared() -> bytes:
    """The digest of the code and the files from which all specs are made."""
    digest = hashlib.sha256()
    for path in _sources():
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.digest()


def _frozenset(items: tuple[str, ...]) -> frozenset[str]:
    return frozenset(items)


def _arguments(content: bytes) -> Mapping[str, Argument]:
    return msgspec.msgpack.decode(content, type=dict[str, Argument])


_MADE_BY: Mapping[str, Callable[..., Any]] = {
    **{
        name: item
        for module in (model, kinds, kinds_data, kinds_dtype, kinds_number, kinds_size, kinds_tensor)
        for name, item in vars(module).items()
        if isinstance(item, type) and is_dataclass(item)
    },
    "ShapeExpression": parse_shape,
    "arguments": _arguments,
    "frozenset": _frozenset,
}
"""What makes an object of a class from its fields."""
