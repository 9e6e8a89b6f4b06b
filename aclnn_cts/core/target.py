"""What a case is run on, as far as a document's rules depend on it."""

from __future__ import annotations

from typing import Annotated

import msgspec

DEFAULT_PRODUCT = "atlas-a2"
OWN_PRODUCT = ""
"""Stands for the device's own product until the device has been asked; no case has it."""


class Target(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A product and, where known, the chip and its settings. Expressions in a spec read it as `target.<field>`."""

    product: str = DEFAULT_PRODUCT
    soc: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    """The full SoC name, such as `Ascend910B3`."""
    core_count: int | None = None
    """AI cores: the `coreNum` of the documents."""
    deterministic: bool | None = None
    overflow_mode: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    """`infnan` or `saturation` (aclrtFloatOverflowMode)."""
