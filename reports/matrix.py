"""The matrix of runs: implementations and versions by operator, each cell a verdict that opens its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aclnn_cts.core.printable import printable_document, printable_json
from aclnn_cts.reports.html import STYLE_ONLY, templates
from aclnn_cts.reports.model.acceptance import RunFacts, VerdictRow
from aclnn_cts.reports.text import Language, phrase

FORMAT = "aclnn-cts/matrix/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRun:
    """A run, and the page with its evidence."""

    run: RunFacts
    page: str
    """The file beside the matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """What one run says of one operator."""

    verdict: str
    percent: int
    """Of the trials that must be judged, those that were."""
    failed: int
    """Trials, without those that a waiver accepts."""
    waived: int
    started: str
    finished: bool
    address: str
    """Of the evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixColumn:
    """One implementation in one version on one product."""

    adapter: str
    version: str
    product: str
    profile: str
    pages: tuple[str, ...]
    """Of its runs, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """All cells, the newest run of each first."""

    columns: tuple[MatrixColumn, ...]
    operators: tuple[str, ...]
    cells: dict[tuple[str, int], tuple[MatrixCell, ...]]
    """By operator and number of the column."""


def matrix_of(runs: Sequence[MatrixRun]) -> Matrix:
    """The matrix of some runs: those of one adapter, version, product and profile share a column."""
    newest = sorted(runs, key=lambda item: item.run.manifest.started, reverse=True)
    grouped: dict[tuple[str, str, str, str], list[MatrixRun]] = {}
    for item in newest:
        grouped.setdefault(_column_of(item.run), []).append(item)
    keys = sorted(grouped)
    cells: dict[tuple[str, int], list[MatrixCell]] = {}
    for place, key in enumerate(keys):
        for item in grouped[key]:
            for row in item.run.operators:
                if row.found.counts.cases:
                    cells.setdefault((row.operator, place), []).append(_cell(item, row))
    return Matrix(
        columns=tuple(
            MatrixColumn(adapter=key[0], version=key[1], product=key[2], profile=key[3], pages=_pages(grouped[key]))
            for key in keys
        ),
        operators=tuple(sorted({operator for operator, _ in cells})),
        cells={key: tuple(found) for key, found in cells.items()},
    )


def _pages(runs: Sequence[MatrixRun]) -> tuple[str, ...]:
    return tuple(item.page for item in runs)


def _column_of(run: RunFacts) -> tuple[str, str, str, str]:
    return run.manifest.adapter, run.version, run.manifest.target.product, run.manifest.profile or ""


def _cell(item: MatrixRun, row: VerdictRow) -> MatrixCell:
    return MatrixCell(
        verdict=row.found.verdict.value,
        percent=row.percent,
        failed=row.ends.unwaived,
        waived=row.ends.waived,
        started=item.run.manifest.started,
        finished=item.run.finished and not item.run.interrupted,
        address=f"{item.page}#trace-{row.operator}",
    )


def matrix_json(matrix: Matrix) -> bytes:
    """The same for programs."""
    document = {
        "format": FORMAT,
        "columns": [
            {"adapter": item.adapter, "version": item.version, "product": item.product, "profile": item.profile}
            for item in matrix.columns
        ],
        "cells": [
            {
                "operator": operator,
                "column": column,
                "runs": [
                    {
                        "verdict": cell.verdict,
                        "judged_percent": cell.percent,
                        "failed": cell.failed,
                        "waived": cell.waived,
                        "started": cell.started,
                        "finished": cell.finished,
                        "evidence": cell.address,
                    }
                    for cell in cells
                ],
            }
            for (operator, column), cells in sorted(matrix.cells.items())
        ],
    }
    return printable_json(json.dumps(document, ensure_ascii=False, indent=1)).encode() + b"\n"


def matrix_bytes(matrix: Matrix, language: Language) -> bytes:
    """The page in one language; it opens without a server."""

    def word(address: str) -> str:
        return phrase(address, language)

    page = (
        templates()
        .get_template("matrix.html")
        .render(matrix=matrix, rows=list(_rows(matrix)), word=word, look=_look, language=language, policy=STYLE_ONLY)
    )
    return printable_document(page).encode()


def _look(cell: MatrixCell) -> str:
    """The class of a cell: a run that did not end has no colour of a verdict."""
    return cell.verdict if cell.finished else "unfinished"


def _rows(matrix: Matrix) -> Iterator[tuple[str, list[tuple[MatrixCell, ...]]]]:
    for operator in matrix.operators:
        yield operator, [matrix.cells.get((operator, place), ()) for place in range(len(matrix.columns))]
