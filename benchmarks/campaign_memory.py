"""Whether the memory of a campaign's worker grows over many cases."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec
from benchmarks.campaign_rates import open_alone, random_chunk
from benchmarks.memory import peak, resident
from benchmarks.shown import Row
from benchmarks.stored import Rounds
from benchmarks.tables import short_name

NAME = "campaign-memory"
"""Of the stored figures."""

NEEDED = ("resident MiB",)
CHUNK = 2000
"""Cases after each of which is looked."""
FLAT = 0.05
"""Growth that is none: what the allocator keeps differs by as much."""


def memory(spec: Spec, target: Target, cases: int) -> Rounds:
    """Resident MiB after each 2,000 cases, and the most of all."""
    with open_alone("reference", target) as worker:
        marks = []
        for number in range(max(cases // CHUNK, 4)):
            worker.judge(random_chunk(spec, number, CHUNK))
            marks.append(resident() / 2**20)
    return {f"resident MiB, {spec.operator}": marks, "peak MiB": (peak() / 2**20,)}


def shown(rounds: Rounds) -> Iterator[Row]:
    """After a tenth of the cases and at the end."""
    for name, marks in rounds.items():
        if not name.startswith("resident MiB, "):
            continue
        tenth = max(len(marks) // 10, 1)
        before, after = statistics.median(marks[tenth : 2 * tenth + 1]), statistics.median(marks[-tenth:])
        growth = after / before - 1.0
        yield Row(
            what=f"memory of a worker over {len(marks) * CHUNK:,} cases of {short_name(name.partition(', ')[2])}, "
            "after a tenth and at the end",
            figure=f"{before:.0f} and {after:.0f} MiB ({growth:+.1%}; peak {rounds['peak MiB'][0]:.0f} MiB)",
            goal=f"flat: {FLAT:+.0%} at most",
            missed=growth > FLAT,
        )
