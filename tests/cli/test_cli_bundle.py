from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aclnn_cts.engine.bundle.write import write_bundle
from aclnn_cts.engine.run_directory import RunDirectory
from tests.cli.conftest import Called
from tests.cli.test_cli_compare import store


def bundled() -> bytes:
    store("run", 1)
    write_bundle(RunDirectory(Path("run")), Path("run.bundle"))
    return Path("run.bundle").read_bytes()


def test_a_good_bundle(call: Callable[..., Called], matches_snapshot: Callable[[str, object], None]) -> None:
    bundled()
    called = call("verify", "run.bundle", "--recompute", "3", "--seed", "1")
    assert called.code == 0
    matches_snapshot("verify", "\n".join(line for line in called.out.splitlines() if " bytes: " not in line))


def test_a_changed_byte(call: Callable[..., Called]) -> None:
    content = bytearray(bundled())
    content[-30] ^= 1
    Path("run.bundle").write_bytes(content)
    called = call("verify", "run.bundle", "--json")
    [document] = called.lines
    assert (called.code, document["good"]) == (1, False)
    assert document["problems"] == [
        {
            "where": "schemas/record.schema.json",
            "what": "its line in the directory at the end of the file has been changed",
        }
    ]
    assert "schemas/record.schema.json: its line in the directory" in " ".join(call("verify", "run.bundle").out.split())


def test_mistakes(call: Callable[..., Called]) -> None:
    bundled()
    for words, message in (
        (
            ("verify", "none"),
            "error: none: cannot be read: No such file or directory; expected a file that `bundle` wrote",
        ),
        (("bundle", "none", "-o", "x"), "error: none: holds no manifest.json; expected the directory that a run wrote"),
        (("bundle", "run", "-o", "no/x"), "error: -o no/x: no is no folder; make it first, or name another file"),
        (("bundle", "run", "-o", "run"), "error: -o run: is a folder; expected the name of a file"),
        (
            ("verify", "run.bundle", "--recompute", "-1"),
            "error: invalid value for '--recompute': '-1'; expected an integer",
        ),
    ):
        called = call(*words)
        assert (called.code, called.out) == (2, "")
        assert called.err.startswith(message)
