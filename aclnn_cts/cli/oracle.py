"""`aclnn-cts oracle`: the group of `check`."""

from __future__ import annotations

import click

from aclnn_cts.cli.lazy import CommandEntry, LazyGroup

COMMANDS = (
    CommandEntry("check", "aclnn_cts.cli.oracle_check:check", "Check oracles against what their formulas derive."),
)


@click.group(cls=LazyGroup, entries=COMMANDS)
def oracle() -> None:
    """Check the oracles against what their formulas derive."""
