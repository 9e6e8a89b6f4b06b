"""What runs, records, comparisons and tolerances note, said in Chinese from codes and values."""

from __future__ import annotations

import functools
import re

from markupsafe import Markup

from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.core.printable import number_text
from aclnn_cts.core.verdict import ToleranceResult
from aclnn_cts.reports.model.acceptance import RunFacts
from aclnn_cts.reports.text import Language, phrase, said, spans, words
from aclnn_cts.triage.comparison import Because, Cause, CauseCount

_MORE_IN_TEXT = frozenset({"", NoteCode.HARNESS, NoteCode.NOT_RUN})
"""Codes of notes whose recorded text says more than the code and the values do."""


def run_notes(run: RunFacts) -> tuple[Note, ...]:
    """What a run says of itself: violations, problems and totals that do not add up."""
    return tuple(run_note(run, text) for text in (*run.violations, *run.problems, *run.discrepancies))


def run_note(run: RunFacts, text: str) -> Note:
    """The note of a text; one without a code where the run is of an earlier version of the harness."""
    return run.notes.get(text, Note(text))


def note_text(note: Note, language: Language) -> str:
    """The note as plain text."""
    if language == "en":
        return note.text
    told = _chinese(note)
    return f"{told}（{note.text}）" if note.code in _MORE_IN_TEXT else told


def note_markup(note: Note, *, within: str = "") -> Markup:
    """The note in both languages; the recorded text stands behind the Chinese one where that says less.

    `within` is the address of a phrase that holds it as `{text}`.
    """
    texts = (note.text, _chinese(note))
    if within:
        texts = (phrase(within, "en", text=texts[0]), phrase(within, "zh", text=texts[1]))
    told = spans(*texts)
    return told + recorded(note.text) if note.code in _MORE_IN_TEXT else told


def recorded(text: str) -> Markup:
    """An English text of a record, for the Chinese page alone."""
    return Markup(
        '<details class="l recorded" lang="zh"><summary>{}</summary><span lang="en">{}</span></details>'
    ).format(phrase("findings.recorded", "zh"), text)


def _chinese(note: Note) -> str:
    values: dict[str, object] = dict(note.values)
    if note.code == NoteCode.TOTAL:
        values["kind"] = values["kind"] or "—"
    elif note.code == NoteCode.NOTHING_JUDGED:
        values["operator"] = values["operator"] or said("all operators")
    elif note.code == NoteCode.DISPUTE:
        values["second"] = values["second"] or words("said")["beyond float64"]
    return said(note.code or "unsaid", **values)


def because_text(cause: CauseCount) -> str:
    """What the records show of a change; empty where they do not say it in codes (an earlier version's comparison)."""
    if not cause.seen:
        return ""
    seen = said(cause.seen)
    if cause.differs:
        names = "、".join(cause.differs)
        return said("further" if cause.further else "differs", seen=seen, names=names, number=cause.further)
    if cause.seen in Because.UNSTEADY:
        return seen
    return said("nothing differs" if cause.cause == Cause.CHANCE else "nothing explains", seen=seen)


def tolerance_text(result: ToleranceResult) -> str:
    """What a tolerance measured, or why no figure decided; empty where the record has neither in codes."""
    if result.why:
        return str(words("tolerances")["why"].get(result.why, ""))
    return "、".join(
        said(
            "figure",
            name=_figure_name(item.name),
            value=number_text(item.value),
            relation=item.relation,
            limit=number_text(item.limit),
        )
        for item in result.figures
    )


def tolerance_markup(result: ToleranceResult) -> Markup:
    """What a tolerance says in both languages; the recorded text where that is all there is."""
    told = tolerance_text(result)
    return spans(result.message, told or said("unsaid")) + ("" if told else recorded(result.message))


def tolerance_source(name: str, source: str) -> str:
    """Where a tolerance is from; the title of a work stands as it is."""
    return str(words("tolerances")["sources"].get(name, source))


@functools.cache
def _figure_name(name: str) -> str:
    """The name of a tolerance's figure in Chinese; an unknown one as it is."""
    known = words("tolerances")["figures"]
    if name in known:
        return str(known[name])
    for pattern, chinese in known.items():
        if "{n}" in pattern:
            found = re.fullmatch(re.escape(pattern).replace(re.escape("{n}"), r"(\S+)"), name)
            if found is not None:
                return str(chinese.format(n=found[1]))
    return name
