"""Run directories and bundles that somebody made to hurt, by name: what `make test` and `make soak-hostile` read."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.bundle.write import write_bundle
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.run_directory import RunDirectory
from tests.reports.synthetic import record, softmax_case, synthetic_run
from tests.support.bundles import rebuilt

MIB = 1 << 20
_DEEP = 500_000
_WIDE = "\U0001f600".encode() + b"x" * (2 * MIB - 10)
"""As a string it takes four bytes a character."""


def sound_run(path: Path) -> Path:
    """A run with a finding."""
    failed = record(softmax_case(1), result="failed", kind="value", output="out", error_ratio=2.0)
    return synthetic_run(path, [record(softmax_case()), failed])


def sound_bundle(run: Path, path: Path) -> Path:
    """Its bundle, unsigned."""
    page = b'<!DOCTYPE html>\n<html lang="en"><meta name="generator" content="aclnn-cts">'
    out = OutputFile(path, written_by_us=lambda file: True, command="test")
    write_bundle(RunDirectory(run), out, make_report=lambda _: page)
    return path


def change_store(run: Path, *statements: str, values: tuple[Any, ...] = ()) -> None:
    """Change a run's results behind its back."""
    with contextlib.closing(sqlite3.connect(run / "results.sqlite", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement, values)


def link(path: Path, target: Path | str) -> None:
    """Put a symbolic link in place of a file."""
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def zlib_bomb(mebibytes: int) -> bytes:
    """A zlib stream of so much of nothing, made without compressing all of it."""
    compressor = zlib.compressobj(9, wbits=-15)
    piece = compressor.compress(bytes(MIB)) + compressor.flush(zlib.Z_FULL_FLUSH)
    return b"\x78\x01" + piece * mebibytes + compressor.flush()


def _linked(name: str, target: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        if target == "pipe":
            os.mkfifo(run.parent / "pipe")
        link(run / name, run.parent / target)

    return change


def _stored(column: str, value: object) -> Callable[[Path], None]:
    sql = f"UPDATE records SET {column} = ? WHERE sequence = 2"  # noqa: S608 - a column's name
    return lambda run: change_store(run, sql, values=(value,))


def _state(content: bytes) -> Callable[[Path], None]:
    """A run that was killed, whose counts are these bytes."""

    def change(run: Path) -> None:
        (run / "summary.json").unlink()
        change_store(run, "UPDATE state SET value = ? WHERE key = 'summary'", values=(content,))

    return change


def _replaced(name: str, content: Callable[[], bytes]) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        (run / name).write_bytes(content())

    return change


def _sparse(path: Path, size: int = 1 << 40) -> None:
    os.truncate(path, size)


def _recursive_view(run: Path) -> None:
    change_store(
        run,
        "ALTER TABLE records RENAME TO kept",
        "CREATE VIEW records AS WITH RECURSIVE n(sequence) AS (SELECT 1 UNION ALL SELECT sequence + 1 FROM n)"
        " SELECT sequence, '' AS trial_id, '' AS record FROM n",
    )


def _cut(run: Path) -> None:
    os.truncate(run / "results.sqlite", 5000)


def _flipped(run: Path) -> None:
    content = bytearray((run / "results.sqlite").read_bytes())
    content[4096:4112] = bytes(0xFF ^ byte for byte in content[4096:4112])
    (run / "results.sqlite").write_bytes(content)


def _full_record(item: bytes, number: int) -> bytes:
    """A list of so many items in place of a record, compressed."""
    return zlib.compress(b"\xdd" + number.to_bytes(4, "big") + item * number, 1)


RUNS: Mapping[str, Callable[[Path], None]] = {
    **{
        f"{name} is a link to {target}": _linked(name, target)
        for name in ("manifest.json", "results.sqlite", "specs/softmax_backward.yaml")
        for target in ("/dev/zero", "pipe")
    },
    "summary.json is a link to /dev/zero": _linked("summary.json", "/dev/zero"),
    "a recursive view": _recursive_view,
    "a trigger": lambda run: change_store(
        run, "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END"
    ),
    "a record of 800 MB": _stored("record", zlib_bomb(800)),
    "a state of 800 MB": _state(zlib_bomb(800)),
    "a record of 500,000 brackets": _stored("record", zlib.compress(b"\x91" * _DEEP + b"\xc0")),
    "a state of 500,000 brackets": _state(zlib.compress(b"\x91" * _DEEP + b"\xc0")),
    "a record of many lists": _stored("record", _full_record(b"\x90", 60 << 20)),
    "a record of many numbers": _stored("record", _full_record(b"\x7f", 60 << 20)),
    "a fingerprint of 500,000 brackets": _stored("fingerprint", "[" * _DEEP),
    "a fingerprint of 50 MB": _stored("fingerprint", "x" * (50 * MIB)),
    "a trial's id of 50 MB": _stored("trial_id", "x" * (50 * MIB)),
    "a truncated store": _cut,
    "a flipped store": _flipped,
    "a store of a terabyte": lambda run: _sparse(run / "results.sqlite"),
    "a manifest of a terabyte": lambda run: _sparse(run / "manifest.json"),
    "a manifest of 500,000 brackets": _replaced("manifest.json", lambda: b"[" * _DEEP),
    "a manifest of many zeros": _replaced("manifest.json", lambda: b"[" + b"0," * 3_900_000 + b"0]"),
    "a manifest of many numbers": _replaced("manifest.json", lambda: b"[" + b"1e9," * 3_900_000 + b"0]"),
    "a manifest of many lists": _replaced("manifest.json", lambda: b"[" + b"[]," * 490_000 + b"0]"),
    "a manifest of one word": _replaced("manifest.json", lambda: _WIDE),
    "a manifest that is one string": _replaced("manifest.json", lambda: b'"' + _WIDE + b'"'),
    "a manifest of newlines": _replaced("manifest.json", lambda: b"\n" * (60 * MIB)),
    "a summary of 500,000 brackets": _replaced("summary.json", lambda: b"[" * _DEEP),
    "a spec of 500,000 brackets": _replaced("specs/softmax_backward.yaml", lambda: b"[" * _DEEP),
    "a spec of many keys": _replaced(
        "specs/softmax_backward.yaml", lambda: b"".join(b"k%d: 1\n" % number for number in range(80_000))
    ),
}
"""What is done to a sound run; every command that reads all of it must refuse what is left."""


def _entry(name: str, content: Callable[[], bytes]) -> Callable[[Path, Path], None]:
    """A bundle with sums that are right, one entry of which holds this instead."""

    def make(sound: Path, out: Path) -> None:
        def change(entries: dict[str, bytes]) -> None:
            entries[next(entry for entry in sorted(entries) if entry.startswith(name))] = content()

        out.write_bytes(rebuilt(sound, change))

    return make


def _padded(size: int) -> Callable[[Path, Path], None]:
    def make(sound: Path, out: Path) -> None:
        out.write_bytes(sound.read_bytes())
        _sparse(out, size)

    return make


def _many_entries(sound: Path, out: Path) -> None:
    """A directory of 250,000 lines, all of the same entry."""
    content = sound.read_bytes()
    with zipfile.ZipFile(sound) as file:
        start, line = file.start_dir, 46 + len(file.namelist()[0])
    lines = content[start : start + line] * 250_000
    end = bytearray(content[-22:])
    end[12:16] = len(lines).to_bytes(4, "little")
    out.write_bytes(content[:start] + lines + bytes(end))


def _bomb(sound: Path, out: Path) -> None:
    out.write_bytes(sound.read_bytes())
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("repro/x.py", bytes(800 * MIB), compresslevel=1)


def _zeros(sound: Path, out: Path) -> None:
    out.touch()
    _sparse(out)


def _cut_bundle(sound: Path, out: Path) -> None:
    out.write_bytes(sound.read_bytes()[:3000])


def _piped(sound: Path, out: Path) -> None:
    os.mkfifo(out)


BUNDLES: Mapping[str, Callable[[Path, Path], None]] = {
    "a link to /dev/zero": lambda sound, out: link(out, "/dev/zero"),
    "a pipe": _piped,
    "a terabyte of zeros": _zeros,
    "a bundle and a terabyte": _padded(1 << 40),
    "cut in the middle": _cut_bundle,
    "a directory of many lines": _many_entries,
    "800 MB compressed": _bomb,
    **{
        f"500,000 brackets as {name}": _entry(name, lambda: b"[" * _DEEP + b"\n")
        for name in ("bundle.json", "records/", "run/manifest.json", "run/summary.json", "cases/", "specs/")
    },
    "many lists as a record": _entry("records/", lambda: b"[" + b"[]," * 20_000_000 + b"0]\n"),
    "many numbers as a record": _entry("records/", lambda: b"[" + b"0," * 15_000_000 + b"0]\n"),
    "many empty records": _entry("records/", lambda: b"{}\n" * 1_000_000),
    "newlines as records": _entry("records/", lambda: b"\n" * (30 * MIB)),
    "80 MB of a record": _entry("records/", lambda: b'"' + b"x" * (80 * MIB) + b'"\n'),
    "a page of 80 MB": _entry("report.html", lambda: b"x" * (80 * MIB)),
    "one word as its run's manifest": _entry("run/manifest.json", lambda: json.dumps("x" * (60 * MIB)).encode()),
    "lists as its run's summary": _entry("run/summary.json", lambda: msgspec.json.encode([[]] * 490_000)),
}
"""How each is made of a sound one; `verify` must call none of them sound."""
