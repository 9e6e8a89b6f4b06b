"""What is registered under a name: checks, recipes, tolerances, adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

T = TypeVar("T")


def items_by_name(what: str, items: Iterable[T], name: Callable[[T], str]) -> Mapping[str, T]:
    """Items by name, in their order; a duplicate is a ValueError."""
    registry: dict[str, T] = {}
    for item in items:
        if name(item) in registry:
            raise ValueError(f"the {what} {name(item)!r} is registered twice")
        registry[name(item)] = item
    return MappingProxyType(registry)
