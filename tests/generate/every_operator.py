"""Every operator on every product that its document names, with a sampler for each."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import canonical_json, case_to_json
from aclnn_cts.core.target import Target
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Constraint
from tests.support.drawn import drawn
from tests.support.targets import targets

SPECS = load_specs()
PAIRS = [(spec.stem, product) for spec in SPECS.values() for product in spec.products]
each = pytest.mark.parametrize(("stem", "product"), targets(lambda spec: spec.stem))


@functools.cache
def sampler(stem: str, product: str) -> Sampler:
    return Sampler(SPECS.find(stem), Target(product=product))


def valid_cases(stem: str, product: str, count: int, *, seed: int = 1) -> Iterator[Case]:
    """Cases of the stream driver."""
    return drawn(sampler(stem, product), count, stream=f"tests/{stem}/{product}", seed=seed)


def rules(stem: str, product: str) -> tuple[Constraint, ...]:
    """The constraints that apply."""
    return SPECS.find(stem).constraints_for(product)


def spelled(case: Case) -> bytes:
    """The case with its origin, byte for byte."""
    return canonical_json(case_to_json(case))
