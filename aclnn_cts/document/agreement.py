"""Document and spec side by side: where their facts differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from aclnn_cts.document.facts import dtypes_by_product, formats_of, ranks_of
from aclnn_cts.document.model import Document
from aclnn_cts.speclang.kinds_tensor import Rank
from aclnn_cts.speclang.model import Parameter, Spec


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that document and spec state differently."""

    address: str
    document: str
    spec: str


def differences(document: Document, spec: Spec) -> tuple[Difference, ...]:
    """Where the prototype, products, dtypes, formats or ranks of a spec are not those of a document."""
    return tuple(_differences(document, spec))


def _differences(document: Document, spec: Spec) -> Iterator[Difference]:
    supported = [product for product, yes in document.products.items() if yes]
    if set(supported) != set(spec.products):
        yield Difference("products", _words(sorted(supported)), _words(sorted(spec.products)))
    theirs = [f"{item.type} {item.name}" for item in document.parameters]
    ours = [f"{item.type} {item.name}" for item in spec.parameters]
    if document.parameters and theirs != ours:
        yield Difference("prototype/phase1", _words(theirs), _words(ours))
    for parameter in spec.parameters:
        row = document.rows.get(parameter.name)
        if row is None or parameter.kind != "tensor":
            continue
        for product in spec.products:
            pair = _dtypes(document, spec, parameter, product)
            if pair is not None and set(pair[0]) != set(pair[1]):
                yield Difference(f"params/{parameter.name}/dtype ({product})", _words(pair[0]), _words(pair[1]))
            formats = formats_of(row)
            mine = _formats(spec, parameter, product)
            if formats is not None and set(formats) != set(mine):
                yield Difference(f"params/{parameter.name}/format ({product})", _words(formats), _words(mine))
        ranks, bounds = ranks_of(row), ranks_in(spec, parameter.name)
        if ranks is not None and bounds is not None and (ranks.low, ranks.high) != bounds:
            yield Difference(
                f"params/{parameter.name}/rank", f"{ranks.low} to {ranks.high}", f"{bounds[0]} to {bounds[1]}"
            )


def _words(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"


def _dtypes(
    document: Document, spec: Spec, parameter: Parameter, product: str
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """What document and spec list for a product; None where one of them does not."""
    if not document.products.get(product):
        return None
    found = dtypes_by_product(document, parameter.name, (product,))
    source = _source(spec, parameter, lambda item: item.dtype_as)
    return (found[0][product], source.dtypes[product]) if found is not None and product in source.dtypes else None


def _formats(spec: Spec, parameter: Parameter, product: str) -> tuple[str, ...]:
    return _source(spec, parameter, lambda item: item.format_as).formats.get(product, ())


def _source(spec: Spec, parameter: Parameter, named: Callable[[Parameter], str | None]) -> Parameter:
    """The parameter whose dtype or format this one has; each names an earlier one."""
    while (name := named(parameter)) is not None:
        parameter = spec.parameter(name)
    return parameter


def ranks_in(spec: Spec, name: str) -> tuple[int, int] | None:
    """The ranks that all constraints on a tensor leave."""
    rules = [item.rule for item in spec.constraints if isinstance(item.rule, Rank) and item.rule.of == name]
    return (max(rule.low for rule in rules), min(rule.high for rule in rules)) if rules else None
