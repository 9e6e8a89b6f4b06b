"""The judge's side of a file with modules: a confined process that makes backward passes."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.sandbox import candidate_program, module_program
from aclnn_cts.sandbox.arena import Arena
from aclnn_cts.sandbox.candidate_host import CPU_SECONDS, LIMITS
from aclnn_cts.sandbox.child import Child, ChildEnd
from aclnn_cts.sandbox.confinement import ConfinementPlan
from aclnn_cts.sandbox.visible_files import visible_files_of

ROOM = 1 << 28
"""Bytes for the arrays of one backward pass."""
_OPEN_SECONDS = 60.0
"""Until the process has imported what the file needs; torch alone takes seconds."""
_MOST_RANK = 16
_IMPORTS = re.compile(r"^from (?:__future__|aclnn_cts|collections|typing)[^\n]*\n", re.MULTILINE)


class _Place(msgspec.Struct, frozen=True):
    offset: int
    shape: tuple[int, ...]
    dtype: str


class _Opened(msgspec.Struct, frozen=True):
    missing: tuple[str, ...]


class _Answer(msgspec.Struct, frozen=True):
    ended: str
    message: str = ""
    arrays: dict[str, _Place] = {}
    values: dict[str, Any] = {}


class BackwardPass(msgspec.Struct, frozen=True, kw_only=True):
    """What a module made of its inputs: arrays by name, as `module_program` has them."""

    arrays: dict[str, Any]
    values: dict[str, Any]


class ModuleProcess:
    """A confined process with a file's module; a context manager."""

    def __init__(self, file: Path, *, seconds: float, memory_bytes: int) -> None:
        """Raises UsageError for a file that cannot be read, HarnessError where no process can be started."""
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file}: cannot be read: {error}; expected a Python file with ModelNew") from error
        self._arena = Arena()
        self._block = self._arena.lend(ROOM)
        self._seconds = seconds
        path = file.resolve()
        view = visible_files_of(path.parent)
        plan = ConfinementPlan(
            hidden=view.hidden, kept=view.kept, limits={**LIMITS, "CPU": CPU_SECONDS}, program=_program()
        )
        self._child = Child(self._arena, memory_bytes=memory_bytes, plan=plan.to_json())
        first = {"module": file.stem, "function": "", "file": str(path), "text": text, "path": view.path, "names": {}}
        opened = self._child.send(msgspec.json.encode(first), seconds=_OPEN_SECONDS) or self._child.receive(
            seconds=_OPEN_SECONDS
        )
        if isinstance(opened, ChildEnd):
            self.close()
            raise HarnessError(f"the process of a candidate could not be started: {opened.message}")
        self.missing = msgspec.json.decode(opened, type=_Opened).missing
        """What the system did not allow of the confinement."""

    def __enter__(self) -> ModuleProcess:  # noqa: PYI034 - Python 3.10 has no Self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._child.kill()

    def backward(self, seed: int) -> BackwardPass | ChildEnd:
        """One backward pass with inputs of a seed; or how it ended without one."""
        base = self._arena.locate(self._block)
        call = {"seed": seed, "base": base, "memory": base + ROOM}
        seconds = self._seconds
        reply = self._child.send(msgspec.json.encode(call), seconds=seconds) or self._child.receive(seconds=seconds)
        if isinstance(reply, ChildEnd):
            return reply
        try:
            answer = msgspec.json.decode(reply, type=_Answer)
            if answer.ended == CallEnd.INEXPRESSIBLE:
                return ChildEnd(ended=CallEnd.INEXPRESSIBLE, message=answer.message[:2000])
            if answer.ended != "returned":
                return ChildEnd(ended=CallEnd.RAISED, message=answer.message[:2000] or "it raised")
            arrays = {name: self._array(place) for name, place in answer.arrays.items()}
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            return ChildEnd(ended=CallEnd.RAISED, message=f"its answer is none: {error}")
        return BackwardPass(arrays=arrays, values=answer.values)

    def _array(self, place: _Place) -> NDArray[Any]:
        """A copy of an array, whose place is checked: the process may say anything."""
        dtype = np.dtype(_dtype(place.dtype))
        if len(place.shape) > _MOST_RANK or min(place.shape, default=1) < 0:
            raise ValueError(f"shape {place.shape}")
        size = math.prod(place.shape) * dtype.itemsize
        if place.offset < 0 or place.offset + size > ROOM:
            raise ValueError(f"an array of {size} bytes at {place.offset}")
        found: NDArray[Any] = self._block[place.offset : place.offset + size].copy().view(dtype).reshape(place.shape)
        return found


def _dtype(name: str) -> Any:  # noqa: ANN401 - what NumPy takes for a dtype
    import ml_dtypes  # noqa: PLC0415 - of this alone

    return getattr(ml_dtypes, name, name)


def _program() -> str:
    """The text that is executed: the second program behind the first, without what imports ours."""
    first, second = (
        Path(item.__file__ or "").read_text(encoding="utf-8") for item in (candidate_program, module_program)
    )
    return first.partition('\nif __name__ == "__main__":')[0] + "\n\n" + _IMPORTS.sub("", second)
