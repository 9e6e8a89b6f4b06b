"""What an open adapter says of itself, checked for type and size."""

from __future__ import annotations

import dataclasses
import functools
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, get_type_hints

import msgspec

from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.core.errors import HarnessError

ENVIRONMENT_NAMES = 1000
NAME_CHARACTERS = 200
VALUE_CHARACTERS = 10_000
ENVIRONMENT_BYTES = 500_000
"""All names and values together, in UTF-8."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What an open adapter says of itself."""

    capabilities: Capabilities
    environment: Mapping[str, str]


class DeclaringSession(Protocol):
    """An open session, or what a runner says of its own."""

    @property
    def capabilities(self) -> object: ...
    @property
    def environment(self) -> object: ...


def declaration_of(session: DeclaringSession, *, adapter: str) -> Declaration:
    """What a session declares, or what came of that on its way from a runner.

    Raises HarnessError, which names field and value, for what is out of bounds.
    """
    return Declaration(
        capabilities=_capabilities(session.capabilities, adapter=adapter),
        environment=_environment(session.environment, adapter=adapter),
    )


def _capabilities(given: object, *, adapter: str) -> Capabilities:
    """Capabilities, or the mapping that came of them, with every field of its type."""
    if isinstance(given, Capabilities):
        given = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
    if not isinstance(given, Mapping):
        raise _error(adapter, "capabilities", given, "expected Capabilities(...)")
    types = _types()
    fields = {}
    for name, value in given.items():
        if name not in types:
            raise _error(adapter, "capabilities", name, f"expected one of {', '.join(types)}")
        try:
            fields[name] = msgspec.convert(value, types[name])
        except msgspec.ValidationError as error:
            said = str(error)
            raise _error(adapter, f"capabilities.{name}", value, said[:1].lower() + said[1:]) from None
    return Capabilities(**fields)


def _environment(given: object, *, adapter: str) -> dict[str, str]:
    """Names and values, all of them text."""
    if not isinstance(given, Mapping):
        raise _error(adapter, "environment", given, "expected a mapping of text to text")
    if len(given) > ENVIRONMENT_NAMES:
        raise _error(adapter, "environment", f"{len(given)} names", f"expected at most {ENVIRONMENT_NAMES}")
    size = 0
    for name, value in given.items():
        if not isinstance(name, str) or len(name) > NAME_CHARACTERS:
            raise _error(adapter, "a name of the environment", name, _text_of(NAME_CHARACTERS))
        if not isinstance(value, str) or len(value) > VALUE_CHARACTERS:
            raise _error(adapter, f"environment[{name!r}]", value, _text_of(VALUE_CHARACTERS))
        try:
            size += len(name.encode()) + len(value.encode())
        except UnicodeEncodeError:
            raise _error(adapter, f"environment[{name!r}]", value, "expected text that UTF-8 can hold") from None
    if size > ENVIRONMENT_BYTES:
        raise _error(adapter, "environment", f"{size} bytes", f"expected at most {ENVIRONMENT_BYTES}")
    return dict(given)


def _text_of(characters: int) -> str:
    return f"expected text of at most {characters} characters"


def _error(adapter: str, where: str, value: object, expected: str) -> HarnessError:
    length = f" ({len(value)} characters)" if isinstance(value, str) and len(value) > _SHORT.maxstring else ""
    return HarnessError(f"--adapter {adapter}: {where} is {_SHORT.repr(value)}{length}; {expected}")


@functools.cache
def _types() -> dict[str, Any]:
    return get_type_hints(Capabilities, include_extras=True)
