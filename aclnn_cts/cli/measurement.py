"""What the commands share that measure the harness: their options, and where a measurement goes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from aclnn_cts.cli.options import output_file
from aclnn_cts.cli.output import console
from aclnn_cts.core.errors import UsageError
from aclnn_cts.store.output_file import Recognizer

operators_option = click.option("--op", "operators", multiple=True, metavar="OP", help="Only these operators.")
profile_option = click.option(
    "--profile", "profile_name", default="quick", show_default=True, metavar="NAME", help="quick, standard or thorough."
)


def workers_option(text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`--workers`: so many processes."""
    return click.option("--workers", default=2, show_default=True, type=click.IntRange(1, 256), metavar="N", help=text)


def min_kill_rate_option(default: float, text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`--min-kill-rate`: a share."""
    return click.option(
        "--min-kill-rate",
        "share",
        default=default,
        show_default=True,
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help=text,
    )


class Destination:
    """Where a measurement goes: to a file, and as JSON or as text to the screen.

    UsageError where the file is one that must not be replaced, or is the standard output that holds the JSON.
    """

    def __init__(self, out: Path | None, *, as_json: bool, written_by_us: Recognizer) -> None:
        self._output = None if out is None else output_file(out, written_by_us=written_by_us)
        self._as_json = as_json
        self._printed_there = self._output is not None and self._output.is_standard_output
        if self._printed_there and as_json:
            raise UsageError(f"-o {out}: standard output holds what --json prints; name a file, or leave -o out")

    def take(self, document: bytes, *, show: Callable[[Console], None]) -> None:
        """Write the document where it is wanted; `show` prints it for a person."""
        if self._output is not None:
            self._output.write(document)
        if self._as_json:
            sys.stdout.write(json.dumps(json.loads(document), ensure_ascii=False, separators=(",", ":")) + "\n")
        else:
            show(console(errors=self._printed_there))
