"""Which cells of the coverage maps a supported call can fall into: what the documents allow, and some recipe makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aclnn_cts.core.dtypes import INEXACT
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.configuration import Configuration, row_labels
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.possible_cells import LAYOUTS, MAPS, POSSIBLE_STATE, RANKS, PossibleCells

_ATTEMPTS = 3
"""Drawings narrowed to one row of dtypes and one length of a run of dimensions."""


def possible_state(specs: Iterable[Spec], target: Target) -> dict[str, object]:
    """What a run's store keeps of the cells that calls on its target can fall into."""
    return {POSSIBLE_STATE + spec.operator: possible_cells(spec, target) for spec in specs}


def possible_cells(spec: Spec, target: Target) -> dict[str, PossibleCells]:
    """By kind of map. The rows are the dtypes that the first output may have on any product; not all can occur."""
    found = {kind: PossibleCells() for kind in MAPS}
    found["size"].every = True
    for product in spec.products:
        for row in Sampler(spec, Target(product=product)).dtype_rows:
            for entry in found.values():
                entry.rows.setdefault(row[spec.outputs[0]])
    for kind, columns in (("rank", [str(number) for number in range(RANKS)]), ("layout", LAYOUTS)):
        found[kind].columns.update(dict.fromkeys(columns))
    if target.product in spec.products:
        _add(found, Sampler(spec, target))
    return found


def _add(found: dict[str, PossibleCells], sampler: Sampler) -> None:
    spec = sampler.spec
    inputs = [name for name in spec.inputs if name in sampler.dtype_rows[0]]
    if not inputs:
        return
    first = inputs[0]
    layouts = LAYOUTS if set(inputs) & set(sampler.strided) else LAYOUTS[:1]
    for row, label in zip(sampler.dtype_rows, row_labels(sampler.dtype_rows), strict=True):
        dtype = row[spec.outputs[0]]
        family = "float" if row[first] in INEXACT else "other"
        found["contents"].add(dtype, (template.recipe for template in sampler.templates(first, family)))
        found["layout"].add(dtype, layouts)
        found["rank"].add(dtype, _ranks(sampler, label, first))
        found["size"].add(dtype, ())


def _ranks(sampler: Sampler, label: str, first: str) -> Iterator[str]:
    """Dimensions of the first input in drawings that are narrowed to each length of each run of dimensions."""
    runs = [draw.name for draw in sampler.spec.draws if draw.kind in ("run", "factorisation")]
    configurations = [
        Configuration({"dtype": [label], f"rank:{name}": [str(length)]}) for name in runs for length in range(RANKS)
    ]
    stream = f"{sampler.spec.operator}/{sampler.target.product}/ranks"
    index = 0
    for configuration in configurations or [Configuration({"dtype": [label]})]:
        options = sampler.options(configuration)
        for _ in range(_ATTEMPTS):
            index += 1
            drawing = sampler.draw(StreamChoices(0, stream, index), options=options)
            yield str(min(len(sampler.shape(first, drawing.names)), RANKS))
