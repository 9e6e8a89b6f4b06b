"""Mistakes in an oracle's file, as messages that name file, line, output and call."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from aclnn_cts.core.case import argument_text
from aclnn_cts.core.errors import HarnessError, OracleError, UsageError
from aclnn_cts.core.printable import printable

_Result = TypeVar("_Result")
_Other = TypeVar("_Other")
_TEXT = 300
_CALL = 400
"""Characters of an exception's text and of a call that are shown."""
_FORMULA = __name__.rpartition(".")[0]


def is_signal(error: BaseException) -> bool:
    """Whether an exception from within a formula is one of ours, such as that it takes too many terms."""
    return isinstance(error, (UsageError, HarnessError)) or type(error).__module__.startswith(f"{_FORMULA}.")


def mistake(
    function: Callable[..., Any], what: str, arguments: Mapping[str, Any], error: BaseException | None = None
) -> OracleError:
    """What is wrong with a formula on the call with these arguments, at the line of an exception where there is one."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code is not None else (repr(function), 0)
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    line = next((frame.lineno or line for frame in reversed(frames) if frame.filename == file), line)
    name = getattr(function, "__name__", "formula")
    call = ", ".join(f"{key} {argument_text(value)}" for key, value in arguments.items())
    where = f"{Path(file)}:{line}" if line else file
    return OracleError(printable(f"{where}: {name}: {what}; correct the file; the call: {call:.{_CALL}}"))


def raised(error: BaseException) -> str:
    """An exception in a line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{f': {text:.{_TEXT}}' if text else ''}"


class Results(dict[str, _Result]):
    """The results of an oracle's function by output; one that it does not give is a mistake of the function."""

    def __init__(
        self, results: Mapping[str, _Result], *, function: Callable[..., Any], arguments: Mapping[str, Any]
    ) -> None:
        super().__init__(results)
        self._function = function
        self._arguments = arguments

    def __missing__(self, output: str) -> _Result:
        """Raise OracleError."""
        raise self.mistake(f"no result {output!r}; it has {', '.join(self) or 'none'}")

    def all_of(self, kind: type[_Other]) -> Results[_Other]:
        """The same, each a number of a backend; OracleError for a condition."""
        for name, result in self.items():
            if not isinstance(result, kind):
                raise self.mistake(f"{name} is {type(result).__name__}, expected a floating number")
        return cast("Results[_Other]", self)

    def mistake(self, what: str) -> OracleError:
        """What is wrong with these results."""
        return mistake(self._function, what, self._arguments)
