from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from aclnn_cts.bundle.write import write_bundle
from aclnn_cts.core.target import Target
from aclnn_cts.store.manifest import adapter_facts
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.run_directory import RunDirectory
from tests.cli.conftest import Called
from tests.cli.test_cli_compare import store
from tests.reports.synthetic import record, softmax_case, synthetic_run


def bundled() -> bytes:
    store("run", 1)
    write_bundle(RunDirectory(Path("run")), OutputFile(Path("run.bundle")))
    return Path("run.bundle").read_bytes()


def test_a_good_bundle(call: Callable[..., Called], snapshot: SnapshotAssertion) -> None:
    bundled()
    called = call("verify", "run.bundle", "--recompute", "3", "--seed", "1")
    assert called.code == 0
    assert "\n".join(line for line in called.out.splitlines() if " bytes: " not in line) == snapshot


def test_a_software_device_is_called_so(call: Callable[..., Called], tmp_path: Path) -> None:
    facts = {"description": "software device (loopback) standing in for Ascend910B3, atlas-a2; no hardware"}
    facts["device"] = "software device standing in for Ascend910B3"
    manifest = {"adapter": "cann", "target": Target(product="atlas-a2")}
    for name, environment in (("soft", adapter_facts(facts)), ("hard", adapter_facts({"device": "Ascend910B3"}))):
        run = synthetic_run(tmp_path / name, [record(softmax_case())], changes=manifest, environment=environment)
        write_bundle(RunDirectory(run), OutputFile(tmp_path / f"{name}.bundle"))
        shown = " ".join(call("verify", str(tmp_path / f"{name}.bundle")).out.split())
        [document] = call("verify", str(tmp_path / f"{name}.bundle"), "--json").lines
        said = document["says"]
        if name == "soft":
            assert "a run of cann on atlas-a2 (software device) at" in shown
            assert f"ran on: {facts['description']}" in shown
            assert (said["product"], said["ran_on"]) == ("atlas-a2 (software device)", facts["description"])
        else:
            assert "a run of cann on atlas-a2 at" in shown
            assert "software device" not in shown
            assert (said["product"], said["ran_on"]) == ("atlas-a2", "Ascend910B3")


KILLED = """
import os, signal, sys
from aclnn_cts.bundle import write
from aclnn_cts.cli.main import main

write._add_outputs = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
sys.exit(main())
"""
"""`aclnn-cts`, killed while it packs."""


def test_a_killed_bundle_leaves_nothing(call: Callable[..., Called]) -> None:
    synthetic_run(Path("run"), [record(softmax_case())])
    killed = subprocess.run([sys.executable, "-c", KILLED, "bundle", "run", "-o", "x.bundle"], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert {path.name for path in Path().iterdir()} == {"run"}


def test_a_changed_byte(call: Callable[..., Called]) -> None:
    content = bytearray(bundled())
    content[content.index(b"schemas/record.schema.json") - 1] ^= 1
    Path("run.bundle").write_bytes(content)
    called = call("verify", "run.bundle", "--json")
    [document] = called.lines
    assert (called.code, document["good"]) == (1, False)
    assert document["problems"] == [
        {
            "where": "schemas/record.schema.json",
            "what": document["problems"][0]["what"],
        }
    ]
    shown = " ".join(call("verify", "run.bundle").out.split())
    assert "schemas/record.schema.json: " in shown
    assert "run.bundle: as the file claims, which is not to be trusted: a run of torch" in shown


def test_a_file_that_is_no_bundle(call: Callable[..., Called]) -> None:
    Path("README.md").write_text("# a page\n", encoding="utf-8")
    called = call("verify", "README.md")
    assert called.code == 1
    assert " ".join(called.out.split()) == (
        "README.md: is no bundle: File is not a zip file; expected a file that `bundle` wrote"
    )


def test_a_signature_lies_beside_its_bundle(call: Callable[..., Called], key: Path) -> None:
    synthetic_run(Path("run"), [record(softmax_case())])
    words = ("bundle", "run", "-o", "run.bundle", "--sign", str(key))
    assert call(*words).code == 0
    content = Path("run.bundle.sig").read_bytes()
    assert len(content) == 64
    public = ("--key", str(key.with_suffix(".pub")))
    assert "nothing is wrong" in call("verify", "run.bundle", *public).out
    # Its own is replaced, and nothing else.
    assert call(*words).code == 0
    assert Path("run.bundle.sig").read_bytes() == content
    Path("run.bundle.sig").write_bytes(b"mine")
    called = call(*words)
    assert called.code == 2
    assert called.err.startswith("error: --sign run.bundle.sig: exists, and `aclnn-cts bundle` did not write it")
    assert call("verify", "run.bundle", *public).code == 1
    called = call("bundle", "run", "-o", "-", "--sign", str(key))
    assert (called.code, called.out) == (2, "")
    assert called.err.startswith("error: --sign: standard output is no regular file")


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
