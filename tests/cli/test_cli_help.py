"""The help page of every command and subcommand."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator

import click
import pytest
from syrupy.assertion import SnapshotAssertion

from aclnn_cts.cli.main import COMMANDS, LazyGroup
from aclnn_cts.cli.options import Command
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


GROUPS = {(), ("oracle",), ("spec",), ("waive",)}
PAGES = list(pages(LazyGroup("aclnn-cts", entries=COMMANDS)))


@pytest.mark.parametrize("words", [page for page in PAGES if page not in GROUPS], ids="_".join)
def test_the_example_of_a_page_is_a_call_of_its_command(words: tuple[str, ...]) -> None:
    command: click.Command = LazyGroup("aclnn-cts", entries=COMMANDS)
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    assert isinstance(command, Command)
    example = shlex.split(command.example)
    assert tuple(example[: len(words) + 1]) == ("aclnn-cts", *words)
    with contextlib.suppress(click.BadParameter):  # its files are not there
        command.make_context(" ".join(words), example[len(words) + 1 :], help_option_names=["-h", "--help"])


def test_subcommands_have_pages() -> None:
    assert {(), ("run",), ("spec", "lint")} < set(PAGES)


@pytest.mark.parametrize("words", PAGES, ids=lambda words: "_".join(("aclnn-cts", *words)))
def test_help(call: Callable[..., Called], snapshot: SnapshotAssertion, words: tuple[str, ...]) -> None:
    called = call(*words, "--help")
    assert (called.code, called.err) == (0, "")
    assert called.out == snapshot
