"""The entry point: the tree of commands, imported when they are called, and their exit codes."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from aclnn_cts import __version__
from aclnn_cts.cli.streams import silence
from aclnn_cts.core.errors import HarnessError, UsageError, did_you_mean
from aclnn_cts.core.printable import printable_lines, quote
from aclnn_cts.sandbox.interrupts import endings_are_interrupts, forget_interrupt, interrupts_held_back


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """One command: the word for it, where it is, and the line that the group's help shows."""

    name: str
    target: str
    """`module:attribute` of a click command."""
    help: str


class LazyGroup(click.Group):
    """A group over a fixed table of entries. A name that stands twice is a ValueError."""

    def __init__(self, *args: Any, entries: Iterable[CommandEntry] = (), **kwargs: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **{"no_args_is_help": False, **kwargs})
        self._entries: dict[str, CommandEntry] = {}
        for entry in entries:
            if entry.name in self._entries:
                raise ValueError(
                    f"command {entry.name!r} is registered twice: {self._entries[entry.name].target} and {entry.target}"
                )
            self._entries[entry.name] = entry

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a command, show the help on standard error: the call was wrong (exit code 2)."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the table."""
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None where there is none of that name."""
        entry = self._entries.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        with interrupts_held_back():
            command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"command {cmd_name!r}: {entry.target} is {command!r}, not a click command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the words begin with; an unknown one is a usage error that lists the known."""
        word = args[0]
        if word not in self._entries and not word.startswith("-"):
            raise click.UsageError(
                f"{quote(word)} is no command of {ctx.command_path}; expected one of {', '.join(self._entries)}"
                f"{did_you_mean(word, self._entries)}",
                ctx,
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(entry.name, entry.help) for entry in self._entries.values()])


USAGE = 2
NO_VERDICT = 3
INTERRUPTED = 130
READER_GONE = 141
"""128 + SIGPIPE, as 130 is 128 + SIGINT: not 0, because a run whose output broke off has shown no verdict."""

TRACEBACK_VARIABLE = "ACLNN_CTS_TRACEBACK"

COMMANDS = (
    CommandEntry("ops", "aclnn_cts.cli.ops:ops", "List the operators."),
    CommandEntry("spec", "aclnn_cts.cli.main:spec", "Show, draft, audit and check the specs of operators."),
    CommandEntry("oracle", "aclnn_cts.cli.main:oracle", "Check the oracles against what their formulas derive."),
    CommandEntry(
        "clauses", "aclnn_cts.cli.spec_show:clauses", "List every clause of the documents and what encodes it."
    ),
    CommandEntry(
        "validate", "aclnn_cts.cli.validate:validate", "Say what the document promises for the calls in case files."
    ),
    CommandEntry("cases", "aclnn_cts.cli.cases:cases", "Write generated cases, one JSON object per line."),
    CommandEntry("import-atk", "aclnn_cts.cli.cases:import_atk", "Turn ATK case files into case files."),
    CommandEntry("import-calls", "aclnn_cts.cli.cases:import_calls", "Turn calls of a training into case files."),
    CommandEntry("run", "aclnn_cts.cli.run:run", "Run the conformance tests on an implementation."),
    CommandEntry("judge", "aclnn_cts.cli.judge:judge", "Judge functions, libraries or adapters within a budget."),
    CommandEntry("fuzz", "aclnn_cts.cli.fuzz:fuzz", "Run a campaign: hours of trials, one finding per fault."),
    CommandEntry("replay", "aclnn_cts.cli.replay:replay", "Run recorded trials again."),
    CommandEntry("compare", "aclnn_cts.cli.compare:compare", "Say what changed between two runs."),
    CommandEntry(
        "report", "aclnn_cts.cli.report:report", "Write the acceptance report of runs, as a page and in other formats."
    ),
    CommandEntry("matrix", "aclnn_cts.cli.matrix:matrix", "Write what several runs say of each operator, as pages."),
    CommandEntry("waive", "aclnn_cts.cli.main:waive", "Draft a waiver for a finding."),
    CommandEntry("bundle", "aclnn_cts.cli.bundle:bundle", "Pack the evidence of a run into one file."),
    CommandEntry("verify", "aclnn_cts.cli.bundle:verify", "Check a bundle without a device."),
    CommandEntry("shrink", "aclnn_cts.cli.shrink:shrink", "Write the smallest trial that fails the same way."),
    CommandEntry("repro", "aclnn_cts.cli.shrink:repro", "Write a standalone program that reproduces a case."),
    CommandEntry("export", "aclnn_cts.cli.export:export", "Write a test of an operator that needs nothing of ours."),
    CommandEntry("faults", "aclnn_cts.cli.faults:faults", "Measure how many seeded faults (mutants) are found."),
    CommandEntry("mutants", "aclnn_cts.cli.mutants:mutants", "Measure how many generated mutants are found."),
    CommandEntry("doctor", "aclnn_cts.cli.doctor:doctor", "Say what is installed and usable here."),
)


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Conformance tests for the aclnn backward operators: documents in, verdicts out.",
)
@click.version_option(__version__, prog_name="aclnn-cts", message="%(prog)s %(version)s")
def _cli() -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` are the process's own where none are given."""
    _never_fail_to_encode()
    with endings_are_interrupts():
        try:
            words = tuple(sys.argv[1:] if arguments is None else arguments)
            _check_current_folder()
            with _cli.make_context("aclnn-cts", list(words), obj=words) as context:
                result = _cli.invoke(context)
            sys.stdout.flush()
        except click.exceptions.Exit as end:
            return end.exit_code
        except BaseException as error:  # noqa: BLE001 - the last place: every end has its exit code, none is a traceback
            return _ending(error)
        return result if isinstance(result, int) else 0


def _check_current_folder() -> None:
    """Raise UsageError where the folder that paths begin in is gone, or closed to this user."""
    try:
        Path.cwd()
    except OSError as error:
        raise UsageError(
            f"the current folder cannot be found: {error.strerror}; change to a folder that exists"
        ) from None


def _ending(error: BaseException) -> int:
    """Say in a line why a command ended, and give the exit code of that."""
    if isinstance(error, (SystemExit, GeneratorExit)):
        raise error
    if isinstance(error, BrokenPipeError):
        silence(sys.stdout)
        silence(sys.stderr)
        return READER_GONE
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        _say(f"interrupted; {error}" if str(error) else "interrupted")
        forget_interrupt()
        return INTERRUPTED
    shown = _show_traceback(error)
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx is not None else "aclnn-cts"
        _say(f"{_sentence(error.format_message())}\n`{path} --help` shows how it is called")
        return USAGE
    if isinstance(error, (UsageError, click.ClickException)):
        _say(_sentence(error.format_message()) if isinstance(error, click.ClickException) else str(error))
        return USAGE
    if isinstance(error, HarnessError):
        _say(str(error))
    elif isinstance(error, OSError):
        # Whatever opens a file turns its failures into messages of its own; what is left is standard output.
        silence(sys.stdout)
        advice = "; free space on this file system" if error.errno == errno.ENOSPC else ""
        _say(f"{error.filename or 'standard output'}: cannot be written: {error.strerror or error}{advice}")
    else:
        text = " ".join(str(error).split()) or "no message"
        advice = "" if shown else f"; call again with {TRACEBACK_VARIABLE}=1 for the traceback, and report it"
        _say(f"unexpected {type(error).__name__}: {text:.300}: this is a mistake of aclnn-cts itself{advice}")
    return NO_VERDICT


def _say(message: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(f"error: {printable_lines(message)}", err=True)


def _sentence(message: str) -> str:
    """Click's message as ours are written: no capital, no full stop."""
    text = message.strip().removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _show_traceback(error: BaseException) -> bool:
    """Print an exception's traceback where the user asked for it; whether it was."""
    if os.environ.get(TRACEBACK_VARIABLE, "") in ("", "0"):
        return False
    traceback.print_exception(error)
    return True


def _never_fail_to_encode() -> None:
    """Let a terminal that knows no Chinese show escapes instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")


oracle = LazyGroup(
    name="oracle",
    help="Check the oracles against what their formulas derive.",
    entries=(
        CommandEntry("check", "aclnn_cts.cli.oracle_check:check", "Check oracles against what their formulas derive."),
    ),
)
spec = LazyGroup(
    name="spec",
    help="Show, draft, audit and check the specs of operators.",
    entries=(
        CommandEntry("show", "aclnn_cts.cli.spec_show:show", "Show what the document of an operator demands."),
        CommandEntry(
            "corners",
            "aclnn_cts.cli.spec_corners:corners",
            "List the corners of what a document allows, and their calls.",
        ),
        CommandEntry("draft", "aclnn_cts.cli.spec_lint:draft", "Draft a spec from an operator's document."),
        CommandEntry(
            "audit", "aclnn_cts.cli.spec_audit:audit", "List the statements of a document that no clause has."
        ),
        CommandEntry("lint", "aclnn_cts.cli.spec_lint:lint", "Check spec files; mistakes with file and line."),
    ),
)
waive = LazyGroup(
    name="waive",
    help="Draft waivers: known failures that a person answers for until a day.",
    entries=(CommandEntry("add", "aclnn_cts.cli.shrink:add", "Draft a waiver for a finding."),),
)
