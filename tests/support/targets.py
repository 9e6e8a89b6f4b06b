"""Every operator on every product that its document names, for tests of the whole catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import pytest

from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

T = TypeVar("T")


def first_fast(values: Iterable[T], *, of: Callable[[T], object] = lambda _value: None) -> list[ParameterSet]:
    """Parameters of a test of one mechanism, which the first value of each kind proves. The others are slow tests."""
    seen: set[object] = set()
    found: list[ParameterSet] = []
    for value in values:
        marks = [pytest.mark.slow] if of(value) in seen else []
        seen.add(of(value))
        words = value if isinstance(value, tuple) else (value,)
        found.append(pytest.param(*words, id="-".join(map(str, words)), marks=marks))
    return found


def targets(of: Callable[[Spec], object] = lambda spec: spec) -> list[ParameterSet]:
    """What `of` gives of each operator, with each product. Products with equal rules differ in name: one is fast."""
    found: list[ParameterSet] = []
    for spec in load_specs().values():
        seen: set[tuple[object, ...]] = set()
        for product in spec.products:
            rules = tuple((item.id, item.rule.describe(product).en) for item in spec.constraints_for(product))
            marks = [pytest.mark.slow] if rules in seen else []
            seen.add(rules)
            found.append(pytest.param(of(spec), product, id=f"{spec.stem}-{product}", marks=marks))
    return found


LEAST_COLUMNS = {"swiglu_backward_mx_quant_with_dual_axis": 64}
"""What divides the last dimension, by operator: no shape of it is tiny or odd, and an output holds twice as many."""
