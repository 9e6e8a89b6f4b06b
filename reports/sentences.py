"""The verdict in a sentence, and what a reader must know beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markupsafe import Markup

from aclnn_cts.core.verdict import OutOfScope, RunVerdict
from aclnn_cts.reports.model.acceptance import Acceptance, RunFacts
from aclnn_cts.reports.notes import note_markup, note_text, run_notes
from aclnn_cts.reports.text import LANGUAGES, Language, count_text, phrase, spans

_CAUSES = 3
"""Causes of a verdict that its sentence names."""


def verdict_text(report: Acceptance, language: Language) -> str:
    """What the runs together come to, in one sentence."""
    ends = report.ends
    figures = {
        "judged": count_text(ends.judged),
        "passed": count_text(ends.passed),
        "waived": count_text(ends.waived),
        "unwaived": count_text(ends.unwaived),
        "findings": _findings(len(report.unwaived_findings if ends.unwaived else report.findings), language),
        "clauses": count_text(sum(row.in_scope for row in report.clauses)),
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


def outside(names: Iterable[str]) -> Markup:
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


def remarks(report: Acceptance) -> list[Markup]:
    """`remark_texts` in both languages, with the recorded text behind a note that has no other."""
    notes = dict.fromkeys(note_markup(note, within="cover.problem") for run in report.runs for note in run_notes(run))
    settings = zip(*(_remarks(report, language) for language in LANGUAGES), strict=True)
    return [*(spans(*texts) for texts in settings), *notes]
