"""`aclnn-cts spec`: the group of `show`, `draft`, `audit` and `lint`."""

from __future__ import annotations

import click

from aclnn_cts.cli.lazy import CommandEntry, LazyGroup

COMMANDS = (
    CommandEntry("show", "aclnn_cts.cli.spec_show:show", "Show what the document of an operator demands."),
    CommandEntry("draft", "aclnn_cts.cli.spec_draft:draft", "Draft a spec from an operator's document."),
    CommandEntry("audit", "aclnn_cts.cli.spec_audit:audit", "List the statements of a document that no clause has."),
    CommandEntry("lint", "aclnn_cts.cli.spec_lint:lint", "Check spec files; mistakes with file and line."),
)


@click.group(cls=LazyGroup, entries=COMMANDS)
def spec() -> None:
    """Show, draft, audit and check the specs of operators."""
