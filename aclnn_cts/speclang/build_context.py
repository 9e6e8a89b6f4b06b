"""What the entries of one file may refer to while its constraints are built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aclnn_cts.core.dtypes import FORMATS
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.model import Modes
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import ConstraintModel
from aclnn_cts.speclang.yaml_file import YamlPath


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintContext:
    """What the entries of one file may refer to."""

    problems: Problems
    kinds: Mapping[str, str]
    """Kind of argument (`tensor`, `int`, ...) of each parameter."""
    products: tuple[str, ...]
    tables: Mapping[str, Mapping[str, tuple[str, ...]]]
    draws: Mapping[str, str]
    """Kind of each draw: `run`, or `number`."""
    models: tuple[ConstraintModel, ...]
    clauses: Mapping[str, tuple[str, ...]]
    """Clause addresses by constraint id."""
    modes: Modes | None = None
    rows: Mapping[str, tuple[tuple[str, ...], ...]] | None = None
    row_parameters: tuple[str, ...] = ()
    optional: frozenset[str] = field(default_factory=frozenset)
    """Parameters that are null pointers in some valid calls: a rule on one of them is for calls that give it."""
    call_level: frozenset[str] = field(default_factory=frozenset)
    """Names that stand for pointers of the interface itself."""


def product_table(
    value: object, path: YamlPath, context: ConstraintContext, known: Mapping[str, Any], what: str
) -> dict[str, tuple[str, ...]]:
    """A list, a list by product or a table's name, as a list for each product of the operator."""
    if isinstance(value, str):
        if context.problems.known(value, context.tables, path, "table"):
            return dict(context.tables[value])
        return dict.fromkeys(context.products, ())
    by_product = value if isinstance(value, Mapping) else dict.fromkeys(context.products, value)
    table: dict[str, tuple[str, ...]] = dict.fromkeys(context.products, ())
    for product, names in by_product.items():
        if not context.problems.known(product, context.products, path, "product"):
            continue
        if not isinstance(names, (list, tuple)):
            context.problems.add(path, f"{shown(names)}; expected a list of {what}s")
            continue
        table[product] = tuple(str(name) for name in names)
        context.problems.all_known(table[product], known, path, what)
    return table


def rank_table(value: object, path: YamlPath, problems: Problems) -> dict[int, tuple[str, ...]]:
    """Formats by number of dimensions."""
    table: dict[int, tuple[str, ...]] = {}
    if not isinstance(value, Mapping):
        problems.add(path, f"{shown(value)}; expected a list of formats for each number of dimensions, {{2: [NC]}}")
        return table
    for rank, names in value.items():
        if not (str(rank).isdecimal() and isinstance(names, list)):
            problems.add(path, f"{shown(rank)}: {shown(names)}; expected a number of dimensions and a list of formats")
            continue
        table[int(rank)] = tuple(map(str, names))
        problems.all_known(table[int(rank)], FORMATS, (*path, rank), "format")
    return table
