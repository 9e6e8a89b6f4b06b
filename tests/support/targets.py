"""Every operator on every product that its document names, for tests of the whole catalogue.

`python -m tests.support.targets tested` prints the stems of the operators that stand for it, `others` the others.
A second word names a library: of these, those that are bound to it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import pytest

from aclnn_cts.adapters.bindings import shipped_bindings
from aclnn_cts.authoring.catalogue import family_of
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Clause, Spec

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

T = TypeVar("T")


@functools.cache
def proven_by_another() -> frozenset[str]:
    """Operators before which there is one of their family in the catalogue."""
    seen: set[str] = set()
    found: set[str] = set()
    for operator in load_specs():
        found |= {operator} if family_of(operator) in seen else set()
        seen.add(family_of(operator))
    return frozenset(found)


def products_proven_by_another() -> frozenset[tuple[str, str]]:
    """Operators with each product but their first whose set of products an operator before them has too.

    Of those operators that none before them proves.
    """
    proven = proven_by_another()
    seen: set[tuple[str, ...]] = set()
    found: set[tuple[str, str]] = set()
    specs = load_specs()
    for spec in (specs[operator] for operator in specs if operator not in proven):
        products = tuple(spec.products)
        if products in seen:
            found |= {(spec.operator, product) for product in products[1:]}
        seen.add(products)
    return frozenset(found)


def first_fast(
    values: Iterable[T], *, of: Callable[[T], object] = lambda _value: None, name: Callable[[T], str] | None = None
) -> list[ParameterSet]:
    """Parameters of a test of one mechanism, which the first value of each kind proves. The others are slow tests."""
    seen: set[object] = set()
    found: list[ParameterSet] = []
    for value in values:
        marks = [pytest.mark.slow] if of(value) in seen else []
        seen.add(of(value))
        words = value if isinstance(value, tuple) else (value,)
        found.append(pytest.param(*words, id=name(value) if name else "-".join(map(str, words)), marks=marks))
    return found


def targets(of: Callable[[Spec], object] = lambda spec: spec) -> list[ParameterSet]:
    """What `of` gives of each operator, with each product; of products with equal rules, which differ in name, one."""
    found: list[ParameterSet] = []
    for spec in load_specs().values():
        seen: set[tuple[object, ...]] = set()
        for product in spec.products:
            rules = tuple((item.id, item.rule.describe(product).en) for item in spec.constraints_for(product))
            if rules not in seen:
                found.append(pytest.param(of(spec), product, id=f"{spec.stem}-{product}"))
            seen.add(rules)
    return found


def condition_of(clause: Clause) -> tuple[str | None, str]:
    """What a clause is judged by: equal where two sentences differ in the name of their product alone."""
    return clause.check, clause.when_text or clause.at.rpartition(".")[0]


def products_by_clauses(clauses: Callable[[Spec, str], Iterable[Clause]]) -> list[tuple[str, str]]:
    """Each operator with its first product, and with each that has conditions which those before it lack.

    Sentences on two products that differ in the product's name alone have one condition: "may be FLOAT", on either.
    """
    found: list[tuple[str, str]] = []
    for operator, spec in load_specs().items():
        seen: set[tuple[str | None, str]] = set()
        for product in spec.products:
            stated = {condition_of(item) for item in clauses(spec, product)}
            if not stated <= seen:
                found.append((operator, product))
            seen |= stated
    return found


FIXED = {(2048, 2048), (3072, 2048)}
"""Shapes that documents fix whatever the call: the compressed masks of attention."""
LEAST_COLUMNS = {
    "flash_attention_unpadding_score_grad_v3": 8,
    "fused_linear_cross_entropy_loss_grad": 128,
    "max_pool2d_with_mask_backward": 64,
    "multi_scale_deformable_attention_grad": 8,
    "nsa_compress_grad": 32,
    "nsa_selected_attention_grad": 128,
    "swi_glu_grad": 32,
    "swiglu_backward_mx_quant_with_dual_axis": 64,
    "swiglu_group_quant_grad": 4096,
}
"""What divides the last dimension, its largest size of a few, or the least of a dimension, by operator: no shape of it
is tiny or odd, and an output holds twice as many."""
SELDOM_DECIDED = {"aclnnCtcLossBackward", "aclnnMaxPool2dWithMaskBackward", "aclnnUpsampleBicubic2dAAGrad"}
"""Operators whose documents lack a sentence that most elements need: tests that count what is judged ask for less."""
HUGE = {
    "lightning_indexer_grad": 2064 * 128,
    "nsa_selected_attention_grad": 2**17,
    "sparse_flash_attention_grad": 2**16,
    "sparse_lightning_indexer_grad_kl_loss": 2**16,
}
"""The elements of the largest tensor that is drawn, by operator whose least call is large: keys of 2,048 by 128, or
heads of 128 to 512 columns and rows of 2,048 indices. Few shapes are tiny, odd, beside a multiple, wide or long."""


def main(which: str, library: str = "") -> None:
    """Print the stems of operators, with commas between: where a library is named, those that are bound to it."""
    proven, bound = proven_by_another(), shipped_bindings(library) if library else load_specs()
    chosen = [
        spec for spec in load_specs().values() if (spec.operator in proven) == {"tested": False, "others": True}[which]
    ]
    sys.stdout.write(",".join(spec.stem for spec in chosen if spec.operator in bound) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
