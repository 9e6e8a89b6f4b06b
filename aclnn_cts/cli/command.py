"""The class of our commands: help ends with an example, and an option's old name is refused with the new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import click

__all__ = ["RENAMED", "Command", "command"]

RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "--again": "--reshrink",
        "--at-least": "--min-kill-rate",
        "--findings": "--max-findings",
        "--form": "--format",
        "--quiet": "--stop-after-idle",
        "--ruler": "--tolerance",
        "--to-end": "--no-early-stop",
    }
)
"""New names of options by the old ones."""


class Command(click.Command):
    """A command with an example at the end of its help page."""

    def __init__(self, *args: Any, example: str, **kwargs: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **kwargs)
        self.example = example

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; a UsageError names the new option where an old one is given."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            new = RENAMED.get(error.option_name)
            if new is None or not any(new in parameter.opts for parameter in self.params):
                raise
            raise click.UsageError(f"{error.option_name} is now called {new}", ctx) from None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The example, as it is typed."""
        formatter.write_paragraph()
        formatter.write_text("Example:")
        formatter.write(f"  {self.example}\n")


def command(name: str | None = None, *, example: str) -> Callable[[Callable[..., Any]], Command]:
    """Declare a function as a command whose help page ends with `example`, a command line."""
    return click.command(name, cls=Command, example=example)
