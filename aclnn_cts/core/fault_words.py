"""The words for each fault, in English and Chinese: the catalogue `fault_words.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml


class FaultWords(NamedTuple):
    """The words for a fault, each in English and Chinese."""

    name: tuple[str, str]
    meaning: tuple[str, str]


@cache
def fault_words() -> Mapping[str, FaultWords]:
    """The catalogue, by code (`Fault`)."""
    content = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return {
        code: FaultWords(name=tuple(entry["name"]), meaning=tuple(entry["meaning"])) for code, entry in content.items()
    }


def fault_name(code: str) -> str:
    """The English name of a fault, for people; any other word, such as a reason to skip, as it is."""
    words = fault_words().get(code)
    return words.name[0] if words is not None else code
