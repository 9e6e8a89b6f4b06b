"""Options that several commands share, and what their values are checked against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import DEFAULT_PRODUCT, OWN_PRODUCT, Target
from aclnn_cts.spec.model import Spec
from aclnn_cts.spec.package import check_product, product_names

__all__ = [
    "IntegerWithin",
    "checked_product",
    "checked_target",
    "json_option",
    "product_option",
    "specs_option",
]

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON alone, one object a line; all else goes to stderr."
)
specs_option = click.option(
    "--specs",
    "folders",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A folder with spec files of your own, beside ours; may be given several times.",
)
product_option = click.option(
    "--product",
    metavar="P",
    help=f"{', '.join(product_names())}; default: the device's own, else atlas-a2 where supported.",
)


class IntegerWithin(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """An integer between two bounds, either of which may be absent; a mistake says which were expected."""

    name = "integer"

    def __init__(self, low: int | None = None, high: int | None = None) -> None:
        self._low, self._high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - click's signature
        """Read a word of the command line; a default comes as an integer already."""
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or not self._holds(number):
            low = "" if self._low is None else f" from {self._low}" if self._high is not None else f" >= {self._low}"
            high = "" if self._high is None else f" to {self._high}" if self._low is not None else f" <= {self._high}"
            self.fail(f"{value!r}; expected an integer{low}{high}", param, ctx)
        return number

    def _holds(self, number: int) -> bool:
        return (self._low is None or self._low <= number) and (self._high is None or number <= self._high)


def checked_product(product: str | None, spec: Spec) -> str:
    """The product asked for, else the default where the operator supports it, else the operator's last.

    UsageError for an unknown product and for one that the operator's document does not name.
    """
    if product is None:
        return DEFAULT_PRODUCT if DEFAULT_PRODUCT in spec.products else spec.products[-1]
    check_product(product, where="--product")
    if product not in spec.products:
        raise UsageError(
            f"--product: {product!r} is not supported by {spec.operator}; its document names {', '.join(spec.products)}"
        )
    return product


def checked_target(product: str | None) -> Target:
    """The target of a run: the product asked for, else the implementation's own, which is not known yet.

    An operator may lack it; that one is skipped.
    """
    if product is not None:
        check_product(product, where="--product")
    return Target(product=product or OWN_PRODUCT)
