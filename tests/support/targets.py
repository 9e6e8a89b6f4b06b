"""Every operator on every product that its document names, for tests of the whole catalogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

__all__ = ["targets"]


def targets(of: Callable[[Spec], object] = lambda spec: spec) -> list[ParameterSet]:
    """What `of` gives of each operator, with each product. Products with equal rules differ in name: one is fast."""
    found: list[ParameterSet] = []
    for spec in load_specs().values():
        seen: set[tuple[object, ...]] = set()
        for product in spec.products:
            rules = tuple((item.id, item.rule.describe(product)) for item in spec.constraints_for(product))
            marks = [pytest.mark.slow] if rules in seen else []
            seen.add(rules)
            found.append(pytest.param(of(spec), product, id=f"{spec.stem}-{product}", marks=marks))
    return found
