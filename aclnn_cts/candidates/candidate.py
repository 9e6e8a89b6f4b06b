"""What can be judged, and how it is run: a function in a file or module, a closure, a shared library, an adapter."""

from __future__ import annotations

import inspect
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from aclnn_cts.adapters.protocol import Call, Capabilities
from aclnn_cts.adapters.registry import parse_adapter_word
from aclnn_cts.adapters.results import run_each
from aclnn_cts.candidates.verdict import Isolation
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.core.printable import quote
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.sandbox.candidate_host import NOT_CALLED, CandidateFunction, CandidateHost, output_orders, plain_argument
from aclnn_cts.sandbox.candidate_program import LoadedCandidate, results_by_output, store_results, to_torch
from aclnn_cts.sandbox.host import InProcessHost, SessionHost
from aclnn_cts.sandbox.limits import memory_of_runner
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec

_CANN_HOMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
"""Variables that the toolkit's set_env.sh sets."""

_FEW = 5
"""Functions that a message names."""

_WORDS = "FILE.py:FUNCTION names a function, FILE.so a library"

Candidate: TypeAlias = Callable[..., Any] | str | Path
"""What `judge` takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCandidate:
    """A candidate that is understood, and not opened yet."""

    word: str
    """What it is called in verdicts."""
    isolation: Isolation
    function: CandidateFunction | None = None
    closure: Callable[..., Any] | None = None
    adapter: str = ""
    """The word that opens what is no function."""

    @property
    def is_function(self) -> bool:
        """Whether it is given arrays and has no statuses."""
        return self.function is not None or self.closure is not None

    def expected(self, operator: str) -> str:
        """What a candidate without an operator is expected to have; empty where nobody knows."""
        functions = f"{operator}GetWorkspaceSize and {operator}"
        return f"; expected a library that exports {functions}" if self.word.endswith(".so") else ""

    def open(
        self,
        settings: RunnerSettings,
        specs: Specs,
        *,
        spec: Spec,
        names: Mapping[str, str],
        stops: bool,
        end: float,
    ) -> SessionHost:
        """Open it for calls of an operator; whoever calls closes it. Names and limits are those of `CandidateHost`."""
        if self.closure is not None:
            return InProcessHost(_ClosureSession(self.closure, names, spec, end))
        if self.function is None:
            try:
                return settings.open_host(specs)
            except (HarnessError, UsageError) as error:
                if not self.word.endswith(".so"):
                    raise type(error)(_of_candidate(error)) from error
                reason = str(error).partition("; name the libraries")[0]
                # A CANN installation may lack a device or a library of its own; the software device lacks nothing.
                kind = UsageError if self.adapter.startswith("loopback:") else HarnessError
                raise kind(
                    f"candidate {self.word}: {reason}; expected a library that is linked with all that it calls, "
                    "such as -lascendcl -lnnopbase"
                ) from error
        memory, _ = memory_of_runner(settings.workers, python=True, max_bytes=settings.max_bytes)
        return CandidateHost(
            self.function,
            names=names,
            outputs=tuple(spec.outputs),
            computed=spec.computed_outputs,
            target=settings.target,
            call_seconds=settings.call_seconds or 60.0,
            memory_bytes=memory,
            stops=stops,
            end=end,
        )


def prepare_candidate(candidate: Candidate, *, sandbox: bool = True) -> PreparedCandidate:
    """Understand a candidate. Raises UsageError for a file that is not there, and for a closure in a sandbox."""
    if callable(candidate):
        return _of_callable(candidate, sandbox=sandbox)
    if not isinstance(candidate, (str, Path)):
        raise UsageError(f"candidate {quote(candidate)}: expected a function or a word; {_WORDS}")
    word = str(candidate)
    file, colon, function = word.rpartition(":")
    if file.endswith(".py") and colon:
        path = Path(file)
        if not path.is_file():
            raise UsageError(f"candidate {word}: no file {file}; expected FILE.py:FUNCTION")
        if not all(part.isidentifier() for part in function.split(".")):
            raise UsageError(f"candidate {word}: {function!r} is no name of a function; expected FILE.py:FUNCTION")
        _check_name(word, path, function)
        made = CandidateFunction(module=path.stem, function=function, file=path)
        return PreparedCandidate(word=word, isolation=Isolation.CONFINED, function=made)
    if word.endswith(".py"):
        raise UsageError(f"candidate {word}: expected the function too, as {word}:FUNCTION")
    if word.endswith(".so"):
        if not Path(word).is_file():
            raise UsageError(f"candidate {word}: no such file; expected a shared library with the C interface")
        return PreparedCandidate(word=word, isolation=Isolation.PROCESS, adapter=_library_word(Path(word).resolve()))
    try:
        parse_adapter_word(word)
    except UsageError as error:
        raise UsageError(f"{_of_candidate(error)}; {_WORDS}") from None
    return PreparedCandidate(word=word, isolation=Isolation.PROCESS, adapter=word)


def _of_candidate(error: Exception) -> str:
    """What is wrong with an adapter's word, in words of `judge`."""
    return re.sub("^--adapter ", "candidate ", str(error))


def _check_name(word: str, path: Path, function: str) -> None:
    """UsageError where the name stands nowhere in the file, which is not executed here."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"candidate {word}: {path} cannot be read: {error}; expected Python in UTF-8") from None
    # A class may have the rest from another file.
    if "import *" in text or re.search(rf"\b{function.partition('.')[0]}\b", text):
        return
    functions = re.findall(r"^def (\w+)", text, re.MULTILINE)[:_FEW]
    others = f"expected {' or '.join(functions)}" if functions else "expected the name of a function in it"
    raise UsageError(f"candidate {word}: {path} has no {function}; {others}")


def _library_word(file: Path) -> str:
    """The word that opens a shared library with operators: on the CANN installation here, else on the software device.

    What the library lacks, the runtime say, comes from there; no operator does. Raises HarnessError where neither is
    possible.
    """
    if any(os.environ.get(name) for name in _CANN_HOMES):
        from aclnn_cts.adapters.cann.library import find_libraries  # noqa: PLC0415 - few candidates are libraries

        return f"cann:library={','.join([str(file), *find_libraries(os.environ).files])},operators=first"
    from aclnn_cts.adapters.loopback_build import build  # noqa: PLC0415 - as above

    return f"loopback:library={file},{build().library},operators=first"


def _of_callable(candidate: Callable[..., Any], *, sandbox: bool) -> PreparedCandidate:
    name = getattr(candidate, "__qualname__", type(candidate).__name__)
    if not sandbox:
        return PreparedCandidate(word=name, isolation=Isolation.NONE, closure=candidate)
    module = getattr(candidate, "__module__", "") or ""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    file = _source_file(candidate)
    if found is not candidate or (module == "__main__" and file is None):
        raise UsageError(
            f"candidate {name}: a fresh process cannot import it; put it into a file and name that as "
            "FILE.py:FUNCTION, or pass sandbox=False, and it runs in this process"
        )
    if module == "__main__" and file is not None:
        made = CandidateFunction(module=file.stem, function=name, file=file)
    else:
        made = CandidateFunction(module=module, function=name)
    return PreparedCandidate(word=made.word, isolation=Isolation.CONFINED, function=made)


def _source_file(candidate: Callable[..., Any]) -> Path | None:
    try:
        file = inspect.getsourcefile(candidate)
    except TypeError:
        return None
    return Path(file) if file is not None and Path(file).is_file() else None


class _ClosureSession:
    """A function of the caller's own process."""

    def __init__(self, function: Callable[..., Any], names: Mapping[str, str], spec: Spec, end: float) -> None:
        self._function, self._spec, self._end = LoadedCandidate(function, names), spec, end
        self.capabilities = Capabilities(description="a function in the caller's process")
        self.environment: Mapping[str, str] = {"implementation": "closure"}

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make each call; what it raises becomes the outcome."""
        return run_each(calls, self._call)

    def close(self) -> None:
        """Nothing is held."""

    def _call(self, call: Call) -> Outcome:
        buffers, case = call.buffers, call.case
        if time.monotonic() >= self._end:
            return Outcome(ended=CallEnd.INEXPRESSIBLE, message=f"{NOT_CALLED}: the budget was spent")
        if buffers is None:
            raise TypeError("a function has no first phase of its own")
        outputs = {name: item.view for name, item in buffers.outputs.items()}
        arrays: dict[str, Any] = {**{name: item.view for name, item in buffers.inputs.items()}, **outputs}
        if self._function.wants_torch:
            arrays = {name: to_torch(array) for name, array in arrays.items()}
        values = {name: plain_argument(name, value, arrays) for name, value in case.arguments.items()}
        formats = {name: tensor.format for name, tensor in case.tensors()}
        orders = output_orders(tuple(self._spec.outputs), outputs, self._spec.computed_outputs(case))
        results = results_by_output(self._function(values, formats), outputs, orders, self._function)
        return Outcome(facts=store_results(results, outputs))
