"""`aclnn-cts spec`: the group of `show` and `lint`."""

from __future__ import annotations

import click

from aclnn_cts.cli.lazy import CommandEntry, LazyGroup

COMMANDS = (
    CommandEntry("show", "aclnn_cts.cli.spec_show:show", "Show what the document of an operator demands."),
    CommandEntry("lint", "aclnn_cts.cli.spec_lint:lint", "Check spec files; mistakes with file and line."),
)


@click.group(cls=LazyGroup, entries=COMMANDS)
def spec() -> None:
    """Show an operator's constraints, or check spec files."""
