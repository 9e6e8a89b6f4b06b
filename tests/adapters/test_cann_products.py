"""Which product a device is, by its full SoC name."""

from __future__ import annotations

import pytest

from aclnn_cts.adapters.cann.products import chip_of, product_names, socs_of
from aclnn_cts.core.errors import HarnessError

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
    # Of no document here.
    "Ascend910_9362": "",
    "Ascend910_9392": "",
    "Ascend950PR_9579": "",
    "Ascend950DT_9591": "",
    "Ascend310B1": "",
}


@pytest.mark.parametrize(("soc", "product"), NAMES.items())
def test_the_table(soc: str, product: str) -> None:
    chip = chip_of(soc)
    assert (chip.soc, chip.product) == (soc, product)
    if product:
        assert chip.overflow_mode == ("infnan" if product == "atlas-a2" else "saturation")


def test_every_name_of_a_product_is_that_product_s() -> None:
    assert set(product_names()) == {"atlas-inference", "atlas-training", "atlas-a2"}
    for product in product_names():
        for soc in socs_of(product):
            chip = chip_of(soc)
            assert (chip.product, chip.core_count is None) == (product, False)


@pytest.mark.parametrize("soc", ["", "Ascend", "Ascend910", "ascend910b3", "Ascend910C", "Tesla"])
def test_a_name_of_no_series_is_told_and_never_guessed(soc: str) -> None:
    with pytest.raises(HarnessError, match=rf"calls itself '{soc}', which is of no series in specs/products\.yaml"):
        chip_of(soc)
