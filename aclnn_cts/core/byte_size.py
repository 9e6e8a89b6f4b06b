"""Sizes in bytes as people write them: `4096`, `512KiB`, `1.5 GiB`, `2GB`."""

from __future__ import annotations

import re
from decimal import Decimal
from types import MappingProxyType

from aclnn_cts.core.printable import quote

_UNITS = MappingProxyType(
    {
        "B": 1,
        **{f"{letter}iB": 1 << 10 * power for power, letter in enumerate("KMGT", start=1)},
        **{f"{letter}B": 1000**power for power, letter in enumerate("kMGT", start=1)},
    }
)
"""Bytes by unit. `KB`, `M` and `Mb` are no units here: readers differ on what they are."""
_FORM = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) ?([A-Za-z]*)", re.ASCII)


def bytes_of(word: str, *, alone: str = "B") -> int:
    """The bytes that a word says; a number without a unit is in `alone`.

    Raises ValueError, which says what was expected.
    """
    found = _FORM.fullmatch(word.strip())
    size = Decimal(found[1]) * _UNITS.get(found[2] or alone, 0) if found else Decimal(0)
    if size < 1 or size != int(size):
        number = f"a number of {'bytes' if alone == 'B' else alone}"
        raise ValueError(
            f"{quote(word)}; expected {number}, at least 1, or a size such as 512KiB; units are {', '.join(_UNITS)}"
        )
    return int(size)
