"""A report of many operators, made from one of a few: its rows under other names, its numbers multiplied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_rows import FindingCard
from aclnn_cts.store.counts import Counts

_WORDS = ("Conv", "Embedding", "Gather", "Index", "LayerNorm", "Pool", "Reduce", "Scatter", "Softmax", "Upsample")


def many(report: Acceptance, operators: int, records: int) -> Acceptance:
    """The report as if of so many operators and records."""
    shown = {row.operator for run in report.runs for row in run.operators}
    faulty = {card.operator for card in report.findings}
    # Those with findings come first: there may be fewer names than operators.
    sources = sorted(
        (part.operator for part in report.operators if part.operator in shown), key=lambda name: name not in faulty
    )
    times = -(-records // max(report.ends.cases * operators // len(sources), 1))
    names = {
        f"aclnn{_WORDS[number % len(_WORDS)]}Number{number}Backward": sources[number % len(sources)]
        for number in range(operators)
    }

    def again(rows: tuple[Any, ...]) -> Iterator[Any]:
        shared = [row for row in rows if row.operator not in sources]
        for name, source in names.items():
            yield from (_counted(replace(row, operator=name), times) for row in rows if row.operator == source)
        yield from shared

    cards: list[FindingCard] = []
    for name, source in names.items():
        for card in report.findings:
            if card.operator == source:
                number = len(cards) + 1
                clauses = tuple((name if operator else "", at) for operator, at in card.clauses)
                file = f"{card.file.removesuffix('.json')}{number:010x}.json"
                trial = f"{number:016x}{card.trial_id[16:]}"
                card_again = replace(card, id=f"F{number}", operator=name, clauses=clauses, file=file, trial_id=trial)
                cards.append(card_again)
    known: dict[str, str] = {}
    for card in cards:
        known.setdefault(card.operator, card.id)

    def linked(rows: Iterator[Any]) -> tuple[Any, ...]:
        """With links to findings of the report."""
        return tuple(
            replace(
                row, findings={known[row.operator]: 1} if row.findings and row.operator in known else {}, specific=()
            )
            if isinstance(row.findings, dict)
            else replace(row, findings=(known[row.operator],) if row.findings and row.operator in known else ())
            for row in rows
        )

    run = report.runs[0]
    verdicts = [
        replace(row, operator=name) for name, source in names.items() for row in run.operators if row.operator == source
    ]
    return replace(
        report,
        runs=(replace(run, operators=tuple(verdicts), ends=_times(run.ends, times)),),
        ends=_times(report.ends, -(-times * operators // len(sources))),
        operators=tuple(again(report.operators)),
        checks=linked(again(report.checks)),
        clauses=linked(again(report.clauses)),
        constraints=linked(again(report.constraints)),
        precision=tuple(again(report.precision)),
        coverage=tuple(again(report.coverage)),
        determinism=(),
        findings=tuple(cards),
    )


def _counted(row: Any, times: int) -> Any:
    return replace(row, ends=_times(row.ends, times)) if hasattr(row, "ends") else row


def _times(ends: Counts, times: int) -> Counts:
    return msgspec.structs.replace(
        ends,
        **{
            name: getattr(ends, name) * times
            for name in ("cases", "passed", "failed", "waived", "errors", "skipped", "out_of_scope")
        },
    )
