"""Which product a device is, by its full SoC name."""

from __future__ import annotations

import pytest

from aclnn_cts.adapters.cann.adapter import chip_of
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.speclang.package import products

NAMES = {
    "Ascend910A": "atlas-training",
    # One name with and without a digit behind it, two generations.
    "Ascend910B": "atlas-training",
    "Ascend910ProA": "atlas-training",
    "Ascend910ProB": "atlas-training",
    "Ascend910PremiumA": "atlas-training",
    "Ascend310P1": "atlas-inference",
    "Ascend310P3": "atlas-inference",
    "Ascend310P7": "atlas-inference",
    "Ascend910B1": "atlas-a2",
    "Ascend910B2C": "atlas-a2",
    "Ascend910B4-1": "atlas-a2",
    "Ascend910_9362": "atlas-a3",
    "Ascend910_9392": "atlas-a3",
    "Ascend950PR_9579": "ascend-950",
    "Ascend950DT_9591": "ascend-950",
    "Ascend310B1": "atlas-200i-500-a2",
}
INFNAN = {"atlas-a2", "atlas-a3", "ascend-950"}


@pytest.mark.parametrize(("soc", "product"), NAMES.items())
def test_the_table(soc: str, product: str) -> None:
    chip = chip_of(soc)
    assert (chip.soc, chip.product) == (soc, product)
    assert chip.entry.overflow.default == ("infnan" if product in INFNAN else "saturation")


def test_every_name_of_a_product_is_that_product_s() -> None:
    assert set(products()) == {
        "atlas-inference",
        "atlas-training",
        "atlas-200i-500-a2",
        "atlas-a2",
        "atlas-a3",
        "ascend-950",
    }
    for name, product in products().items():
        for soc in product.soc.names:
            chip = chip_of(soc)
            assert (chip.product, chip.soc in chip.entry.cores) == (name, True)


@pytest.mark.parametrize("soc", ["", "Ascend", "Ascend910", "ascend910b3", "Ascend910C", "Tesla"])
def test_a_name_of_no_series_is_told_and_never_guessed(soc: str) -> None:
    with pytest.raises(HarnessError, match=rf"calls itself '{soc}', which is of no series in specs/products\.yaml"):
        chip_of(soc)
