"""The verdict on a clause, from all trials that test it."""

from __future__ import annotations


class ClauseVerdict:
    """What the trials say of a clause (values of `ClauseRow.verdict`)."""

    MET = "met"
    CONTRADICTED = "contradicted"
    UNTESTED = "untested"
    OPEN = "open"
    """The document leaves it open: whatever an implementation does, it keeps it."""


class UntestedReason:
    """Why no trial says anything of a clause (values of `ClauseRow.reason`)."""

    UNREACHABLE = "unreachable"
    """No test can show it; the spec says why."""
    NOT_RUN = "not run"
    """No trial of its operator, or of its check, was planned."""
    PRODUCT = "other product"
    """It, or its constraints, are stated for other products than those that were run."""
    CONDITION = "condition not met"
    """No trial met its condition."""
    SKIPPED = "skipped"
    """Its trials have no verdict; `ClauseRow.skipped` counts the reasons."""
    MOSTLY = "mostly skipped"
    """Most of its trials have no verdict."""
    PLAIN_CALL = "plain call"
    """Most of its trials show failures that the plain call has too."""
    OTHER_CALLS = "other calls"
    """Most of its trials show failures that calls have too which it is not about."""
    ONE_SIDE = "one side"
    """A constraint of it was never broken, or never held."""
