"""The cases of a bundle that are judged again: a sample of those whose outputs it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from aclnn_cts.bundle.reading import Problem
from aclnn_cts.bundle.recompute import Recomputer, recorded_outputs
from aclnn_cts.bundle.record_json import record_from_json
from aclnn_cts.bundle.statement import BLOBS, Statement
from aclnn_cts.core.case_json import case_from_json
from aclnn_cts.core.errors import HarnessError, UsageError

__all__ = ["RECOMPUTE_BYTES", "Sample", "judged_again"]

RECOMPUTE_BYTES = 64 * 1024 * 1024
"""Bytes of a case's arguments beyond which it is not judged again: an oracle's time grows faster than they do."""


@dataclass(slots=True)
class Sample:
    """A sample without preference of the records whose outputs the bundle holds, in one pass (Vitter's algorithm R)."""

    size: int
    random: Random
    blobs: frozenset[str] = frozenset()
    """SHA-256 of the outputs that the bundle holds."""
    eligible: int = 0
    chosen: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def begin(self, statement: Statement) -> None:
        """Learn which outputs the bundle holds."""
        names = (subject.name for subject in statement.subject)
        self.blobs = frozenset(name.removeprefix(BLOBS) for name in names if name.startswith(BLOBS))

    def offer(self, record: Mapping[str, Any], where: str) -> None:
        """Count a record (as JSON) if it can be judged again, and choose it or not."""
        needed = recorded_outputs(record)
        if not needed or not self.blobs.issuperset(needed):
            return
        if case_from_json(record["trial"]["case"], where=where).nbytes > RECOMPUTE_BYTES:
            return
        self.eligible += 1
        if len(self.chosen) < self.size:
            self.chosen.append((where, record))
        elif (place := self.random.randrange(self.eligible)) < self.size:
            self.chosen[place] = (where, record)


def judged_again(
    path: Path, sample: Sample, recomputer: Recomputer, statement: Statement, offsets: Mapping[str, int]
) -> Iterator[Problem | None]:
    """For each sampled case of a bundle what is wrong with its verdict, or None."""
    sizes = {subject.name: subject.annotations.size for subject in statement.subject}
    with path.open("rb") as file:

        def blob(digest: str) -> bytes:
            if (size := sizes[f"{BLOBS}{digest}"]) > RECOMPUTE_BYTES:
                raise HarnessError(f"{BLOBS}{digest} has {size} bytes; expected at most {RECOMPUTE_BYTES}")
            file.seek(offsets[f"{BLOBS}{digest}"])
            return file.read(size)

        for where, document in sample.chosen:
            try:
                difference = recomputer.difference(record_from_json(document, where=where), blob)
            except (HarnessError, UsageError, KeyError, ValueError, ArithmeticError) as error:
                difference = f"cannot be judged again: {error!s:.300}"
            yield Problem(where, difference) if difference else None
