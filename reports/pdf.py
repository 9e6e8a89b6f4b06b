"""The signing edition as PDF, printed by an installed Chromium or Chrome."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.signing import signing_bytes
from aclnn_cts.reports.text import Language

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_SECONDS = 120
_ARGUMENTS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-pdf-header-footer",
)
_DATES = re.compile(rb"/(CreationDate|ModDate) \(D:\d{14}([^)]*)\)")


def browser() -> str | None:
    """The program that prints pages; None where none is installed."""
    return next((path for name in _BROWSERS if (path := shutil.which(name))), None)


def pdf_bytes(report: Acceptance, rows: object, language: Language) -> bytes:
    """The signing edition on sheets of A4; the same runs and the same browser give the same bytes.

    Raises HarnessError where no browser is installed, or it prints nothing.
    """
    program = browser()
    if program is None:
        raise HarnessError(
            "--format pdf: needs Chromium or Chrome, which is not installed; install it, or write the signing edition "
            "as HTML (--format signing) and print that from a browser"
        )
    with tempfile.TemporaryDirectory(prefix="aclnn-cts-pdf-", ignore_cleanup_errors=True) as name:
        page, made = Path(name, "signing.html"), Path(name, "signing.pdf")
        page.write_bytes(signing_bytes(report, rows, language))
        # Chromium's own sandbox does not start for root; the page has no script and loads nothing.
        unboxed = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [program, *_ARGUMENTS, *unboxed, f"--user-data-dir={name}/profile", f"--print-to-pdf={made}"]
        try:
            ended = subprocess.run(  # noqa: S603 - an installed browser, and a page of ours
                [*command, page.as_uri()], check=False, capture_output=True, timeout=_SECONDS, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HarnessError(f"--format pdf: {program} printed nothing: {error}") from None
        if not made.is_file():
            last = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise HarnessError(f"--format pdf: {program} printed nothing: {' '.join(last) or ended.returncode}")
        return _undated(made.read_bytes(), report)


def _undated(content: bytes, report: Acceptance) -> bytes:
    """The document with the moment of the last run in place of the moment of printing."""
    moment = re.sub(r"\D", "", max(run.manifest.started for run in report.runs)[:19]).encode()
    return _DATES.sub(rb"/\1 (D:" + moment + rb"\2)", content)
