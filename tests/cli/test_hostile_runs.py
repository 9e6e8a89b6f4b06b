"""Run directories and bundles that somebody made to hurt: one short message, whatever they hold."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outside import DOCUMENT_BYTES, FEW_CONTAINERS
from aclnn_cts.store.record_codec import check_items, decode_value
from aclnn_cts.store.run_directory import RunDirectory
from tests.cli.conftest import Called, named
from tests.support.bundles import rebuilt, verified
from tests.support.hostile_runs import RUNS, link, sound_bundle, sound_run, zlib_bomb
from tests.support.hostile_runs import change_store as changed

Call = Callable[..., Called]
LONGEST = 1500


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return sound_run(tmp_path / "run")


def refused(called: Called, name: str) -> str:
    """The one message of a command that could not read a run."""
    assert called.code in (2, 3), str(called)
    [message] = called.err.splitlines()
    assert message.startswith("error: ")
    assert name in message
    assert "unexpected" not in message
    assert len(message) < LONGEST
    return message


@named(
    "name",
    [
        ("manifest", "manifest.json"),
        ("summary", "summary.json"),
        ("results", "results.sqlite"),
        ("spec", "specs/softmax_backward.yaml"),
        ("failure", "failures/x.json"),
        ("waiver", "waivers/x.yaml"),
        ("output", f"blobs/{'0' * 64}"),
    ],
)
@pytest.mark.parametrize("target", ["/dev/zero", "/dev/nothing", "pipe", "."])
def test_a_link_to_what_is_no_file_is_refused_by_every_command(call: Call, path: Path, name: str, target: str) -> None:
    os.mkfifo(path.parent / "pipe")
    (path / name).parent.mkdir(exist_ok=True)
    link(path / name, target if target.startswith("/") else str(path.parent / target))
    commands = (
        ("report", str(path), "-o", "r.html"),
        ("bundle", str(path), "-o", "b.zip"),
        ("compare", str(path), str(path)),
        ("shrink", str(path)),
    )
    for words in commands:
        refused(call(*words), path.name if name == "manifest.json" else name)


def test_a_spec_that_is_missing(call: Call, path: Path) -> None:
    (path / "specs" / "softmax_backward.yaml").unlink()
    refused(call("report", str(path), "-o", "r.html"), "aclnnSoftmaxBackward")


def test_a_recursive_view_in_place_of_a_table(call: Call, path: Path) -> None:
    RUNS["a recursive view"](path)
    message = refused(call("report", str(path), "-o", "r.html"), "results.sqlite")
    assert "is none that aclnn-cts makes" in message


@named(
    "statement",
    [
        ("trigger", "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END"),
        ("index", "CREATE INDEX i ON records (length(hex(record)))"),
        ("table", "CREATE TABLE more (x)"),
        ("view", "CREATE VIEW v AS SELECT 1"),
    ],
)
def test_a_store_with_anything_of_its_own(call: Call, path: Path, statement: str) -> None:
    changed(path, statement)
    assert "is none that aclnn-cts makes" in refused(call("compare", str(path), str(path)), "results.sqlite")


@named(
    ("column", "value"),
    [
        ("trial_blob", "trial_id", b"\xff"),
        ("trial_number", "trial_id", 7.5),
        ("operator", "operator", "aclnnOther"),
        ("result", "result", "wonderful"),
        ("check_id", "check_id", "\x1b[2J"),
        ("fingerprint_no_json", "fingerprint", "{"),
        ("fingerprint_none", "fingerprint", None),
        ("fingerprint_deep", "fingerprint", "[" * 500_000),
        ("record_text", "record", "x"),
        ("record_junk", "record", b"\x00" * 50),
        ("record_of_another_kind", "record", zlib.compress(msgspec.msgpack.encode([1, 2]))),
        ("record_deep", "record", zlib.compress(b"\x91" * 500_000 + b"\xc0")),
    ],
)
def test_junk_in_a_column(call: Call, path: Path, column: str, value: object) -> None:
    changed(path, f"UPDATE records SET {column} = ? WHERE sequence = 2", values=(value,))  # noqa: S608 - a column
    for words in (("compare", str(path), str(path)), ("report", str(path), "-o", "r.html")):
        called = call(*words)
        if called.code in (2, 3):
            assert "unexpected" not in called.err
            assert max(map(len, called.err.splitlines())) < LONGEST
        else:
            # It does not look at the column.
            assert words[0] == "compare"


def test_truncated_and_flipped_stores(call: Call, path: Path) -> None:
    whole = (path / "results.sqlite").read_bytes()
    for size in (0, 50, 100, 1000, 4096, 5000, len(whole) // 2, len(whole) - 4096):
        (path / "results.sqlite").write_bytes(whole[:size])
        refused(call("report", str(path), "-o", "r.html"), "results.sqlite")
    for place in (16, 18, 28, 44, 52, 100, 103, 105, 4096, 4099):
        flipped = bytearray(whole)
        flipped[place] ^= 0xFF
        (path / "results.sqlite").write_bytes(flipped)
        called = call("compare", str(path), str(path))
        assert called.code in (0, 2, 3)
        assert "unexpected" not in called.err


@named("name", [("manifest", "manifest.json"), ("summary", "summary.json")])
def test_brackets(call: Call, path: Path, name: str) -> None:
    (path / name).write_bytes(b"[" * 500_000)
    assert f"more than {FEW_CONTAINERS} lists" in refused(call("report", str(path), "-o", "r.html"), name)


@named(
    ("name", "value"),
    [
        ("number", "spec_folders", 7),
        ("numbers", "spec_folders", [1]),
        ("word", "tolerances", "mixed"),
        ("mapping", "tolerances", {}),
        ("phases", "phases", "two"),
        ("unsafe", "unsafe", 3),
        ("limits", "strict_limits", "yes"),
        ("seconds", "call_seconds", "soon"),
        ("benchmark", "benchmark", 3),
    ],
)
def test_settings_of_other_types(call: Call, path: Path, name: str, value: Any) -> None:
    document = json.loads((path / "manifest.json").read_bytes())
    document["settings"] = {name: value}
    (path / "manifest.json").write_text(json.dumps(document))
    assert f"$.settings.{name}" in refused(call("report", str(path), "-o", "r.html"), "manifest.json")


@pytest.mark.slow
def test_hostile_runs_and_bundles_take_little_memory() -> None:
    """Each in a process that is measured; the soak reads more of them, by every command, and looks at the clock too."""
    words = [sys.executable, "-m", "tests.soak.hostile_runs", "--quick", "--seconds", "1000"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " commands, 0 mistakes" in done.stdout


def test_a_record_of_very_much_is_refused_before_it_is_unpacked(path: Path) -> None:
    changed(path, "UPDATE records SET record = ?", values=(zlib_bomb(100),))
    with RunDirectory(path).results() as results, pytest.raises(HarnessError, match=f"at most {DOCUMENT_BYTES} bytes"):
        list(results.records())


@named(
    ("content", "code"),
    [
        ("large", zlib.compress(msgspec.msgpack.encode(["x" * 900_000] * 3), 1), ""),
        ("cut", zlib.compress(bytes(5 << 20), 1)[:-5], "ends too soon"),
        ("cut_at_once", zlib.compress(bytes(5 << 20), 1)[:4], "ends too soon"),
        ("more", zlib.compress(msgspec.msgpack.encode(["x" * 900_000] * 3), 1) + b"x", "bytes follow"),
        ("small_more", zlib.compress(b"\xc0") + b"x", "bytes follow"),
        ("long_texts", zlib.compress(msgspec.msgpack.encode(["x" * 9_000_000] * 2), 1), "longer texts than a record"),
    ],
)
def test_a_large_value_is_read_whole_or_refused(content: bytes, code: str) -> None:
    if not code:
        assert decode_value(content, where="x") == ["x" * 900_000] * 3
        return
    with pytest.raises(HarnessError, match=code):
        decode_value(content, where="x")


@named(
    ("content", "message"),
    [
        ("containers", b"\xdd\x00\x20\x00\x00" + b"\x90" * (1 << 21), "more values"),
        ("numbers", b"\xdd\x00\x40\x00\x00" + b"\x01" * (1 << 22), "more values"),
        ("claims", b"\xdd\xff\xff\xff\xff", "more values"),
        ("string", b"\xdb\xff\xff\xff\xff", "no MessagePack"),
        ("rest", b"\xc0\xc0", "no MessagePack"),
        ("reserved", b"\xc1", "no MessagePack"),
    ],
)
def test_items_of_a_record_are_counted_before_they_are_built(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_items(content)


@pytest.mark.parametrize("value", [1, -1, 2**40, 1.5, "x" * 40, "y" * 70_000, b"z" * 300, [1, [None, True]], {"a": {}}])
def test_items_of_a_sound_record_are_counted_right(value: Any) -> None:
    check_items(msgspec.msgpack.encode([value, {"k": value}]))


def test_python_that_a_run_names_is_not_run(call: Call, path: Path, tmp_path: Path) -> None:
    """Whoever hands a run over writes its manifest."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    spec = (path / "specs" / "softmax_backward.yaml").read_text()
    (folder / "theirs.yaml").write_text(spec.replace("aclnnSoftmaxBackward", "aclnnTheirs"))
    (folder / "theirs.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    shutil.copy(folder / "theirs.yaml", path / "specs" / "theirs.yaml")
    document = json.loads((path / "manifest.json").read_bytes())
    document["settings"] = {"spec_folders": [str(folder)]}
    document["adapter"] = "theirs:Adapter"
    (path / "manifest.json").write_text(json.dumps(document))
    for words in (
        ("report", str(path), "-o", "r.html"),
        ("bundle", str(path), "-o", "b.zip"),
        ("compare", str(path), str(path)),
        ("shrink", str(path)),
    ):
        called = call(*words)
        assert "unexpected" not in called.err
        assert not (tmp_path / "ran").exists(), words
    assert "give it with --adapter" in refused(call("shrink", str(path)), "theirs:Adapter")
    assert "give the folders with --specs" in refused(
        call("shrink", str(path), "--adapter", "theirs:Adapter"), "theirs"
    )
    assert "expected that" in refused(call("shrink", str(path), "--adapter", "other:Adapter"), "theirs")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    return sound_bundle(sound_run(folder / "run"), folder / "bundle.zip")


def test_an_unsigned_bundle_is_never_called_sound(call: Call, bundle: Path) -> None:
    called = call("verify", str(bundle))
    assert called.code == 0
    assert "nothing is wrong" not in called.out
    assert "consistent, but not proven authentic" in " ".join(called.out.split())
    assert {"report.html", "cases", "run"} <= set(call("verify", "--json", str(bundle)).lines[0]["unproved"])


@named(
    ("name", "content", "message"),
    [
        ("foreign_page", "report.html", b"<html>All trials passed.</html>", "is no page that"),
        ("empty_trial", "cases/", b"", "not valid JSON"),
        ("empty_object", "cases/", b"{}", "$.format: missing"),
        ("other_case", "cases/", b'{"format": "aclnn-cts/case/1", "operator": "x", "arguments": {}}', "no trial of"),
    ],
)
def test_entries_that_say_nothing_or_something_else(
    bundle: Path, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    def change(entries: dict[str, bytes]) -> None:
        entries[next(entry for entry in sorted(entries) if entry.startswith(name))] = content

    found = verified(rebuilt(bundle, change), tmp_path)
    assert any(message in problem.what for problem in found.problems), found.problems


def test_unknown_criteria_are_a_problem(bundle: Path, tmp_path: Path) -> None:
    def change(entries: dict[str, bytes]) -> None:
        manifest = json.loads(entries["run/manifest.json"])
        manifest["settings"] = {"tolerances": ["lenient"]}
        entries["run/manifest.json"] = json.dumps(manifest).encode()

    found = verified(rebuilt(bundle, change), tmp_path)
    assert any("acceptance criterion that this version does not know" in problem.what for problem in found.problems)


@named(
    ("before", "after"),
    [
        ("check", b'"check":"values"', b'"check":"wonders"'),
        ("key_twice", b'"waiver":""', b'"waiver":"","waiver":""'),
    ],
)
def test_records_that_only_look_like_records(bundle: Path, tmp_path: Path, before: bytes, after: bytes) -> None:
    def change(entries: dict[str, bytes]) -> None:
        name = next(entry for entry in entries if entry.endswith(".jsonl"))
        assert before in entries[name]
        entries[name] = entries[name].replace(before, after)

    found = verified(rebuilt(bundle, change), tmp_path)
    assert any("is no record of the format" in problem.what for problem in found.problems)
