"""Calls of a training as files: one for each call, with its arrays, readable without torch.

    calls/000120-0003.npz    `call` (JSON, `RecordedCall`) and the bytes of each array

Nothing is pickled. What is read is bounded in size and held to the struct.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.candidates.check import CheckResult, check
from aclnn_cts.core.dtypes import acl_name, numpy_dtype
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.verdict import RunVerdict

_CALL = "call"
_MOST_BYTES = 1 << 31
"""Of one file: more than any call that `watch` keeps."""
FORMAT = "aclnn-cts/recorded-call/1"


class ArrayFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An array whose bytes lie beside it, or are left out."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str = ""
    """Of its bytes, where they are left out."""


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A backward call of a training."""

    format: str = FORMAT
    operator: str
    function: str
    """Of the framework."""
    step: int
    number: int
    """Of the call within its step, from 1 on."""
    module: str = ""
    """The path of the module whose backward pass made it; empty where it is not known."""
    attributes: dict[str, Any] = {}
    inputs: dict[str, ArrayFacts] = {}
    outputs: dict[str, ArrayFacts] = {}

    @property
    def place(self) -> str:
        """Where it was made, for a person."""
        where = f" in {self.module}" if self.module else ""
        return f"step {self.step}, call {self.number}{where}: {self.operator}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallArrays:
    """A call with its arrays."""

    call: RecordedCall
    inputs: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, NDArray[Any]]

    def check(self) -> CheckResult:
        """Compare it with its document; inconclusive where arrays were left out, or arguments fit no document."""
        missing = [*self.call.inputs.keys() - self.inputs.keys(), *self.call.outputs.keys() - self.outputs.keys()]
        if missing:
            return inconclusive_check(self.call, f"{missing[0]} was too large to be kept")
        try:
            return check(self.call.operator, {**self.call.attributes, **self.inputs}, self.outputs)
        except UsageError as error:
            return inconclusive_check(self.call, str(error))


def inconclusive_check(call: RecordedCall, reason: str) -> CheckResult:
    """The check of a call that nobody can judge."""
    return CheckResult(ok=False, verdict=RunVerdict.INCONCLUSIVE.value, operator=call.operator, reason=reason)


def facts_of(array: NDArray[Any]) -> ArrayFacts:
    """Dtype and shape of an array whose bytes are kept."""
    return ArrayFacts(dtype=acl_name(array.dtype), shape=array.shape)


def file_name(call: RecordedCall) -> str:
    """The file of a call."""
    return f"{call.step:06d}-{call.number:04d}.npz"


def call_bytes(made: CallArrays) -> bytes:
    """The file's contents."""
    arrays = {_CALL: np.frombuffer(msgspec.json.encode(made.call), np.uint8)}
    for name, array in [*made.inputs.items(), *((f"out/{name}", array) for name, array in made.outputs.items())]:
        arrays[name] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # names are no options of it
    return file.getvalue()


def read_calls(folder: Path) -> Iterator[CallArrays]:
    """The calls of a folder in the order in which they were made. Raises UsageError for what is no such file."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".npz")
    except OSError as error:
        raise UsageError(f"--recorded {folder}: {error.strerror}; expected the folder of a watched training") from error
    if not paths:
        raise UsageError(f"--recorded {folder}: holds no recorded call; expected the folder of a watched training")
    return map(read_call, paths)


def read_call(path: Path) -> CallArrays:
    """One call. Raises UsageError for a file that is damaged, too large or something else."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > _MOST_BYTES:
            raise UsageError(f"{path}: {size:,} bytes; expected at most {_MOST_BYTES:,}")
        with np.load(path, allow_pickle=False) as file:
            call = msgspec.json.decode(file[_CALL].tobytes(), type=RecordedCall)
            inputs = {name: _array(file[name], facts) for name, facts in call.inputs.items() if name in file}
            outputs = {
                name: _array(file[f"out/{name}"], facts)
                for name, facts in call.outputs.items()
                if f"out/{name}" in file
            }
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, msgspec.MsgspecError) as error:
        raise UsageError(f"{path}: is no recorded call: {error}") from error
    if call.format != FORMAT:
        raise UsageError(f"{path}: format: {call.format[:80]!r}; expected {FORMAT}")
    return CallArrays(call=call, inputs=inputs, outputs=outputs)


def _array(data: NDArray[Any], facts: ArrayFacts) -> NDArray[Any]:
    found: NDArray[Any] = data.view(numpy_dtype(facts.dtype)).reshape(facts.shape)
    return found


class CallFolder:
    """The folder that calls are written to."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError where it holds something else."""
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            strange = next((item for item in path.iterdir() if item.suffix != ".npz"), None)
        except OSError as error:
            raise UsageError(f"out {path}: {error.strerror}; expected a folder that can be written") from error
        if strange is not None:
            raise UsageError(f"out {path}: holds {strange.name}; expected an empty folder, or one of recorded calls")

    def write(self, made: CallArrays) -> None:
        """Keep a call. Raises HarnessError where it cannot be written."""
        try:
            (self.path / file_name(made.call)).write_bytes(call_bytes(made))
        except OSError as error:
            raise HarnessError(f"out {self.path}: {error.strerror}") from error
