"""How far an operator is encoded: which of the demands on a complete one it meets.

An operator is complete where every statement of its document is claimed by a clause or has a reason, at most a quarter
of them a reason, its oracle states a formula, and `oracle check` found no fault in the oracle as it is. (Its page is
made from its spec by `make docs`, which a test holds to all specs.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from aclnn_cts.document.claims import Claims, claims_path, edition_of, read_claims
from aclnn_cts.oracle_check.record import has_formula, is_checked
from aclnn_cts.speclang.load import load_specs, package_folder
from aclnn_cts.speclang.model import Spec

MOST_UNTESTABLE = 0.25
"""The largest share of statements with a reason why nothing can be tested."""


class Demand(str, Enum):
    """What a complete operator meets."""

    AUDITED = "audited"
    TESTABLE = "testable"
    FORMULA = "formula"
    CHECKED = "oracle check"


@dataclass(frozen=True, slots=True)
class Completeness:
    """How far one operator is."""

    audited: float
    """Share of the statements that are claimed or have a reason; 0 without a claims file."""
    untestable: float
    """Share of the statements that have a reason."""
    missing: tuple[Demand, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every demand is met."""
        return not self.missing


def completeness_of(spec: Spec, folders: Sequence[Path] = ()) -> Completeness:
    """Read the claims, the record of checked oracles and the oracle's file; nothing runs. `folders`: the user's own."""
    home = next((folder for folder in folders if (folder / f"{spec.stem}.yaml").exists()), package_folder())
    claims = _claims(spec, home, folders)
    number = len(claims.claims) if claims is not None else 0
    left = sum(claim.is_open for claim in claims.claims) if claims is not None else 0
    reasons = sum(claim.reason is not None for claim in claims.claims) if claims is not None else 0
    met = {
        Demand.AUDITED: bool(number) and not left,
        Demand.TESTABLE: bool(number) and reasons <= MOST_UNTESTABLE * number,
        Demand.FORMULA: has_formula(spec.stem, folders),
        Demand.CHECKED: is_checked(spec.stem, spec_folder=home, folders=folders),
    }
    missing = tuple(demand for demand, is_met in met.items() if not is_met)
    return Completeness((number - left) / number if number else 0.0, reasons / number if number else 0.0, missing)


def _claims(spec: Spec, home: Path, folders: Sequence[Path]) -> Claims | None:
    path = claims_path(home, spec.stem)
    if not path.exists():
        return None
    edition = edition_of(path)
    return read_claims(path, load_specs(folders, edition=edition).find(spec.stem) if edition else spec)
