"""Reading the options behind an adapter's name (`torch:device=cpu,threads=2`), which arrive as strings; its extra."""

from __future__ import annotations

import importlib
from typing import Any

from aclnn_cts.core.errors import HarnessError, UsageError

_WORDS = {"true": True, "yes": True, "1": True, "on": True, "false": False, "no": False, "0": False, "off": False}


def read_bool(adapter: str, name: str, value: str) -> bool:
    """A switch: true or false (also yes, on, 1 and no, off, 0)."""
    try:
        return _WORDS[value.lower()]
    except KeyError:
        raise UsageError(f"--adapter {adapter}: {name}={value}: expected true or false") from None


def read_positive(adapter: str, name: str, value: str, *, most: int | None = None) -> int:
    """A whole number above zero, and no larger than `most` where something after us could not hold it."""
    try:
        number = int(value)
    except ValueError:
        number = 0
    if number < 1 or (most is not None and number > most):
        upto = "" if most is None else f" and at most {most}"
        raise UsageError(f"--adapter {adapter}: {name}={value}: expected a whole number above 0{upto}")
    return number


def read_number(adapter: str, name: str, value: str, *, most: int | None = None) -> int:
    """A whole number from 0 on, such as a device's, and no larger than `most`."""
    if not (value.isascii() and value.isdecimal()) or (most is not None and int(value) > most):
        upto = "0 on" if most is None else f"0 to {most}"
        raise UsageError(f"--adapter {adapter}: {name}={value}: expected a whole number from {upto}")
    return int(value)


def import_extra(name: str, title: str) -> Any:  # noqa: ANN401 - a module
    """Import the library of the adapter of that name. Raises HarnessError where it is missing or does not load."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, RuntimeError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise HarnessError(
                f'--adapter {name}: {title} is not installed here; install it with: pip install "aclnn-cts[{name}]"'
            ) from None
        raise HarnessError(f"--adapter {name}: {title} is installed but does not load: {error}") from error
