"""A run in one file: what was found, and everything that it takes to check it without a device."""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipFile

import msgspec

from aclnn_cts.bundle.archive import ABOUT, BLOBS, REPORT, BundleHeader, add_entry, bad_name, limit_of, read_chunks
from aclnn_cts.bundle.records import record_schema, record_to_json
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outside import open_outside
from aclnn_cts.core.printable import quote
from aclnn_cts.core.verdict import Record
from aclnn_cts.store.output_file import OutputFile, begins_with, storage_failure
from aclnn_cts.store.programs import program_name, read_programs, stored_programs
from aclnn_cts.store.run_directory import RunDirectory

BUNDLE = begins_with(rb'PK\x03\x04.{26}bundle\.json\{"format":"aclnn-cts/bundle/')
"""Files of `write_bundle`."""
RECORDS_LIMIT = 32 * 1024 * 1024
"""Bytes of one file of records."""
SCHEMA_NAME = "schemas/record.schema.json"

MakeReport = Callable[[Path], bytes]
"""From a run directory to its report, one HTML file. Raises HarnessError where it cannot be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBundle:
    """What a bundle came to."""

    entries: int
    size: int
    records: int
    sha256: bytes
    """Of the file: what a signature is made of."""
    left_out: Mapping[str, str]


@dataclass(slots=True)
class _Digests:
    """What the records tell on their way."""

    records: int = 0
    outputs: set[str] = field(default_factory=set)
    """SHA-256 of recorded outputs."""

    def see(self, record: Record) -> None:
        self.records += 1
        for attempt in record.attempts[:1]:
            for outcome in attempt:
                self.outputs.update(state.sha256 for state in outcome.buffers.values() if state.sha256)


def write_bundle(
    run: RunDirectory,
    out: OutputFile,
    *,
    make_report: MakeReport | None = None,
) -> WrittenBundle:
    """Write the bundle of a finished run. The same run gives the same bytes.

    Raises UsageError where the run is not finished, HarnessError where it is damaged or the file cannot be written.
    """
    if not run.finished:
        raise UsageError(f"{run.path}: the run has not finished; let it end, or resume it, and bundle it then")
    # First, so that nothing of a run is gathered that is none.
    run.manifest, run.summary()
    left_out: dict[str, str] = {}
    texts = {**_programs(run, left_out), **_report(run, left_out, make_report)}
    if not run.waivers():
        left_out["waivers"] = "the run kept none"
    digest = hashlib.sha256()
    try:
        with tempfile.TemporaryFile(dir=out.folder) as file:
            with ZipFile(file, "w") as archive:
                _add(archive, ABOUT, msgspec.json.encode(BundleHeader(left_out=left_out)))
                for name, content in _files(run, texts):
                    _add(archive, name, content)
                seen = _add_records(run, archive)
                _add_outputs(run, archive, seen.outputs)
                entries = len(archive.namelist())
            file.seek(0)
            size = out.write(_hashed(read_chunks(file), digest))
    except OSError as error:
        raise storage_failure(out.path, error) from error
    return WrittenBundle(entries=entries, size=size, records=seen.records, sha256=digest.digest(), left_out=left_out)


def _hashed(pieces: Iterator[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    for piece in pieces:
        digest.update(piece)
        yield piece


def _add(archive: ZipFile, name: str, content: bytes | Path) -> str:
    """Add an entry that a verifier will take; its SHA-256."""
    if bad_name(name):
        raise HarnessError(
            f"{quote(name)}: no name that every program can unpack; rename the file in the run directory"
        )
    if isinstance(content, Path):
        with open_outside(content, expected="a file of a run", error=HarnessError, regular=True) as file:
            return _add_file(archive, name, file)
    return _add_file(archive, name, io.BytesIO(content))


def _add_file(archive: ZipFile, name: str, file: BinaryIO) -> str:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    if (limit := limit_of(name)) is not None and size > limit:
        raise HarnessError(f"{name}: has {size} bytes; `verify` reads at most {limit} of an entry of its kind")
    return add_entry(archive, name, read_chunks(file), size=size)


def _files(run: RunDirectory, texts: Mapping[str, bytes]) -> Iterator[tuple[str, bytes | Path]]:
    """What is neither record nor recorded output, in the order of names."""
    schema = msgspec.json.encode(record_schema(), order="deterministic")
    found: dict[str, bytes | Path] = {**texts, SCHEMA_NAME: msgspec.json.format(schema, indent=2) + b"\n"}
    found |= {f"run/{name}": run.path / name for name in ("manifest.json", "summary.json")}
    for folder, paths in (("specs", run.specs()), ("waivers", run.waivers()), ("cases", run.failures())):
        found |= {f"{folder}/{path.name}": path for path in paths}
    yield from sorted(found.items(), key=lambda item: item[0])


def _add_records(run: RunDirectory, archive: ZipFile) -> _Digests:
    """The records in order of arrival, in files of limited size."""
    seen = _Digests()
    lines = bytearray()
    number = 0
    with run.results() as results:
        for record in results.records():
            seen.see(record)
            lines += msgspec.json.encode(record_to_json(record)) + b"\n"
            if len(lines) >= RECORDS_LIMIT:
                _add(archive, f"records/{number:06}.jsonl", bytes(lines))
                lines.clear()
                number += 1
    if lines:
        _add(archive, f"records/{number:06}.jsonl", bytes(lines))
    return seen


def _add_outputs(run: RunDirectory, archive: ZipFile, digests: set[str]) -> None:
    """Recorded outputs of which a record tells; what else lies there is left where it is."""
    folder = run.path / "blobs"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name in digests and _add(archive, f"{BLOBS}{path.name}", path) != path.name:
            raise HarnessError(f"{path}: its SHA-256 is another; the file has been changed or its disk is damaged")


def _programs(run: RunDirectory, left_out: dict[str, str]) -> Mapping[str, bytes]:
    """Those that the run keeps of its findings."""
    found: dict[str, bytes] = {}
    with run.results() as results:
        kept = stored_programs(results)
    if run.failures() and not kept:
        left_out["repro"] = "the run keeps no programs"
    for name, stored in sorted(kept.items()):
        if stored.missing:
            left_out[f"repro/{name.removesuffix('.json')}"] = stored.message
        for language, text in read_programs(run, name, stored).items():
            found[f"repro/{program_name(name, language)}"] = text
    return found


def _report(run: RunDirectory, left_out: dict[str, str], make_report: MakeReport | None) -> Mapping[str, bytes]:
    try:
        if make_report is not None:
            return {REPORT: make_report(run.path)}
        left_out[REPORT] = "it was not asked for"
    except HarnessError as error:
        left_out[REPORT] = str(error)
    return {}
