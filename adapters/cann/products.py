"""Which product a SoC name belongs to, by `specs/products.yaml`."""

from __future__ import annotations

from dataclasses import dataclass

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.package import products

__all__ = ["Chip", "chip_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """What the table says of one SoC."""

    soc: str
    product: str
    title: str
    title_zh: str
    overflow_mode: str
    """The mode of a device that nobody has set."""
    core_count: int | None


def chip_of(soc: str) -> Chip:
    """The SoC of this full name, as `aclrtGetSocName` gives it. Raises HarnessError for one of no series here.

    A name listed as exact decides; else the longest prefix does: `Ascend910B` by itself is of the first training
    generation, `Ascend910B3` an Atlas A2, and `Ascend910_93...` of neither.
    """
    for name, product in products().items():
        if soc in product.soc.exact:
            return _chip(soc, name)
    found = [
        (len(prefix), name)
        for name, product in products().items()
        for prefix in product.soc.prefixes
        if soc.startswith(prefix)
    ]
    if not found:
        raise HarnessError(
            f"the device calls itself {shown(soc)}, which is of no series in specs/products.yaml; add its prefix there"
        )
    _, name = max(found)
    return _chip(soc, name)


def _chip(soc: str, name: str) -> Chip:
    product = products()[name]
    cores = product.cores.get(soc)
    return Chip(
        soc=soc,
        product=name,
        title=product.title.en,
        title_zh=product.title.zh,
        overflow_mode=product.overflow.default,
        core_count=cores.ai if cores is not None else None,
    )
