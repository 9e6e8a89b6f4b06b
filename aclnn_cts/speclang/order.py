"""The order in which constraints are evaluated, and their tests made ready for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aclnn_cts.core.target import Target
from aclnn_cts.speclang.kinds import Constraint, Rule, Test
from aclnn_cts.speclang.kinds_list import EachItem
from aclnn_cts.speclang.kinds_size import Broadcast, Dims, ShapeIs, SizeIs
from aclnn_cts.speclang.kinds_tensor import CallPresent, NotEmpty, Rank


def in_evaluation_order(constraints: Sequence[Constraint]) -> tuple[Constraint, ...] | None:
    """What a constraint requires stands before it; else the file's order. None where they require in a circle.

    A rule about the sizes of a tensor says nothing of a tensor of another rank: it requires that tensor's rank.
    """
    ranks: dict[str, list[str]] = {}
    for item in constraints:
        if isinstance(rule := _on_a_tensor(item), Rank):
            ranks.setdefault(rule.of, []).append(item.id)
    completed = []
    for item in constraints:
        rule = _on_a_tensor(item)
        implied = ranks.get(rule.of, []) if isinstance(rule, (Broadcast, Dims, ShapeIs, SizeIs, NotEmpty)) else []
        completed.append(replace(item, requires=tuple(dict.fromkeys((*item.requires, *implied)))))
    waiting = {item.id: item for item in completed}
    ordered: list[Constraint] = []
    while waiting:
        ready = [item for item in waiting.values() if not any(name in waiting for name in item.requires)]
        if not ready:
            return None
        for item in ready:
            del waiting[item.id]
        ordered.extend(ready)
    return tuple(ordered)


def _on_a_tensor(item: Constraint) -> Rule:
    """The rule, or what each tensor of a list keeps."""
    return item.rule.rule if isinstance(item.rule, EachItem) else item.rule


def compile_constraints(
    constraints: Sequence[Constraint], products: Sequence[str]
) -> Mapping[str, tuple[tuple[int, int, Callable[..., bool | None], Constraint], ...]]:
    """For each product, (own bit, bits of what it requires, test, constraint) of the rules that apply to it.

    A test gives None where its `when` is false: it holds, and nothing was put to the test.
    """
    tests = {
        item.id: _with_condition(item.rule.test, item.when)
        for item in constraints
        if not isinstance(item.rule, CallPresent)
    }
    bits = {item.id: 1 << position for position, item in enumerate(constraints)}
    return {
        product: tuple(
            (bits[item.id], sum(bits[name] for name in item.requires if name in bits), tests[item.id], item)
            for item in constraints
            if item.id in tests and item.applies_to(product)
        )
        for product in products
    }


def _with_condition(test: Test, when: Test | None) -> Test:
    if when is None:
        return test

    def conditional(arguments: Mapping[str, Any], target: Target) -> bool | None:
        return test(arguments, target) if when(arguments, target) else None

    return conditional
