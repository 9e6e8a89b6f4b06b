from __future__ import annotations

import functools
import hashlib
import json
import math
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from aclnn_cts.bundle import archive, statement, write
from aclnn_cts.bundle.archive import Member, archive_bytes, bad_name
from aclnn_cts.bundle.statement import (
    Predicate,
    Problem,
    Signer,
    Verifier,
    record_from_json,
    record_schema,
    record_to_json,
)
from aclnn_cts.bundle.verify import Verification, verify_bundle
from aclnn_cts.bundle.write import write_bundle
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import BufferState, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Record, Result, Skip
from aclnn_cts.speclang.load import package_folder
from aclnn_cts.store.events import Planned, Skipped
from aclnn_cts.store.manifest import adapter_facts
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.run_writer import create_run
from tests.support.build_records import SOFTMAX, make_manifest, make_record
from tests.support.bundles import rebuilt, verified

PAGE = b'<!DOCTYPE html>\n<html lang="en"><meta name="generator" content="aclnn-cts"></html>'
FAILED: dict[str, Any] = {"result": Result.FAILED, "kind": Fault.VALUE, "output": "out"}


def with_outputs(record: Record, *contents: bytes) -> Record:
    buffers = {f"out{n}": BufferState(sha256=hashlib.sha256(content).hexdigest()) for n, content in enumerate(contents)}
    return msgspec.structs.replace(record, attempts=((Outcome(phase_one=0, phase_two=0, buffers=buffers),),))


def small_run(path: Path) -> RunDirectory:
    """Records of all ends, two findings, a waiver, two outputs, and a skip that no record tells of."""
    records = [
        with_outputs(make_record(0), b"one"),
        with_outputs(make_record(1, **FAILED), b"two", b"lost"),
        make_record(2, dtype="BF16", waiver="known", share=math.inf, **FAILED),
        make_record(3, result=Result.SKIPPED, kind=Skip.OPEN),
        make_record(4, result=Result.ERROR),
        make_record(5, facts={"far": -math.inf}, case_kind="invalid", check="status", constraint="dim.range"),
    ]
    spec = (package_folder() / "softmax_backward.yaml").read_bytes()
    facts = adapter_facts({"device": "software device standing in for Ascend910B3", "version": "loopback"})
    manifest = make_manifest(target=Target(product="atlas-a2"), environment=facts)
    with create_run(path, manifest=manifest, specs={"softmax_backward.yaml": spec}) as writer:
        writer(Planned(operator=SOFTMAX, kind="valid", number=6))
        writer(Planned(operator=SOFTMAX, kind="invalid", number=1))
        writer(Skipped(operator=SOFTMAX, kind="valid", reason=Skip.UNSUPPORTED))
        writer.append(records)
        for content in (b"one", b"two", b"of no record"):
            writer.blob(content)
        writer.finish()
    return RunDirectory(path)


@pytest.fixture(scope="module", name="bundles")
def make_bundles(tmp_path_factory: pytest.TempPathFactory, key: Path) -> dict[bool, Path]:
    """The bundle of the small run, signed and not."""
    folder = tmp_path_factory.mktemp("bundles")
    run = small_run(folder / "run")
    paths = {signed: folder / f"{signed}.zip" for signed in (False, True)}
    for signed, path in paths.items():
        write_bundle(run, OutputFile(path), signer=Signer(key) if signed else None, make_report=lambda _run: PAGE)
    return paths


def places(found: Verification) -> set[str]:
    return {problem.where for problem in found.problems}


def test_every_program_can_unpack_it(bundles: dict[bool, Path]) -> None:
    with zipfile.ZipFile(bundles[True]) as file:
        assert file.testzip() is None
        names = file.namelist()
        assert names == sorted(names)
        assert all(item.compress_type == zipfile.ZIP_STORED for item in file.infolist())
        manifest = json.loads(file.read("MANIFEST.json"))
        assert [subject["name"] for subject in manifest["subject"]] == names[2:]
        for subject in manifest["subject"]:
            assert hashlib.sha256(file.read(subject["name"])).hexdigest() == subject["digest"]["sha256"]
        records = [json.loads(line) for line in file.read("records/000000.jsonl").splitlines()]
        schema = json.loads(file.read("schemas/record.schema.json"))
    assert {name.partition("/")[0] for name in names} == {
        "MANIFEST.json", "SIGNATURE.json", "blobs", "cases", "records", "report.html", "run", "schemas", "specs",
    }  # fmt: skip
    assert len(records) == 6
    for record in records:
        jsonschema.validate(record, schema, cls=jsonschema.Draft202012Validator)
    assert manifest["predicate"]["totals"] == {
        "records": 6, "cases": 7, "passed": 2, "failed": 2, "waived": 1, "errors": 1, "skipped": 2, "out_of_scope": 0,
    }  # fmt: skip
    assert set(manifest["predicate"]["left_out"]) >= {"waivers"}


def test_the_schema_knows_what_is_wrong() -> None:
    schema = record_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(json.dumps(record_to_json(make_record(1, share=math.inf))))
    jsonschema.validate(document, schema)
    for path, value in (("trial_id", "x"), ("trial", {}), ("verdict", {"result": 3}), ("more", 1), ("seconds", "soon")):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, path: value}, schema)


@pytest.mark.parametrize("share", [0.25, math.inf, math.nan])
def test_a_record_comes_back_from_json(share: float) -> None:
    record = with_outputs(make_record(1, share=share, **FAILED), b"one")
    text = json.dumps(record_to_json(record), allow_nan=False)
    assert repr(record_from_json(json.loads(text), where="x")) == repr(record)
    counted = msgspec.structs.replace(record, counted_as=record.key)
    assert record_from_json(record_to_json(counted), where="x").counted_as == record.key
    with pytest.raises(HarnessError, match="no record of the format"):
        record_from_json({}, where="x")


def test_the_same_run_gives_the_same_bytes(bundles: dict[bool, Path], key: Path, tmp_path: Path) -> None:
    run = RunDirectory(bundles[True].parent / "run")
    write_bundle(run, OutputFile(tmp_path / "again"), signer=Signer(key), make_report=lambda _run: PAGE)
    assert (tmp_path / "again").read_bytes() == bundles[True].read_bytes()


@pytest.mark.parametrize("signed", [False, True])
def test_a_bundle_as_it_was_written_is_good(signed: bool, bundles: dict[bool, Path], key: Path) -> None:
    found = verify_bundle(bundles[signed], key=Verifier(key.with_suffix(".pub")) if signed else None)
    assert found.problems == ()
    assert found.eligible == 1
    assert found.signature == (f"good, by the key {Signer(key).key_id}" if signed else "nobody signed it")


def regions(path: Path) -> Iterator[tuple[int, int, str]]:
    """First byte, end and name of everything that a bundle consists of."""
    with zipfile.ZipFile(path) as file:
        entries = file.infolist()
        start = file.start_dir
    ends = [*(entry.header_offset for entry in entries[1:]), start]
    for entry, end in zip(entries, ends, strict=True):
        yield entry.header_offset, end, entry.filename
    for entry in entries:
        end = start + 46 + len(entry.filename)
        yield start, end, entry.filename
        start = end
    yield start, path.stat().st_size, "end record"


@pytest.mark.parametrize("signed", [False, True])
def test_one_changed_byte_is_found_and_named(signed: bool, bundles: dict[bool, Path], tmp_path: Path) -> None:
    content = bundles[signed].read_bytes()
    known = list(regions(bundles[signed]))
    assert known[-1][1] == len(content)
    chance = random.Random(signed)  # noqa: S311 - places, and no secret
    for first, end, name in known:
        # Each header and directory line densely, contents here and there.
        chosen = {
            first,
            end - 1,
            *range(first, min(end, first + 80), 7),
            *(chance.randrange(first, end) for _ in range(6)),
        }
        for place in chosen & set(range(first, end)):
            changed = bytearray(content)
            changed[place] ^= 1 << chance.randrange(8)
            found = verified(bytes(changed), tmp_path)
            assert places(found) == {name}, (place, name, found.problems)


@pytest.mark.parametrize("signed", [False, True])
def test_missing_and_further_bytes_are_found(signed: bool, bundles: dict[bool, Path], tmp_path: Path) -> None:
    content = bundles[signed].read_bytes()
    assert verified(content + b"x", tmp_path).problems == (Problem("file", "1 bytes follow its end"),)
    assert verified(content[:-1], tmp_path).problems == (Problem("end record", "the file ends within it"),)
    for place in range(0, len(content), 997):
        assert not verified(content[:place], tmp_path).good
        assert not verified(content[:place] + b"\0" + content[place:], tmp_path).good


@pytest.mark.parametrize("content", [b"", b"PK", b"not a bundle", b"\0" * 5000, b"PK\5\6" + bytes(18)])
def test_what_is_no_bundle(content: bytes, tmp_path: Path) -> None:
    found = verified(content, tmp_path)
    assert not found.good
    assert found.predicate is None


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        verify_bundle(tmp_path / "none")


def edited(name: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes], dict[str, Any]], None]:
    def change(entries: dict[str, bytes], _predicate: dict[str, Any]) -> None:
        assert old in entries[name]
        entries[name] = entries[name].replace(old, new, 1)

    return change


def without(name: str) -> Callable[[dict[str, bytes], dict[str, Any]], None]:
    def change(entries: dict[str, bytes], _predicate: dict[str, Any]) -> None:
        for key in [key for key in entries if key.startswith(name)]:
            del entries[key]

    return change


def less_failures(entries: dict[str, bytes], _predicate: dict[str, Any]) -> None:
    head, kinds, rest = entries["run/summary.json"].partition(b'"kinds"')
    assert b'"failed": 2' in rest
    entries["run/summary.json"] = head + kinds + rest.replace(b'"failed": 2', b'"failed": 1', 1)


DECEITS: list[tuple[Callable[[dict[str, bytes], dict[str, Any]], None], str]] = [
    (edited("records/000000.jsonl", b'"result":"failed"', b'"result":"passed"'), "are stated; the records have"),
    (edited("records/000000.jsonl", b'"seed":5', b'"seed":9'), "its trial is not the one that its id names"),
    (edited("records/000000.jsonl", b'"fault":"value"', b'"fault":"crash"'), "that of another fault"),
    (edited("records/000000.jsonl", b'"looks":"wrong"', b'"looks":"rounding"'), "does not follow from its verdict"),
    (edited("records/000000.jsonl", b'"format":"aclnn-cts/record/2"', b'"format":"x"'), "is no record of the format"),
    (edited("records/000000.jsonl", b"\n", b"\nnonsense\n"), "is no record of the format"),
    (edited("records/000000.jsonl", b'"result":"failed"', b'"result":7'), "7 where a word is expected"),
    (edited("run/summary.json", b'"failed": 2', b'"failed": 1'), "$.failed does not follow from the counts by kind"),
    (edited("run/summary.json", b'"verdict": "fails"', b'"verdict": "conforms"'), "$.verdict does not follow"),
    (less_failures, "are stated; the records have"),
    (edited("run/summary.json", b'"known": 1', b'"known": 2'), "waivers"),
    (edited("run/manifest.json", b'"adapter": "torch"', b'"adapter": "cann"'), "says another verdict, adapter"),
    (edited("specs/softmax_backward.yaml", b"FLOAT16", b"FLOAT"), "is not the spec that the run used"),
    (without("run/"), "is missing, or is none"),
    (without("cases/"), "is missing: records fail with its fingerprint"),
    (without("report"), "says of the report 'report.html', which is not so"),
    (lambda entries, _: entries.update({"cases/x.json": b"{}"}), "no record fails with its fingerprint"),
    (lambda entries, _: entries.update({f"blobs/{'0' * 64}": b""}), "no record tells of it"),
    (lambda entries, _: entries.update({"more": b""}), "no bundle has such an entry"),
    (lambda _, predicate: predicate["totals"].update(passed=3), "its totals are not those"),
    (lambda _, predicate: predicate.update(verdict="conforms"), "says another verdict"),
    (lambda _, predicate: predicate.update(statuses=False), "whether there are statuses"),
    (lambda _, predicate: predicate.update(product="atlas-a2"), "otherwise than the run's environment what it ran on"),
    (
        lambda _, predicate: predicate.update(ran_on="Ascend910B3"),
        "otherwise than the run's environment what it ran on",
    ),
    (edited("run/manifest.json", b"software device", b"hardware"), "otherwise than the run's environment"),
]


@pytest.mark.parametrize(("change", "what"), DECEITS)
def test_parts_that_do_not_fit_are_found(
    change: Callable[[dict[str, bytes], dict[str, Any]], None], what: str, bundles: dict[bool, Path], tmp_path: Path
) -> None:
    found = verified(rebuilt(bundles[False], change), tmp_path)
    assert any(what in problem.what for problem in found.problems), found.problems


def test_a_rebuilt_bundle_without_a_change_is_good(bundles: dict[bool, Path], tmp_path: Path) -> None:
    content = rebuilt(bundles[False], lambda _entries, _predicate: None)
    assert content == bundles[False].read_bytes()


def test_the_signature_is_that_of_the_key(bundles: dict[bool, Path], key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    public = Ed25519PrivateKey.generate().public_key()
    other.write_bytes(
        public.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH) + b" someone\n"
    )
    assert "and not by the one given" in verify_bundle(bundles[True], key=Verifier(other)).problems[0].what
    unsigned = verify_bundle(bundles[False], key=Verifier(other))
    assert unsigned.problems[0].what == "the bundle is not signed; the key that was given says nothing of it"
    unchecked = verify_bundle(bundles[True])
    assert unchecked.good
    assert unchecked.signature.endswith("not checked: no public key was given")

    def forge(entries: dict[str, bytes], predicate: dict[str, Any]) -> None:
        del entries["SIGNATURE.json"]
        predicate["signer"] = Signer(key).key_id

    forged = rebuilt(bundles[True], forge)
    assert places(verified(forged, tmp_path, key=Verifier(key.with_suffix(".pub")))) >= {"SIGNATURE.json"}


def test_of_an_older_bundle_bytes_and_signature_are_checked(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "Predicate", functools.partial(Predicate, format="aclnn-cts/bundle/1"))
    monkeypatch.setattr(statement, "RECORD_FORMAT", "aclnn-cts/record/1")
    path = tmp_path / "old.zip"
    write_bundle(small_run(tmp_path / "run"), OutputFile(path), signer=Signer(key), make_report=lambda _run: PAGE)
    public = Verifier(key.with_suffix(".pub"))
    found = verify_bundle(path, key=public, recompute=1)
    [problem] = found.problems
    assert problem.what.startswith("its records: written by an older version (format 'aclnn-cts/bundle/1');")
    assert "The last release that reads it is 0.1.0: pip install aclnn-cts==0.1.0." in problem.what
    assert found.signature.startswith("good, by the key ")

    content = path.read_bytes()
    [changed] = {*places(verified(content.replace(PAGE, PAGE[::-1]), tmp_path, key=public))} - {"file"}
    assert changed == "report.html"

    def forge(entries: dict[str, bytes], predicate: dict[str, Any]) -> None:
        del entries["SIGNATURE.json"]
        predicate["signer"] = Signer(key).key_id

    assert "SIGNATURE.json" in places(verified(rebuilt(path, forge), tmp_path, key=public))


@pytest.mark.parametrize(
    "name", ["../x", "/x", "a//b", "a/../b", "a/.b", "a\\b", "a\nb", "", "x" * 256, "é", "C:x", "-x"]
)
def test_names_that_could_leave_a_folder(name: str, bundles: dict[bool, Path], tmp_path: Path) -> None:
    assert bad_name(name)
    found = verified(rebuilt(bundles[False], lambda entries, _: entries.update({name: b""})), tmp_path)
    assert "names that no bundle has" in found.problems[0].what


def test_huge_entries_and_sizes_are_refused(
    bundles: dict[bool, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bundles[False].read_bytes()
    size = b'"annotations":{"size":%d}' % len(PAGE)
    assert size in content
    for stated in (-1, 2**62, 2**70):
        found = verified(content.replace(size, b'"annotations":{"size":%d}' % stated, 1), tmp_path)
        assert not found.good
    monkeypatch.setattr(statement, "MEMORY_LIMIT", 100)
    assert "expected at most 100" in verified(content, tmp_path).problems[0].what


def test_a_compressed_zip_is_no_bundle(bundles: dict[bool, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(bundles[False]) as old, zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert not verify_bundle(tmp_path / "x.zip").good


def test_more_entries_than_the_old_form_holds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The records of ZIP64 where they are needed, read by another program."""
    monkeypatch.setattr(archive, "_LAST_16", 3)
    sources = [archive.Source(Member(name, 1, zlib.crc32(b"x")), "", b"x") for name in "abcd"]
    content = b"".join(archive_bytes(sources))
    # Where the old record says 0xFFFF, the new one counts.
    content = content[:-14] + struct.pack("<HH", 0xFFFF, 0xFFFF) + content[-10:]
    (tmp_path / "x.zip").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "x.zip") as file:
        assert file.namelist() == list("abcd")
        assert file.testzip() is None


def test_a_run_that_is_not_finished(tmp_path: Path) -> None:
    with create_run(tmp_path / "run", manifest=make_manifest(), specs={}):
        pass
    with pytest.raises(UsageError, match="has not finished"):
        write_bundle(RunDirectory(tmp_path / "run"), OutputFile(tmp_path / "x.zip"))


def test_a_folder_that_takes_no_file(tmp_path: Path) -> None:
    unwritable = Path("/proc/x.zip")
    if not unwritable.parent.is_dir():
        pytest.skip("no folder here that refuses files to everybody")
    with pytest.raises(HarnessError, match=r"^/proc/x\.zip: cannot be written: "):
        write_bundle(small_run(tmp_path / "run"), OutputFile(unwritable))
