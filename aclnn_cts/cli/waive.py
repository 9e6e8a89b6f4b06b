"""`aclnn-cts waive`: the group of `add`."""

from __future__ import annotations

import click

from aclnn_cts.cli.lazy import CommandEntry, LazyGroup

COMMANDS = (CommandEntry("add", "aclnn_cts.cli.waive_add:add", "Draft a waiver for a finding."),)


@click.group(cls=LazyGroup, entries=COMMANDS)
def waive() -> None:
    """Draft waivers: known failures that a person answers for until a day."""
