"""What stands on the command line: a module of its own, since few commands ask."""

from __future__ import annotations

import click
from click.core import ParameterSource


def given_options() -> frozenset[str]:
    """The options and arguments that stand on the command line."""
    context = click.get_current_context()
    return frozenset(
        option
        for parameter in context.command.params
        if context.get_parameter_source(str(parameter.name)) != ParameterSource.DEFAULT
        for option in parameter.opts
    )
