"""The names that a parameter goes by: that of the C prototype, and the same as Python's frameworks write it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from aclnn_cts.speclang.model import Spec

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ENDINGS = ("_optional", "_out")
"""Of C names, which frameworks leave out."""


def parameter_names(spec: Spec) -> Mapping[str, str]:
    """C names by every name: `normalizedShape` and `normalized_shape`. The endings Optional and Out may be left out.

    A name that two parameters could have stands for neither, unless it is the C name of one.
    """
    own = {item.name: item.name for item in spec.parameters}
    others = [(alias, item.name) for item in spec.parameters for alias in _aliases(item.name) if alias not in own]
    number = Counter(alias for alias, _ in others)
    return own | {alias: name for alias, name in others if number[alias] == 1}


def _aliases(name: str) -> Iterator[str]:
    snake = _WORD.sub("_", name).lower()
    found = [snake, *(snake.removesuffix(ending) for ending in _ENDINGS if snake.endswith(ending))]
    yield from dict.fromkeys(alias for alias in found if alias != name)
