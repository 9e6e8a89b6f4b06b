"""Which product a SoC name belongs to, by `specs/products.yaml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.spec.load import package_folder
from aclnn_cts.spec.yaml_file import read_yaml

__all__ = ["Chip", "chip_of", "product_names", "socs_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """What the table says of one SoC."""

    soc: str
    product: str
    """Empty for a series that no document speaks of."""
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
    content = _content()
    rows = [(name, row) for name, row in content["products"].items()] + [("", row) for row in content["unnamed"]]
    for name, row in rows:
        if soc in row["soc"]["exact"]:
            return _chip(soc, name, row)
    found = [
        (len(prefix), name, row) for name, row in rows for prefix in row["soc"]["prefixes"] if soc.startswith(prefix)
    ]
    if not found:
        raise HarnessError(
            f"the device calls itself {soc!r}, which is of no series in specs/products.yaml; add its prefix there"
        )
    _, name, row = max(found, key=lambda entry: entry[0])
    return _chip(soc, name, row)


def product_names() -> tuple[str, ...]:
    """The products that documents speak of."""
    return tuple(_content()["products"])


def socs_of(product: str) -> tuple[str, ...]:
    """The full SoC names of a product. Raises KeyError for an unknown one."""
    return tuple(_content()["products"][product]["soc"]["names"])


def _chip(soc: str, product: str, row: Mapping[str, Any]) -> Chip:
    cores = row["cores"].get(soc)
    return Chip(
        soc=soc,
        product=product,
        title=row["title"]["en"],
        title_zh=row["title"]["zh"],
        overflow_mode=row["overflow"]["default"],
        core_count=cores["ai"] if cores is not None else None,
    )


@functools.cache
def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = MappingProxyType(
        read_yaml(package_folder() / "products.yaml", name="specs/products.yaml").content
    )
    return content
