"""`aclnn-cts report`: runs as an acceptance report, and in the forms that CI, spreadsheets and merge requests take."""

from __future__ import annotations

import importlib
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

import click

from aclnn_cts.cli.options import OutputPath, command, force_option, output_file
from aclnn_cts.cli.output import begin, note
from aclnn_cts.core.errors import HarnessError, UsageError, did_you_mean
from aclnn_cts.core.printable import quote
from aclnn_cts.store.output_file import STANDARD_OUTPUT, Recognizer, begins_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aclnn_cts.reports.model.acceptance import Acceptance, TrialRow

Rows: TypeAlias = "Callable[[], Iterable[TrialRow]]"
"""The trials of the runs in a stream, anew at each call."""


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """One form of a report: the file that a folder of reports holds, and what makes its bytes."""

    file: str
    target: str
    """`module:function` of `reports`, called with the report, its rows and the language."""
    written_by_us: Recognizer
    """Recognizes a file of this form that `report` has written."""

    @property
    def suffix(self) -> str:
        return Path(self.file).suffix


_PROPERTIES = "docProps/core.xml"
_PROPERTIES_LIMIT = 1 << 16


def _is_our_workbook(file: BinaryIO) -> bool:
    """Whether a workbook was made by us, and by nobody saved since: all workbooks begin alike."""
    try:
        with zipfile.ZipFile(file) as archive, archive.open(_PROPERTIES) as entry:
            properties = entry.read(_PROPERTIES_LIMIT)
    except Exception:  # noqa: BLE001 - whatever is wrong with the archive, it is none of ours
        return False
    marks = (b"<dc:creator>aclnn-cts<", b"<cp:lastModifiedBy>aclnn-cts<")
    return all(mark in properties for mark in marks)


def _page(generator: str) -> Recognizer:
    head = rf'<!DOCTYPE html>\n<html lang="..">.{{0,2000}}?<meta name="generator" content="{generator}">'
    return begins_with(head.encode())


_TITLE = rb"%PDF-.{0,200}?/Title <FEFF004300540053002D"
"""The report's number begins it, in UTF-16."""

FORMS: Mapping[str, ReportFormat] = {
    "html": ReportFormat("report.html", "aclnn_cts.reports.html:html_bytes", _page("aclnn-cts")),
    "signing": ReportFormat("signing.html", "aclnn_cts.reports.signing:signing_bytes", _page("aclnn-cts signing")),
    "pdf": ReportFormat("signing.pdf", "aclnn_cts.reports.signing:pdf_bytes", begins_with(_TITLE)),
    "junit": ReportFormat(
        "junit.xml",
        "aclnn_cts.reports.exporters:junit_bytes",
        begins_with(rb"<\?xml version='1\.0' encoding='utf-8'\?>\n<testsuites name=\"aclnn-cts\""),
    ),
    "sarif": ReportFormat(
        "report.sarif",
        "aclnn_cts.reports.exporters:sarif_bytes",
        begins_with(rb'\{\n "\$schema": "[^"]*sarif[^"]*",.{0,500}?"name": "aclnn-cts"'),
    ),
    "csv": ReportFormat(
        "trials.csv", "aclnn_cts.reports.exporters:csv_bytes", begins_with(b"\xef\xbb\xbfrun,trial_id,operator,")
    ),
    "xlsx": ReportFormat("report.xlsx", "aclnn_cts.reports.workbook:workbook_bytes", _is_our_workbook),
    "markdown": ReportFormat("summary.md", "aclnn_cts.reports.markdown:markdown_bytes", begins_with(b"## aclnn-cts: ")),
    "pr": ReportFormat(
        "pull-request.md",
        "aclnn_cts.reports.pull_request:pull_request_bytes",
        begins_with("### (?:Precision report|精度报告)".encode()),
    ),
    "outline": ReportFormat(
        "test-report.zh.md",
        "aclnn_cts.reports.markdown:outline_bytes",
        begins_with("# aclnn 算子符合性测试报告\n".encode()),
    ),
}
_SUFFIXES = ", ".join(dict.fromkeys(form.suffix for form in FORMS.values()))


@command(example="aclnn-cts report runs/night -o report.pdf")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    metavar="OUT",
    type=OutputPath(),
    help=f"A file whose suffix is the format ({_SUFFIXES}), or a folder for all.",
)
@force_option
@click.option(
    "--format",
    "forms",
    multiple=True,
    metavar="NAME,...",
    help="html (the explorer), signing, pdf, junit, sarif, csv, xlsx, markdown, pr (for a pull request) or outline, "
    "whatever the suffix.",
)
@click.option("--baseline", metavar="DIR", type=click.Path(path_type=Path), help="An earlier run to compare with.")
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="The language to open in."
)
@click.option(
    "--waivers",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Files with the waivers that a run names, besides those shipped; may be given several times.",
)
def report(
    *,
    runs: tuple[Path, ...],
    out: Path,
    forms: tuple[str, ...],
    baseline: Path | None,
    lang: str,
    waivers: tuple[Path, ...],
) -> int:
    """Write the acceptance report of RUN (or of several together): the edition to sign, the explorer, other formats.

    Nothing is judged again: the exit code is 0 where the report was written, whatever it says.
    """
    paths = _paths(out, forms)
    begin(f"report of {', '.join(map(str, runs))}")
    if "pdf" in paths and not forms and len(paths) > 1 and not _prints():
        del paths["pdf"]
        note("note: no signing.pdf: Chromium and Chrome are not installed")
    outputs = {
        name: output_file(path, written_by_us=FORMS[name].written_by_us, make_folder=True)
        for name, path in paths.items()
    }
    makers = {name: _maker(name) for name in outputs}
    from aclnn_cts.reports.model.build import acceptance
    from aclnn_cts.reports.model.runs import trial_rows

    shown = acceptance(runs, waiver_files=waivers, baseline=baseline)
    for name, output in outputs.items():
        output.write(makers[name](shown, lambda: trial_rows(runs, findings=shown.findings), lang))
        note(f"{output}: written")
    return 0


def _prints() -> bool:
    """Whether a browser is installed that prints PDF."""
    _maker("pdf")
    return importlib.import_module("aclnn_cts.reports.signing").browser() is not None


def page(run: Path) -> bytes:
    """The report of one run as a page; HarnessError where the libraries that it takes are not installed."""
    return page_of(run, "en")[1]


def page_of(run: Path, language: str) -> tuple[Acceptance, bytes]:
    """The report of one run, and its page, which opens in a language."""
    make = _maker("html")
    from aclnn_cts.reports.model.build import acceptance
    from aclnn_cts.reports.model.runs import trial_rows

    shown = acceptance((run,))
    return shown, make(shown, lambda: trial_rows((run,), findings=shown.findings), language)


def _paths(out: Path, words: Sequence[str]) -> dict[str, Path]:
    """Which forms go where; UsageError for an unknown form, and for a file that cannot hold all that is asked for."""
    chosen = list(dict.fromkeys(word.strip() for entry in words for word in entry.split(",")))
    for word in chosen:
        if word not in FORMS:
            raise UsageError(f"--format: {quote(word)}; expected any of {', '.join(FORMS)}{did_you_mean(word, FORMS)}")
    is_named_file = out.suffix or out == STANDARD_OUTPUT or os.path.lexists(out)
    if out.is_dir() or not is_named_file:
        return {name: out / FORMS[name].file for name in chosen or FORMS}
    if len(chosen) > 1:
        raise UsageError(f"-o {out}: one file, and {len(chosen)} forms ({', '.join(chosen)}); give a folder")
    if chosen:
        return {chosen[0]: out}
    for name, form in FORMS.items():
        if out.suffix.lower() == form.suffix:
            return {name: out}
    raise UsageError(f"-o {out}: no format has this suffix; expected one of {_SUFFIXES}, a folder, or --format NAME")


def _maker(name: str) -> Callable[[Acceptance, Rows, str], bytes]:
    """The function of a form; HarnessError where the libraries that it takes are not installed."""
    module, _, function = FORMS[name].target.partition(":")
    try:
        found: Callable[[Acceptance, Rows, str], bytes] = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("aclnn_cts"):
            raise
        raise HarnessError(
            f"--format {name}: needs {error.name}, which is not installed; pip install 'aclnn-cts[report]'"
        ) from None
    return found
