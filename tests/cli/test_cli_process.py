"""The command as a process of its own: what help imports, pipes that close, disks that are full."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from aclnn_cts.cli import main
from aclnn_cts.cli.main import COMMANDS, CommandEntry, LazyGroup

HEAVY = ("numpy", "rich", "yaml", "msgspec", "hypothesis", "pytest", "torch", "ml_dtypes")
ROOT = Path(__file__).resolve().parent.parent.parent


def start(*arguments: str, **options: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, *arguments], stderr=subprocess.PIPE, env=environment, **options)  # type: ignore[call-overload,no-any-return]  # any of Popen's


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from aclnn_cts.cli.main import main; code = main(['--help']); "
        f"print('imported', *[name for name in {HEAVY!r} if name in sys.modules]); sys.exit(code)"
    )
    process = start("-c", program, stdout=subprocess.PIPE)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert output.decode().splitlines()[-1] == "imported"


def test_a_reader_that_goes_away() -> None:
    with start("-m", "aclnn_cts", "clauses", "--json", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_full_disk() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with full.open("wb") as file:
        process = start("-m", "aclnn_cts", "ops", stdout=file)
        _, errors = process.communicate()
    assert process.returncode == 3
    assert errors.decode().splitlines()[-1].startswith("error: standard output: cannot be written: ")
    assert b"Traceback" not in errors


def test_a_terminal_without_chinese(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "aclnn_cts", "clauses", "softmax_backward", "--lang", "zh"]
    done = subprocess.run(command, capture_output=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert b"\\u" in done.stdout


@pytest.mark.parametrize("entry", [*COMMANDS, *main.spec._entries.values()], ids=lambda entry: entry.name)
def test_every_entry_of_the_table_is_a_command_with_help(entry: CommandEntry) -> None:
    group = LazyGroup("group", entries=[entry])
    command = group.get_command(click.Context(group), entry.name)
    assert command is not None
    assert command.help
    assert entry.help.endswith(".")


def test_a_name_that_stands_twice() -> None:
    entry = CommandEntry("ops", "aclnn_cts.cli.ops:ops", "List.")
    with pytest.raises(ValueError, match="'ops' is registered twice"):
        LazyGroup("group", entries=[entry, entry])
