"""What a judged candidate comes to: `Judgement`, its findings, and one number for programs that learn from it."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import msgspec

from aclnn_cts.candidates.arrays import plain_json
from aclnn_cts.candidates.cases import CaseArrays


class Isolation(str, Enum):
    """Where a candidate's code ran."""

    CONFINED = "confined"
    """In a process of its own that sees the system, Python, its packages and its own folder, without the suite.

    `missing` says what the system did not allow.
    """
    PROCESS = "process"
    """In a process of its own that holds the specs: adapters and libraries need them, and find no oracle in memory."""
    NONE = "none"
    """In the caller's process (`sandbox=False`): it can read what the caller can, the expected values included."""
    UNOPENED = "unopened"
    """Nowhere: it could not be opened."""


class CandidateFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One mistake of a candidate, shown by its smallest call."""

    fault: str
    """Its code (`docs/verdicts.md`)."""
    sentence: str
    """What is wrong, in one sentence for a person or a program."""
    clause: str = ""
    """The address of the sentence of the document that it contradicts; empty where no one sentence states it."""
    condition: str = ""
    """When it shows, where that was tried; empty where nothing is known."""
    error_ratio: float | str = 0.0
    """Of the worst element: error over bound; 0 where no value was compared."""
    case: CaseArrays | None = None
    """The smallest call, with the contents of its inputs."""
    trial: str = ""
    """Id of the trial, which the same seed makes again."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        document: dict[str, Any] = plain_json(msgspec.structs.replace(self, case=None))
        return document | {"case": None if self.case is None else self.case.to_json()}


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one candidate."""

    verdict: str
    """`conforms`, `fails` or `inconclusive`."""
    candidate: str
    operator: str
    product: str
    seed: int
    """Makes the same calls again."""
    reason: str = ""
    """Why it fails or is inconclusive, in one sentence."""
    findings: tuple[CandidateFinding, ...] = ()
    """As many as `reveal` asks for."""
    planned: int = 0
    """Trials that the profile plans for such a candidate."""
    passed: int = 0
    failed: int = 0
    unjudged: int = 0
    """Trials that were made, and of which the document decides nothing."""
    repeated: int = 0
    """Of all trials that were made, those that repeat one of the plan: with other values, or at other addresses."""
    passed_first: int = 0
    """Trials of the plan that passed before the first failure."""
    error_ratio: float | str = 0.0
    """Of the worst element of all failures: error over bound; 0 where no value was wrong.

    Of an element that must be exact it is the error over half the distance to the next number of its dtype.
    """
    judged_share: float = 0.0
    """Share of the trials made that were judged, without those that the document leaves open."""
    complete: bool = False
    """Whether the whole plan was carried out within the budget."""
    isolation: Isolation = Isolation.CONFINED
    missing: tuple[str, ...] = ()
    """What the system did not allow of the confinement."""
    seconds: float = 0.0
    """From the call of `judge` to its verdict."""
    call_seconds: float = 0.0
    """Of those, spent in the candidate's calls."""

    @property
    def ok(self) -> bool:
        """Whether the candidate conforms."""
        return self.verdict == "conforms"

    def __bool__(self) -> bool:
        return self.ok

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values (`judgement.schema.json`)."""
        document: dict[str, Any] = plain_json(msgspec.structs.replace(self, findings=()))
        return document | {"findings": [item.to_json() for item in self.findings]}


_OF_PASSED, _OF_RATIO = 0.8, 0.1
"""A failing candidate has less than 0.9, so that no wrong one comes near a right one."""


def reward(judgement: Judgement) -> float:
    """One number for programs that learn from verdicts: 1 for a candidate that conforms, else 0 to 0.9.

    0.8 times the share of the planned trials that passed before the first failure, plus 0.1 / (1 + log2 r), where r is
    the largest error ratio of the failures: a failing candidate that is nearly right has more. A failure that is not of
    values adds nothing, and an inconclusive candidate has 0, as a wrong one that passes no trial.
    """
    if judgement.ok:
        return 1.0
    if judgement.verdict != "fails":
        return 0.0
    share = min(judgement.passed_first / max(judgement.planned, 1), 1.0)
    ratio = float(judgement.error_ratio)
    near = 1.0 / (1.0 + math.log2(ratio)) if 1.0 <= ratio < math.inf else 0.0
    return _OF_PASSED * share + _OF_RATIO * near
