"""Calls of an elementwise operator with every bit pattern of a dtype of 16 bits, in one input after the other.

An elementwise result depends on one element of each input, so a wrong element of such a dtype shows in one of these.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from aclnn_cts.core.case import Case, Origin
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.configuration import RecipeTemplate
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import first_broken
from aclnn_cts.speclang.kinds import CaseChange
from aclnn_cts.speclang.sixteen_bits import inputs_of_16_bits

SHAPE = (256, 256)
"""Of every tensor: as many elements as there are patterns."""
_SMALL = 64
"""Most elements of a tensor of the drawing that a call is made from."""


def exhaustive_cases(sampler: Sampler, *, seed: int, first: int, count: int) -> Iterator[Case]:
    """Calls `first` to `first + count - 1` of an operator's, without those that a rule refuses.

    One input after the other has the patterns. Attributes and other inputs differ from call to call.
    """
    spec, target = sampler.spec, sampler.target
    stream = f"{spec.operator}/{target.product}/exhaustive"
    places = inputs_of_16_bits(spec, target.product)
    for number in range(first, first + count):
        name, dtype = places[number % len(places)]
        rows = [place for place, row in enumerate(sampler.dtype_rows) if row[name] == dtype]
        choices = StreamChoices(seed, stream, number)
        drawing = sampler.draw(choices, budget=_SMALL, row=choices.pick(rows), data_kind="realistic")
        runs = {draw.name: SHAPE for draw in spec.draws if draw.is_run}
        drawing = msgspec.structs.replace(
            drawing,
            names=sampler.names.reassign(drawing, CaseChange(text="", assign=runs)),
            data={**drawing.data, name: RecipeTemplate("patterns", {}, {})},
            views={},
        )
        case = sampler.case(drawing, origin=Origin("valid", source=f"every bit pattern of {dtype} in {name}"))
        tensor = case.tensor(name)
        if tensor is not None and tensor.shape == SHAPE and not first_broken(spec, case):
            yield case
