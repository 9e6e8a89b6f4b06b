"""The corners of an operator that calls can be at: `corners/STEM.json` beside the specs, which `spec corners` writes.

A run counts which of them it judged. The list is a file, so that a corner that is lost shows in review.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from aclnn_cts.core.outside import read_json
from aclnn_cts.core.regime import Regime
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import digest_with_families, package_folder

CORNERS_FORMAT = "aclnn-cts/corners/1"
QUICK_CALLS = 300
"""Calls of a quick plan at corners, where so many have nine tenths of the pairs of corners."""


class RefusedCorners(msgspec.Struct, frozen=True):
    """Corners that no call can be at."""

    by: str
    """A constraint's id, or why there is no such call."""
    corners: tuple[str, ...]


class ListedFactor(msgspec.Struct, frozen=True):
    """A factor and its corners by their labels."""

    factor: str
    visited: tuple[str, ...] = ()
    """Those that calls are at with every seed."""
    refused: tuple[RefusedCorners, ...] = ()
    """The others."""


class ListedProducts(msgspec.Struct, frozen=True):
    """The corners on products where they are the same."""

    products: tuple[str, ...]
    quick_calls: int
    """Calls of a quick plan until it has nine tenths of the pairs that there are; `QUICK_CALLS` at least."""
    factors: tuple[ListedFactor, ...]

    def reachable_corners(self, *, heavy: bool) -> Iterator[str]:
        """Those that calls of a plan can be at, as `factor: label`; `heavy`: with the size regime of that name."""
        for item in self.factors:
            for label in item.visited:
                if heavy or label != Regime.HEAVY.value:
                    yield corner_text(item.factor, label)


class CornerList(msgspec.Struct, frozen=True):
    """What the file of an operator holds."""

    format: str
    sha256: str
    """Of the spec and its families (`speclang.package.digest_with_families`): a list of others says nothing."""
    groups: tuple[ListedProducts, ...]

    def for_product(self, product: str) -> ListedProducts | None:
        """The corners on a product; None where the document does not name it."""
        return next((item for item in self.groups if product in item.products), None)


def corner_text(factor: str, label: str) -> str:
    """A corner in a case's origin and in a run's counts."""
    return f"{factor}: {label}"


def corners_path(folder: Path, stem: str) -> Path:
    """The file of an operator whose spec lies in `folder`."""
    return folder / "corners" / f"{stem}.json"


def read_corner_list(spec: Spec, folder: Path) -> CornerList | None:
    """The list beside a spec in `folder`; None where there is none, or it is of another spec.

    UsageError for a file that is no list.
    """
    path = corners_path(folder, spec.stem)
    if not path.exists():
        return None
    found = read_json(path, CornerList, expected="a file that `spec corners --record` wrote", form=CORNERS_FORMAT)
    return found if found.sha256 == digest_with_families(spec.text) else None


def recorded_corners(spec: Spec, product: str) -> ListedProducts | None:
    """The corners of an operator that ships on a product; None for a spec of a user's own."""
    found = read_corner_list(spec, package_folder())
    return found.for_product(product) if found is not None else None


def corner_list_text(found: CornerList) -> bytes:
    """The content of the file."""
    return msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"
