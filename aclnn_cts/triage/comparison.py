"""What changed between two runs, as `compare` and the report show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from aclnn_cts.core.fingerprint import Fingerprint


class FindingState:
    """What became of a finding (values of `FindingChange.state`)."""

    NEW = "new"
    """It fails in the second run alone."""
    FIXED = "fixed"
    """No trial fails like that any more, and at least one that did now passes."""
    STILL = "still failing"
    """It fails in both runs."""
    GONE = "not seen again"
    """It fails in the first run alone, and none of its trials passes in the second: nothing shows that it is mended."""


class ManifestDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One fact of the manifests that is not the same."""

    name: str
    """Dotted: `environment.adapter.version`, `specs.softmax_backward.yaml`, `seed`."""
    before: Any
    """Plain JSON values; None where the run does not state it."""
    after: Any
    before_zh: str = ""
    """In Chinese, where it is a sentence of an adapter's; empty elsewhere, as is `after_zh`."""
    after_zh: str = ""


class RunSide(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs."""

    path: str
    command: str
    adapter: str
    products: tuple[str, ...]
    ran_on: str
    """What the implementation says of itself in a line; empty where it says nothing."""
    ran_on_zh: str = ""
    """The same in Chinese, where the implementation says it."""
    software: bool
    """Whether a software device stood in for the products."""
    profile: str
    seed: int
    started: str
    harness: str
    finished: bool
    """False: killed, or still under way. Trials that it lacks may only not have been reached."""
    verdict: str
    cases: int
    passed: int
    failed: int
    waived: int
    errors: int
    skipped: int
    out_of_scope: int


class FindingChange(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a finding of both runs' failures. A trial counts once in a run, whatever often it was run."""

    fingerprint: Fingerprint
    """Of most of them."""
    state: str
    fingerprints: tuple[Fingerprint, ...] = ()
    """Of all of them."""
    before: int = 0
    """Trials that fail like this in the first run."""
    after: int = 0
    still: int = 0
    """Of the trials of both runs: fail like this in both."""
    new: int = 0
    """Of the trials of both runs: fail like this in the second and did not fail in the first."""
    fixed: int = 0
    """Of the trials of both runs: failed like this in the first and pass in the second."""
    otherwise: int = 0
    """Of the trials of both runs: fail like this in one and in another way in the other."""
    unjudged: int = 0
    """Of the trials of both runs: failed like this in the first and have no verdict in the second."""
    added: int = 0
    """Fail like this and are trials of the second run alone."""
    removed: int = 0
    """Failed like this and are trials of the first run alone."""
    waivers_before: tuple[str, ...] = ()
    waivers_after: tuple[str, ...] = ()
    unwaived_before: int = 0
    unwaived_after: int = 0
    trials: tuple[str, ...] = ()
    """Ids of a few, those that changed first."""


class EndChange(msgspec.Struct, frozen=True, kw_only=True):
    """Trials of both runs that ended otherwise without failing in the second, other than by being fixed."""

    operator: str
    check: str
    before: str
    """`passed`, `failed`, `error`, or `skipped: REASON`."""
    after: str
    number: int
    trials: tuple[str, ...] = ()


class CaseCount(msgspec.Struct, frozen=True, kw_only=True):
    """Trials of one of the runs alone."""

    operator: str
    product: str
    check: str
    kind: str
    number: int
    failed: int


class WorstErrorRatio(msgspec.Struct, frozen=True, kw_only=True):
    """The largest error ratio of a group."""

    error_ratio: float | str = msgspec.field(name="share")
    """A number, or `inf`."""
    output: str
    trial: str


class ErrorRatioChange(msgspec.Struct, frozen=True, kw_only=True):
    """How the errors of trials that pass in both runs moved within their bounds."""

    operator: str
    mode: str
    dtype: str
    trials: int
    """Passing in both runs."""
    rose: int
    fell: int
    before: WorstErrorRatio
    after: WorstErrorRatio


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs side by side. Trials are the same where their ids are."""

    before: RunSide
    after: RunSide
    common: int
    """Trials of both runs."""
    differences: tuple[ManifestDifference, ...]
    findings: tuple[FindingChange, ...]
    """New ones first, then those still failing, fixed, and not seen again."""
    ends: tuple[EndChange, ...]
    added: tuple[CaseCount, ...]
    removed: tuple[CaseCount, ...]
    error_ratio_changes: tuple[ErrorRatioChange, ...] = msgspec.field(name="shares")
    """Groups in which any error ratio moved."""

    @property
    def plans_differ(self) -> bool:
        """Whether runs of two seeds have few trials in common: a new failure then is mostly of a trial not run before.

        Of campaigns, which keep few records, this cannot be told.
        """
        if self.before.seed == self.after.seed or "fuzz" in (self.before.command, self.after.command):
            return False
        totals = self.totals()
        return 4 * self.common < totals["added_cases"] + totals["removed_cases"]

    @property
    def otherwise(self) -> int:
        """Trials that fail in both runs, and not in the same way; each stands in two findings."""
        return sum(item.otherwise for item in self.findings) // 2

    @property
    def changed(self) -> bool:
        """Whether any trial was added, removed, ended otherwise, or moved within its bound."""
        totals = self.totals()
        return bool(
            totals["new_failures"]
            or totals["fixed"]
            or self.otherwise
            or self.ends
            or self.added
            or self.removed
            or self.error_ratio_changes
            or any(item.waivers_before != item.waivers_after for item in self.findings)
        )

    def totals(self) -> Mapping[str, int]:
        """The figures that a reader wants first."""
        return {
            "common": self.common,
            # Trials that fail in the second run and did not in the first, those of the second run alone included.
            "new_failures": sum(item.new + item.added for item in self.findings),
            # Trials of both runs that failed and now pass.
            "fixed": sum(item.fixed for item in self.findings),
            # In the same way or in another.
            "still_failing": sum(item.still for item in self.findings) + self.otherwise,
            "other_ends": sum(item.number for item in self.ends),
            # Trials of one of the runs alone.
            "added_cases": sum(item.number for item in self.added),
            "removed_cases": sum(item.number for item in self.removed),
            "moved_shares": sum(item.rose + item.fell for item in self.error_ratio_changes),
        }
