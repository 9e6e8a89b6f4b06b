"""What finished chunks teach those that are made after them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from aclnn_cts.campaign.corpus.check_coverage import Covered
from aclnn_cts.campaign.corpus.chunk import Parent, Wish

PARENTS = 24
"""Good cases that an operator keeps."""

ALIKE = 6
"""Of these, those that one configuration made: neighbours of one case must not push all others out."""

WISHES = 400
"""Uncovered pairs that a snapshot names for an operator."""


class Learned(msgspec.Struct):
    """What the trials of one operator have shown: of a chunk, or of all chunks so far."""

    covered: Covered = msgspec.field(default_factory=Covered)
    parents: tuple[Parent, ...] = ()
    worst: float = 0.0
    """The largest error of what conforms, as a share of its bound."""
    judged: int = 0

    def include(self, other: Learned) -> None:
        """Add what other trials have shown."""
        self.covered.include(other.covered)
        self.parents = best([*self.parents, *other.parents])
        self.worst = max(self.worst, other.worst)
        self.judged += other.judged


def best(parents: Iterable[Parent]) -> tuple[Parent, ...]:
    """The parents to keep: the worst share first, not too many of one configuration; the same in any order."""
    kept: list[Parent] = []
    alike: dict[bytes, int] = {}
    seen: set[tuple[int, ...]] = set()
    for parent in sorted(parents, key=lambda item: (-item.share, item.values)):
        configuration = msgspec.msgpack.encode(parent.configuration, order="sorted")
        if parent.values in seen or alike.get(configuration, 0) >= ALIKE:
            continue
        seen.add(parent.values)
        alike[configuration] = alike.get(configuration, 0) + 1
        kept.append(parent)
        if len(kept) == PARENTS:
            break
    return tuple(kept)


class Snapshot(msgspec.Struct, frozen=True):
    """What chunks are made from beside seed and index: by operator, the pairs that are missing and the good cases."""

    generation: int
    wishes: Mapping[str, tuple[Wish, ...]] = {}
    parents: Mapping[str, tuple[Parent, ...]] = {}


def snapshot_id(snapshot: Snapshot) -> str:
    """A hash of its contents."""
    return hashlib.sha256(msgspec.msgpack.encode(snapshot, order="sorted")).hexdigest()[:16]
