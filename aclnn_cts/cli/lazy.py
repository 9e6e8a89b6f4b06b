"""A click group whose commands are imported when they are called, so that help costs no import of what they need."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click

from aclnn_cts.core.errors import nearest
from aclnn_cts.core.printable import shown


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
                f"{shown(word)} is no command of {ctx.command_path}; expected one of {', '.join(self._entries)}"
                f"{nearest(word, self._entries)}",
                ctx,
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(entry.name, entry.help) for entry in self._entries.values()])
