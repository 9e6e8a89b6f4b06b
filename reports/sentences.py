"""The verdict in a sentence, and notes and failures in Chinese, from codes and values."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping

from markupsafe import Markup

from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.printable import number_text
from aclnn_cts.core.verdict import TOLERANCE_FACT, Deviation, OutOfScope, RunVerdict, ToleranceResult
from aclnn_cts.reports.model.acceptance import Acceptance, RunFacts
from aclnn_cts.reports.model.acceptance_rows import FindingCard
from aclnn_cts.reports.text import (
    LANGUAGES,
    Language,
    chinese_sentence,
    count_text,
    error_ratio_text,
    phrase,
    spans,
    words,
)

_CAUSES = 3
"""Causes of a verdict that its sentence names."""


def verdict_text(report: Acceptance, language: Language) -> str:
    """What the runs together come to, in one sentence."""
    ends = report.ends
    figures = {
        "judged": count_text(ends.judged),
        "with_result": count_text(ends.passed + ends.failed),
        "passed": count_text(ends.passed),
        "waived": count_text(ends.judged_waived),
        "unwaived": count_text(ends.unwaived),
        "findings": _findings(len(report.unwaived_findings if ends.unwaived else report.findings), language),
        "clauses": count_text(len(report.clauses)),
        **{name: count_text(report.counted(name)) for name in ("met", "contradicted", "untested")},
        "but": "",
    }
    if why := insufficiency(report, language):
        figures["but"] = phrase("sentence.but", language, what=why)
    verdict = report.verdict
    if verdict == RunVerdict.INCONCLUSIVE or (verdict == RunVerdict.FAILS and not ends.unwaived):
        address = "sentence.fails_violation" if verdict == RunVerdict.FAILS else "sentence.inconclusive"
        return phrase(address, language, reason=_causes(report, language), but=figures["but"])
    return phrase(f"sentence.{verdict.value}", language, **figures)


def verdict_facts(report: Acceptance, language: Language) -> Iterator[tuple[str, str | int]]:
    """The verdict in a word and the findings in numbers, under names that every format uses."""
    yield "verdict", phrase(f"run_verdict.{report.verdict.value}", language)
    yield "findings", len(report.unwaived_findings)
    yield "waived findings", len(report.findings) - len(report.unwaived_findings)


def _findings(number: int, language: Language) -> str:
    return phrase("sentence.finding" if number == 1 else "sentence.findings", language, number=count_text(number))


def _causes(report: Acceptance, language: Language) -> str:
    """Why the runs with the worst verdict have it."""
    notes = dict.fromkeys(
        note_text(note, language).rstrip("。.")
        for run in report.runs
        if run.conclusion.verdict == report.verdict
        for note in run.conclusion.causes
    )
    shown = list(notes)[:_CAUSES]
    if len(notes) > _CAUSES:
        shown.append(phrase("cover.more_causes", language, number=count_text(len(notes) - _CAUSES)))
    return phrase("mark.semi", language).join(shown)


_NAMED = (OutOfScope.OPERATOR, OutOfScope.PRODUCT, OutOfScope.DTYPE, OutOfScope.FORMAT)
"""What is not offered by name, which stands behind the word."""


def outside_text(names: Iterable[str], language: Language) -> str:
    """What an implementation does not offer (`OutOfScope`), in words."""
    return phrase("mark.list", language).join(_not_offered(name, language) for name in names)


def outside_markup(names: Iterable[str]) -> Markup:
    """`outside_text` in both languages."""
    known = list(names)
    return spans(*(outside_text(known, language) for language in LANGUAGES))


def _not_offered(name: str, language: Language) -> str:
    word, _, rest = name.partition(" ")
    if word in _NAMED:
        return f"{phrase(f'outside.{word}', language)} {rest}"
    return phrase(f"outside.{name}", language)


def insufficiency(report: Acceptance, language: Language) -> str:
    """Why acceptance cannot rest on these runs; empty where it can."""
    if report.suffices:
        return ""
    found: list[str] = []
    for run in report.runs:
        found.extend(phrase(f"insufficient.{code}", language, run=run.name) for code in run.insufficient)
        left = [row.operator for row in run.operators if row.found.verdict == RunVerdict.INCONCLUSIVE]
        if left:
            names = phrase("mark.list", language).join(left)
            found.append(phrase("insufficient.operators", language, run=run.name, operators=names))
        elif run.conclusion.verdict == RunVerdict.INCONCLUSIVE and run.finished:
            found.append(phrase("insufficient.inconclusive", language, run=run.name))
    return phrase("mark.semi", language).join(found)


def remark_texts(report: Acceptance, language: Language) -> list[str]:
    """What else a reader of the verdict must know."""
    said = [
        phrase("cover.problem", language, text=note_text(note, language))
        for run in report.runs
        for note in run_notes(run)
    ]
    return [*_remarks(report, language), *dict.fromkeys(said)]


def _remarks(report: Acceptance, language: Language) -> list[str]:
    """Those that follow from the runs' settings."""
    found = []
    if len({run.manifest.adapter for run in report.runs}) > 1:
        found.append(phrase("cover.mixed", language))
    for run in report.runs:
        if run.software:
            found.append(phrase("cover.software", language, run=run.name, product=run.manifest.target.product))
        if edition := run.manifest.settings.get("edition"):
            found.append(phrase("cover.edition", language, run=run.name, edition=edition))
        if run.manifest.settings.get("phases") == 1:
            found.append(phrase("cover.one_phase", language))
        if run.manifest.command == "fuzz":
            found.append(phrase("cover.fuzz_records", language, run=run.name))
        if run.statuses is False:
            found.append(phrase("cover.no_statuses", language, run=run.name))
    return list(dict.fromkeys(found))


def product_text(run: RunFacts, language: Language) -> str:
    """The product that a run is for, and that a software device stood in for it where one did."""
    return (
        phrase("cover.stand_in", language, product=run.manifest.target.product)
        if run.software
        else run.manifest.target.product
    )


def products_text(report: Acceptance, language: Language) -> str:
    """The products of all runs."""
    return phrase("mark.list", language).join(dict.fromkeys(product_text(run, language) for run in report.runs))


def ran_on_text(report: Acceptance, language: Language) -> str:
    """What the implementations say of themselves, each once; empty where none says anything."""
    said = ((run.ran_on_zh if language == "zh" else "") or run.ran_on for run in report.runs)
    return phrase("mark.semi", language).join(dict.fromkeys(filter(None, said)))


def verdict_sentence(report: Acceptance) -> Markup:
    """`verdict_text` in both languages."""
    return spans(*(verdict_text(report, language) for language in LANGUAGES))


def remark_markup(report: Acceptance) -> list[Markup]:
    """`remark_texts` in both languages, with the recorded text behind a note that has no other."""
    notes = dict.fromkeys(note_markup(note, within="cover.problem") for run in report.runs for note in run_notes(run))
    settings = zip(*(_remarks(report, language) for language in LANGUAGES), strict=True)
    return [*(spans(*texts) for texts in settings), *notes]


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
    return told + recorded_markup(note.text) if note.code in _MORE_IN_TEXT else told


def recorded_markup(text: str) -> Markup:
    """An English text of a record, for the Chinese page alone."""
    return Markup(
        '<details class="l recorded" lang="zh"><summary>{}</summary><span lang="en">{}</span></details>'
    ).format(phrase("findings.recorded", "zh"), text)


def _chinese(note: Note) -> str:
    values: dict[str, object] = dict(note.values)
    if note.code == NoteCode.TOTAL:
        values["kind"] = values["kind"] or "—"
    elif note.code == NoteCode.NOTHING_JUDGED:
        values["operator"] = values["operator"] or chinese_sentence("all operators")
    elif note.code == NoteCode.DISPUTE:
        values["second"] = values["second"] or words("said")["beyond float64"]
    return chinese_sentence(note.code or "unsaid", **values)


def tolerance_text(result: ToleranceResult) -> str:
    """What a tolerance measured, or why no figure decided; empty where the record has neither in codes."""
    if result.why:
        return str(words("tolerances")["why"].get(result.why, ""))
    return "、".join(
        chinese_sentence(
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
    return spans(result.message, told or chinese_sentence("unsaid")) + ("" if told else recorded_markup(result.message))


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


_VALUES = Fault.of(Family.VALUES, Family.EQUAL_CALLS) | {Fault.LIMIT_VALUE}
_ENDS = frozenset({CallEnd.SIGNAL, CallEnd.EXIT, CallEnd.MEMORY_LIMIT, CallEnd.DEVICE_FAULT})


def chinese_message(card: FindingCard) -> str:
    """The smallest case's failure in a sentence or two; the meaning of its kind where no figures are recorded."""
    text = _sentence(card)
    facts = card.fault
    if facts.call and facts.calls > 1 and card.record.verdict.kind not in (Fault.STATUS, Fault.LEAK):
        text += chinese_sentence("call", calls=facts.calls, call=facts.call)
    return text


def _sentence(card: FindingCard) -> str:
    kind, facts = card.record.verdict.kind, card.fault
    outcome, state = facts.outcome, facts.state
    worst = _worst(card)
    if kind in _VALUES:
        if worst is None:
            return _meaning(card)
        text = _element(worst)
        if kind == Fault.MODEL:
            text += chinese_sentence("model", basis=phrase(f"basis.{facts.basis or 'unknown'}", "zh"))
        return chinese_sentence("limit", constraint=card.constraint) + text if kind == Fault.LIMIT_VALUE else text
    if kind == Fault.TOLERANCE:
        verdict = card.record.verdict
        name = str(verdict.facts.get(TOLERANCE_FACT, ""))
        result = verdict.tolerances.get(name, {}).get(card.output)
        if result is None:
            return _meaning(card)
        told = tolerance_text(result)
        return chinese_sentence("tolerance", output=card.output, tolerance=name, figures=told and f"：{told}")
    if kind in (Fault.STATUS, Fault.REJECTED):
        return _status(card)
    if kind == Fault.CRASH:
        return chinese_sentence(outcome.ended if outcome.ended in _ENDS else "crash", signal=outcome.signal)
    figures: Mapping[str, tuple[str, dict[str, object]]] = {
        Fault.HANG: ("hang", {"seconds": number_text(outcome.seconds)}),
        Fault.UNWRITTEN: ("unwritten", {"number": state.unwritten}),
        Fault.SHAPE: ("shape", {"form": facts.form}),
        Fault.DTYPE: ("dtype", {"form": facts.form}),
        Fault.GUARD: ("guard", {"before": state.guard_before, "after": state.guard_after, "gap": state.gap}),
        Fault.INPUT: ("input", {"number": state.changed}),
        Fault.LEAK: ("leak", {"number": facts.grown}),
    }
    known = figures.get(kind)
    if known is None or not facts.call or (kind in (Fault.SHAPE, Fault.DTYPE) and not facts.form):
        return _meaning(card)
    return chinese_sentence(known[0], output=card.output, **known[1])


def _element(worst: Deviation) -> str:
    special = isinstance(worst.got, str) or isinstance(worst.expected, str)
    name = "special" if special else "value" if worst.bound else "exact"
    return chinese_sentence(
        name,
        place=worst.place,
        got=number_text(worst.got, 9),
        expected=number_text(worst.expected, 9),
        bound=number_text(worst.bound),
        error_ratio=error_ratio_text(worst.error_ratio),
        beyond=worst.beyond,
        elements=worst.elements,
    )


def _status(card: FindingCard) -> str:
    facts = card.fault
    if not facts.call:
        return _meaning(card)
    names = {"constraint": card.constraint, "returned": facts.returned, "promised": " / ".join(facts.promised)}
    if card.record.verdict.kind == Fault.REJECTED:
        return chinese_sentence("rejected" if facts.returned else "raised", **names)
    if not facts.returned:
        return chinese_sentence("status_raised", **names)
    return chinese_sentence("phase_two" if facts.returned in facts.promised else "status", **names)


def _worst(card: FindingCard) -> Deviation | None:
    deviations = card.record.verdict.deviations
    named = [element for element in deviations if element.output == card.output]
    return next(iter([element for element in (*named, *deviations) if element.beyond] or named), None)


def _meaning(card: FindingCard) -> str:
    return phrase(f"fault.{card.record.verdict.kind}", "zh") + "。"
