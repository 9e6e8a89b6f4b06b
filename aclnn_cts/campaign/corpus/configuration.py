"""The configuration of a random chunk: some features favoured, some omitted, drawn anew for each chunk.

Cases that are drawn from everything at once are all alike: of 13 recipes each has its share in every chunk. Omitting
features lets the others meet more often than their share (swarm testing: Groce et al., ISSTA 2012).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aclnn_cts.campaign.corpus.factors import Factors
from aclnn_cts.generate.choices import StreamChoices

__all__ = ["draw_configuration"]

FAVOUR = 3
"""How much more often a favoured label is chosen than another."""


def draw_configuration(factors: Factors, *, seed: int, index: int) -> Mapping[str, Sequence[str]]:
    """A configuration for the chunk of that number.

    Half of the factors stay as they are. Of each of the others, labels are left out with even chance, at least one
    stays, and one of those that stay is favoured.
    """
    # The stream keeps its name: with another one, a seed would make other chunks.
    choices = StreamChoices(seed, f"{factors.sampler.spec.operator}/campaign/policy", index)
    possible = np.diagonal(factors.possible)
    labels: dict[str, list[str]] = {}
    for (factor, label), can in zip(factors.values, possible, strict=True):
        if can:
            labels.setdefault(factor, []).append(label)
    configuration: dict[str, Sequence[str]] = {}
    for factor, known in labels.items():
        if len(known) < 2 or choices.chance(1, 2):
            continue
        kept = [label for label in known if choices.chance(1, 2)] or [choices.pick(known)]
        configuration[factor] = (*kept, *[choices.pick(kept)] * (FAVOUR - 1))
    return configuration
