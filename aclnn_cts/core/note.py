"""A sentence of ours about a run or a trial, with the codes and values from which a report says it in Chinese."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class NoteCode:
    """What a note says (values of `Note.code`), and the names of its values."""

    EXPIRED = "expired"
    """`waiver`, `owner`, `expiry`."""
    NEVER_HELD = "never held"
    """`operator`, `id` of the constraint."""
    NEVER_BROKEN = "never broken"
    """`operator`, `id` of the constraint."""
    TOTAL = "total"
    """`operator`, `kind` of case (may be empty), `planned`, `ended`."""
    DISPUTE = "dispute"
    """Two oracles differ: `place` in an output, and what the `first` and the `second` say of it (empty: beyond
    float64)."""
    NOT_RUN = "not run"
    """A call was not made, so that its trial has no verdict."""
    HARNESS = "harness"
    """The harness failed; the text says how."""
    UNFINISHED = "unfinished"
    """The run did not come to its end."""
    NOTHING_JUDGED = "nothing judged"
    """`operator` (empty: of the whole run)."""
    NOT_OFFERED = "not offered"
    """`operator`, which the adapter declared not to offer."""
    UNSUPPORTED = "unsupported"
    """`operator`, whose document does not name the product."""
    ERRORS = "errors"
    """`operator`, `n`: trials that ended in an error."""
    FAULTS = "faults"
    """`operator`, `n`: failures that are not waived."""
    FEW_JUDGED = "few judged"
    """`operator`, `judged`, `counted`, `share` and `least` (percent)."""
    DTYPE = "dtype unjudged"
    """`operator`, `dtypes` (parameters with their dtypes)."""
    RULE = "rule unjudged"
    """`operator`, `n` rules `of` those that the document lists, `id` of one of them."""
    CORNER = "corner unjudged"
    """`operator`, `n` corners, one `corner` of them."""
    NO_BENCHMARK = "no benchmark"
    """`operator`, of which no call was answered by the `benchmark`, an adapter."""


class Note(msgspec.Struct, frozen=True):
    """One sentence."""

    text: str
    """In English, as summaries and records hold it and terminals show it."""
    code: str = ""
    """Empty where the records hold the text alone."""
    values: Mapping[str, str | int] = {}
