from __future__ import annotations

import copy
import hashlib
import io
import json
import math
import random
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from aclnn_cts.bundle import archive
from aclnn_cts.bundle.archive import BundleProblem, bad_name
from aclnn_cts.bundle.records import record_from_json, record_schema, record_to_json
from aclnn_cts.bundle.signature import Signer, Verifier, signature_path
from aclnn_cts.bundle.verify import Verification, verify_bundle
from aclnn_cts.bundle.write import write_bundle
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import BufferState, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Record, Result, SkipReason
from aclnn_cts.runs.programs import program_maker
from aclnn_cts.speclang.load import load_specs, package_folder
from aclnn_cts.store.events import TrialsPlanned, TrialsSkipped
from aclnn_cts.store.manifest import adapter_facts
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.run_writer import create_run
from tests.support.build_records import SOFTMAX, make_manifest, make_record
from tests.support.bundles import Change, packed, rebuilt, verified, write_signed

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
        make_record(2, dtype="BF16", waiver="known", error_ratio=math.inf, **FAILED),
        make_record(3, result=Result.SKIPPED, kind=SkipReason.OPEN),
        make_record(4, result=Result.ERROR),
        make_record(5, facts={"far": -math.inf}, case_kind="invalid", check="status", constraint="dim.range"),
    ]
    spec = (package_folder() / "softmax_backward.yaml").read_bytes()
    facts = adapter_facts({"device": "software device standing in for Ascend910B3", "version": "loopback"})
    manifest = make_manifest(target=Target(product="atlas-a2"), environment=facts)
    programs = program_maker(load_specs(), ())
    with create_run(path, manifest=manifest, specs={"softmax_backward.yaml": spec}, programs=programs) as writer:
        writer(TrialsPlanned(operator=SOFTMAX, kind="valid", number=6))
        writer(TrialsPlanned(operator=SOFTMAX, kind="invalid", number=1))
        writer(TrialsSkipped(operator=SOFTMAX, kind="valid", reason=SkipReason.UNSUPPORTED))
        writer.append(records)
        for content in (b"one", b"two", b"of no record"):
            writer.blob(content)
        writer.finish()
    return RunDirectory(path)


@pytest.fixture(scope="module", name="bundle")
def make_bundle(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Path:
    """The bundle of the small run, signed."""
    path = tmp_path_factory.mktemp("bundles") / "small.zip"
    write_signed(small_run(path.parent / "run"), path, key, make_report=lambda _run: PAGE)
    return path


def places(found: Verification) -> set[str]:
    return {problem.where for problem in found.problems}


def test_every_program_can_unpack_it(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as file:
        assert file.testzip() is None
        names = file.namelist()
        assert {(item.compress_type, item.date_time, item.flag_bits) for item in file.infolist()} == {
            (zipfile.ZIP_STORED, (1980, 1, 1, 0, 0, 0), 0)
        }
        about = json.loads(file.read("bundle.json"))
        for name in names:
            if name.startswith("blobs/"):
                assert hashlib.sha256(file.read(name)).hexdigest() == name.removeprefix("blobs/")
        records = [json.loads(line) for line in file.read("records/000000.jsonl").splitlines()]
        schema = json.loads(file.read("schemas/record.schema.json"))
    assert list(dict.fromkeys(name.partition("/")[0] for name in names)) == [
        "bundle.json", "cases", "report.html", "run", "schemas", "specs", "records", "blobs",
    ]  # fmt: skip
    assert len(records) == 6
    for record in records:
        jsonschema.validate(record, schema, cls=jsonschema.Draft202012Validator)
    assert set(about["left_out"]) >= {"waivers"}
    says = verify_bundle(bundle).says
    assert says is not None
    assert says.totals == {
        "records": 6, "cases": 7, "passed": 2, "failed": 2, "waived": 1, "errors": 1, "skipped": 2, "out_of_scope": 0,
    }  # fmt: skip


@pytest.mark.parametrize("program", ["unzip", "openssl"])
def test_other_programs_check_it(program: str, bundle: Path, key: Path, tmp_path: Path) -> None:
    """As docs/compare-and-bundle.md says."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    if program == "unzip":
        subprocess.run(["unzip", "-tq", str(bundle)], check=True, capture_output=True)
        return
    digest = tmp_path / "digest"
    digest.write_bytes(hashlib.sha256(bundle.read_bytes()).digest())
    public = tmp_path / "key.pub"
    private = serialization.load_pem_private_key(key.read_bytes(), password=None)
    public.write_bytes(
        private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    words = ["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", public, "-in", digest]
    done = subprocess.run(
        ["openssl", *map(str, words), "-sigfile", str(signature_path(bundle))],
        check=True,
        capture_output=True,
    )
    assert b"Verified Successfully" in done.stdout


def test_the_schema_knows_what_is_wrong() -> None:
    schema = record_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(json.dumps(record_to_json(make_record(1, error_ratio=math.inf))))
    jsonschema.validate(document, schema)
    for path, value in (("trial_id", "x"), ("trial", {}), ("verdict", {"result": 3}), ("more", 1), ("seconds", "soon")):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, path: value}, schema)


@pytest.mark.parametrize("error_ratio", [0.25, math.inf, math.nan])
def test_a_record_comes_back_from_json(error_ratio: float) -> None:
    record = with_outputs(make_record(1, error_ratio=error_ratio, **FAILED), b"one")
    text = json.dumps(record_to_json(record), allow_nan=False)
    assert repr(record_from_json(json.loads(text), where="x")) == repr(record)


def test_the_same_run_gives_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    run = RunDirectory(bundle.parent / "run")
    write_bundle(run, OutputFile(tmp_path / "again"), make_report=lambda _run: PAGE)
    assert (tmp_path / "again").read_bytes() == bundle.read_bytes()


@pytest.mark.parametrize("signed", [False, True])
def test_a_bundle_as_it_was_written_is_good(signed: bool, bundle: Path, key: Path, tmp_path: Path) -> None:
    path = bundle if signed else Path(shutil.copy(bundle, tmp_path))
    found = verify_bundle(path, key=Verifier(key.with_suffix(".pub")) if signed else None)
    assert found.problems == ()
    assert found.eligible == 1
    assert found.signature == (f"good, by the key {Signer(key).key_id}" if signed else "nobody signed it")
    assert bool(found.unproved) != signed


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


def test_one_changed_byte_is_found_and_its_entry_named(bundle: Path, tmp_path: Path) -> None:
    content = bundle.read_bytes()
    known = list(regions(bundle))
    assert known[-1][1] == len(content)
    chance = random.Random(1)  # noqa: S311 - places, and no secret
    for number, (first, end, name) in enumerate(known):
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
            assert not found.good, (place, name)
            if number < len(known) // 2 and place >= first + 30 + len(name):
                assert places(found) == {name}, (place, name, found.problems)


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    content = packed({"bundle.json": b'{"format":"aclnn-cts/bundle/3","left_out":{}}', "repro/x.py": b"pass"})
    sound = verified(content, tmp_path)
    assert places(sound) == {"run"}
    for place in range(8 * len(content)):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        assert verified(bytes(changed), tmp_path).problems != sound.problems, place


def test_missing_and_further_bytes_are_found(bundle: Path, tmp_path: Path) -> None:
    content = bundle.read_bytes()
    assert verified(content + b"x", tmp_path).problems == (BundleProblem("file", "1 bytes follow its end"),)
    assert places(verified(content[:-1], tmp_path)) == {"file"}
    for place in range(0, len(content), 997):
        assert not verified(content[:place], tmp_path).good
        assert not verified(content[:place] + b"\0" + content[place:], tmp_path).good


@pytest.mark.parametrize("content", [b"", b"PK", b"not a bundle", b"\0" * 5000, b"PK\5\6" + bytes(18)])
def test_what_is_no_bundle(content: bytes, tmp_path: Path) -> None:
    found = verified(content, tmp_path)
    assert not found.good
    assert found.says is None


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        verify_bundle(tmp_path / "none")


def edited(name: str, old: bytes, new: bytes) -> Change:
    def change(entries: dict[str, bytes]) -> None:
        assert old in entries[name]
        entries[name] = entries[name].replace(old, new, 1)

    return change


def without(name: str) -> Change:
    def change(entries: dict[str, bytes]) -> None:
        for key in [key for key in entries if key.startswith(name)]:
            del entries[key]

    return change


def less_failures(entries: dict[str, bytes]) -> None:
    head, kinds, rest = entries["run/summary.json"].partition(b'"kinds"')
    assert b'"failed": 2' in rest
    entries["run/summary.json"] = head + kinds + rest.replace(b'"failed": 2', b'"failed": 1', 1)


DECEITS: list[tuple[Change, str]] = [
    (edited("records/000000.jsonl", b'"result":"failed"', b'"result":"passed"'), "are stated; the records have"),
    (edited("records/000000.jsonl", b'"seed":5', b'"seed":9'), "its trial is not the one that its id names"),
    (edited("records/000000.jsonl", b'"fault":"value"', b'"fault":"crash"'), "that of another fault"),
    (
        edited("records/000000.jsonl", b'"fault":"value"', b'"fault":"value","answer":"x"'),
        "does not follow from its verdict",
    ),
    (edited("records/000000.jsonl", b'"format":"aclnn-cts/record/2"', b'"format":"x"'), "is no record of the format"),
    (edited("records/000000.jsonl", b"\n", b"\nnonsense\n"), "is no record of the format"),
    (edited("records/000000.jsonl", b'"result":"failed"', b'"result":7'), "7 where a word is expected"),
    (edited("run/summary.json", b'"failed": 2', b'"failed": 1'), "$.failed does not follow from the counts by kind"),
    (edited("run/summary.json", b'"verdict": "fails"', b'"verdict": "conforms"'), "$.verdict does not follow"),
    (less_failures, "are stated; the records have"),
    (edited("run/summary.json", b'"known": 1', b'"known": 2'), "waivers"),
    (edited("specs/softmax_backward.yaml", b"FLOAT16", b"FLOAT"), "is not the spec that the run used"),
    (without("run/"), "is missing, or is none"),
    (without("cases/"), "is missing: records fail with its fingerprint"),
    (lambda entries: entries.update({"cases/x.json": b"{}"}), "no record fails with its fingerprint"),
    (lambda entries: entries.update({f"blobs/{hashlib.sha256().hexdigest()}": b""}), "no record tells of it"),
    (lambda entries: entries.update({"more": b""}), "no bundle has such an entry"),
    (edited("bundle.json", b"bundle/3", b"bundle/2"), "has the format 'aclnn-cts/bundle/2'; this version reads"),
    (edited("bundle.json", b"{", b"["), "cannot be read"),
    (without("bundle.json"), "its first entry is not bundle.json"),
    (lambda entries: entries.update({f"blobs/{hashlib.sha256(b'one').hexdigest()}": b"two"}), "is not its name"),
]


@pytest.mark.parametrize(("change", "what"), DECEITS)
def test_parts_that_do_not_fit_are_found(change: Change, what: str, bundle: Path, tmp_path: Path) -> None:
    found = verified(rebuilt(bundle, change), tmp_path)
    assert any(what in problem.what for problem in found.problems), found.problems


def test_a_rebuilt_bundle_without_a_change_is_the_same(bundle: Path) -> None:
    assert rebuilt(bundle, lambda _entries: None) == bundle.read_bytes()


def test_the_signature_is_that_of_the_key(bundle: Path, key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    public = Ed25519PrivateKey.generate().public_key()
    other.write_bytes(
        public.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH) + b" someone\n"
    )
    [problem] = verify_bundle(bundle, key=Verifier(other)).problems
    assert "small.zip.sig is not that of the key given" in problem.what
    unchecked = verify_bundle(bundle)
    assert unchecked.good
    assert unchecked.signature == "small.zip.sig was not checked: no public key was given"
    again = Path(shutil.copy(bundle, tmp_path))
    right = Verifier(key.with_suffix(".pub"))
    assert "small.zip.sig: cannot be read" in verify_bundle(again, key=right).problems[0].what
    for signature in (b"", bytes(64), bytes(65)):
        signature_path(again).write_bytes(signature)
        found = verify_bundle(again, key=right)
        assert places(found) == {"signature"}
        assert found.unproved
    forged = rebuilt(bundle, edited("bundle.json", b"}", b" }"))
    again.write_bytes(forged)
    shutil.copy(signature_path(bundle), tmp_path)
    assert verify_bundle(again).good
    assert places(verify_bundle(again, key=right)) == {"signature"}


@pytest.mark.parametrize(
    "name", ["../x", "/x", "a//b", "a/../b", "a/.b", "a\\b", "a\nb", "", "x" * 256, "é", "C:x", "-x"]
)
def test_names_that_could_leave_a_folder(name: str, bundle: Path, tmp_path: Path) -> None:
    assert bad_name(name)
    found = verified(rebuilt(bundle, lambda entries: entries.update({name: b""})), tmp_path)
    assert not found.good
    assert found.says is None


def test_entries_beyond_their_limit_are_refused(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bundle.read_bytes()
    monkeypatch.setattr(archive, "MEMORY_LIMIT", 100)
    assert "expected at most 100" in verified(content, tmp_path).problems[0].what
    monkeypatch.setattr(archive, "DIRECTORY_LIMIT", 100)
    assert "its directory has more than 100 bytes" in verified(content, tmp_path).problems[0].what


def with_entry(bundle: Path, name: str, content: bytes, **facts: Any) -> bytes:
    """A bundle with a further entry whose header states these facts."""
    further = bundle.parent / "further.zip"
    shutil.copy(bundle, further)
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, 0o100644 << 16
    for fact, value in facts.items():
        setattr(entry, fact, value)
    with zipfile.ZipFile(further, "a") as file:
        file.writestr(entry, content)
    return further.read_bytes()


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("name", "facts", "what"),
    [
        ("report.html", {}, "names entries twice"),
        ("repro/x.py", {"compress_type": zipfile.ZIP_DEFLATED}, "compressed or encrypted"),
        ("repro/x.py", {"external_attr": 0o120777 << 16}, "has been changed"),
        ("repro/x.py", {"date_time": (2026, 1, 1, 0, 0, 0)}, "has been changed"),
        ("repro/x.py", {"comment": b"more"}, "has been changed"),
        ("repro/x.py", {"extra": b"\xfe\xca\0\0"}, "has been changed"),
    ],
    ids=["twice", "compressed", "link", "date", "comment", "extra"],
)
def test_entries_that_bundle_does_not_write(
    name: str, facts: dict[str, Any], what: str, bundle: Path, tmp_path: Path
) -> None:
    assert verified(with_entry(bundle, "repro/x.py", b"pass"), tmp_path).good
    found = verified(with_entry(bundle, name, b"pass", **facts), tmp_path)
    assert any(what in problem.what for problem in found.problems), found.problems


def test_entries_that_share_bytes_are_refused(bundle: Path, tmp_path: Path) -> None:
    """As those of a ZIP bomb do."""
    size = bundle.stat().st_size
    buffer = io.BytesIO(with_entry(bundle, "repro/x.py", bytes(size)))
    with zipfile.ZipFile(buffer, "a") as file:
        first = file.getinfo("repro/x.py")
        for number in range(9):
            entry = copy.copy(first)
            entry.filename = f"repro/{number}.py"
            file.filelist.append(entry)
            file.NameToInfo[entry.filename] = entry
        file._didModify = True  # type: ignore[attr-defined]
    [problem] = verified(buffer.getvalue(), tmp_path).problems
    assert problem == BundleProblem("directory", "has entries that are larger than the file")


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
