"""The help page of every command and subcommand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click
import pytest
from syrupy.assertion import SnapshotAssertion

from aclnn_cts.cli.lazy import LazyGroup
from aclnn_cts.cli.main import COMMANDS
from tests.cli.conftest import Called


def pages(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words before `--help` of a command and all below it."""
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from pages(child, (*words, name))


PAGES = list(pages(LazyGroup("aclnn-cts", entries=COMMANDS)))


def test_subcommands_have_pages() -> None:
    assert {(), ("run",), ("spec", "lint")} < set(PAGES)


@pytest.mark.parametrize("words", PAGES, ids=lambda words: "_".join(("aclnn-cts", *words)))
def test_help(call: Callable[..., Called], snapshot: SnapshotAssertion, words: tuple[str, ...]) -> None:
    called = call(*words, "--help")
    assert (called.code, called.err) == (0, "")
    assert called.out == snapshot
