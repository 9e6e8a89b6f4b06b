"""What `-o` and `--progress` may replace, of every command that has one, through the command line."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from aclnn_cts.cli import faults, main, report
from aclnn_cts.cli.main import COMMANDS, CommandEntry, LazyGroup
from aclnn_cts.cli.options import OutputPath
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.verdict import Result
from tests.authoring.test_import_atk import FIXTURE
from tests.cli.conftest import Called, named
from tests.reports.synthetic import record, softmax_case, synthetic_run
from tests.selftest.test_power import came_to
from tests.training.calls import LAYER_NORM

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

ROOT = Path(__file__).resolve().parents[2]
MINE = b"mine, and nobody else's\n"
WRONG = "tests.support.wrong_adapters:Wrong,fault=value"

Call = Callable[..., Called]

PAGE = b'<!DOCTYPE html>\n<html lang="en"><meta name="generator" content="aclnn-cts"></html>'


@pytest.fixture(autouse=True)
def place(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with a run `run` that has a finding, a case, a key, and little that takes long."""
    synthetic_run(
        tmp_path / "run",
        [record(softmax_case()), record(softmax_case(1), result=Result.FAILED, kind="value", output="out")],
    )
    (tmp_path / "document.md").write_text("# aclnnSoftmaxBackward\n\n## 功能说明\n\n反向。\n", encoding="utf-8")
    (tmp_path / "calls.jsonl").write_text(json.dumps(LAYER_NORM), encoding="utf-8")
    (tmp_path / "case.json").write_text(json.dumps(case_to_json(softmax_case())), encoding="utf-8")
    key = Ed25519PrivateKey.generate()
    (tmp_path / "k.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (tmp_path / "k.pub").write_bytes(
        key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    )
    monkeypatch.setattr(faults, "attempts", came_to())
    monkeypatch.setattr(report, "page", lambda _run, **_options: PAGE)
    return tmp_path


def finding() -> str:
    [file] = Path("run/failures").glob("*.json")
    return str(file)


CASES = ("cases", "softmax_backward", "-n", "1", "--kind", "valid", "-o")
MUTANT = (
    *("mutants", "--op", "softmax_backward", "--seed", "x", "--mutant", "softmax_backward.0"),
    *("--witness-calls", "20", "--min-kill-rate", "0", "--workers", "1"),
)
WRITERS: dict[str, tuple[tuple[str, ...], str]] = {
    "cases": (CASES, "x.jsonl"),
    "import-atk": (("import-atk", str(FIXTURE), "-o"), "x.jsonl"),
    "import-calls": (("import-calls", "calls.jsonl", "-o"), "x.jsonl"),
    "bundle": (("bundle", "run", "-o"), "x.bundle"),
    **{f"report {name}": (("report", "run", "-o"), f"x{form.suffix}") for name, form in report.FORMS.items()},
    "report signing": (("report", "run", "--format", "signing", "-o"), "x.html"),
    "report pr": (("report", "run", "--format", "pr", "-o"), "x.md"),
    "report outline": (("report", "run", "--format", "outline", "-o"), "x.md"),
    "shrink": (("shrink", "case.json", "--adapter", WRONG, "--executions", "3", "-o"), "x.json"),
    "repro cpp": (("repro", "case.json", "-o"), "x.cpp"),
    "repro python": (("repro", "case.json", "--language", "python", "-o"), "x.py"),
    "waive add": (("waive", "add", "FINDING", "-o"), "x.yaml"),
    "spec draft": (("spec", "draft", "document.md", "-o"), "x.yaml"),
    "spec audit": (("spec", "audit", "softmax_backward", "--document", "document.md", "-o"), "x.yaml"),
    "faults": (("faults", "--op", "softmax_backward", "-o"), "x.json"),
    "mutants": ((*MUTANT, "-o"), "x.json"),
    "run": (("run", "--adapter", "reference", "--cases", "case.json", "--progress"), "x.json"),
    "fuzz": (
        ("fuzz", "softmax_backward", "--adapter", "reference", "--chunks", "1", "--chunk-trials", "8", "--progress"),
        "x.json",
    ),
}
"""By name: the words of a command, to which its output is added, and a name that the output may have."""
SLOW = {"mutants", "fuzz"}
FAILS = {"shrink", "spec audit"}
"""Those that end with exit code 1 when all goes well."""


def each(names: Iterable[str]) -> list[ParameterSet]:
    return [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in names]


def written(call: Call, name: str, out: Path | str, *more: str) -> Called:
    words = [finding() if word == "FINDING" else word for word in WRITERS[name][0]]
    return call(*words, str(out), *more)


def succeeded(name: str, called: Called) -> bool:
    return called.code == (name in FAILS)


@pytest.mark.parametrize("name", each(WRITERS))
def test_a_file_of_somebody_else_is_replaced_with_force_alone_and_one_s_own_without(
    name: str, call: Call, place: Path
) -> None:
    target = place / "kept" / WRITERS[name][1]
    target.parent.mkdir()
    target.write_bytes(MINE)
    target.chmod(0o640)
    link = place / WRITERS[name][1]
    link.symlink_to(target)
    before = set(place.rglob("*"))

    refused = written(call, name, link)
    assert (refused.code, refused.out) == (2, "")
    assert f" {link}: exists, and `aclnn-cts {name.split(maxsplit=1)[0]}" in refused.err
    assert "--force" in refused.err
    assert target.read_bytes() == MINE
    assert set(place.rglob("*")) == before

    assert succeeded(name, written(call, name, link, "--force"))
    assert link.is_symlink()
    assert link.resolve() == target
    first = target.read_bytes()
    assert first
    assert MINE not in first
    assert stat.S_IMODE(target.stat().st_mode) == 0o640

    if name == "fuzz":
        # A second campaign would take long: it is enough that the next mistake is told.
        again = call("fuzz", "--adapter", "none", "--chunks", "1", "--progress", str(link))
        assert "--adapter none" in again.err
    else:
        again = written(call, name, link)
        assert succeeded(name, again), again.err
    assert link.is_symlink()
    assert target.read_bytes()


@named(
    "bad",
    [
        ("not UTF-8", os.fsdecode(b"x\xff.json")),
        ("a long name", f"{'n' * 300}.json"),
        ("a long path", "/".join(["n" * 100] * 60)),
    ],
)
def test_a_name_that_no_file_can_have_is_refused_and_leaves_no_folder(call: Call, place: Path, bad: str) -> None:
    calls = {name: words for name, (words, _) in WRITERS.items()}
    calls |= {f"{name} -o": (*WRITERS[name][0][:-1], "-o") for name in ("run", "fuzz")}
    calls["replay"] = ("replay", "case.json", "--adapter", "reference", "-o")
    before = set(place.rglob("*"))
    for name, words in calls.items():
        called = call(*[finding() if word == "FINDING" else word for word in words], f"new/folder/{bad}")
        assert (called.code, called.out) == (2, ""), name
        [message] = called.err.splitlines()
        assert message.startswith(f"error: {words[-1]} 'new/folder/"), name
        assert len(message) < 400
        assert set(place.rglob("*")) == before, name


def test_a_disk_that_is_full_leaves_no_folder(call: Call, place: Path) -> None:
    before = set(place.rglob("*"))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, limit[1]))
    try:
        for words in (
            ("report", "run", "--format", "csv", "-o", "new/folder/x.csv"),
            ("run", "--adapter", "reference", "--cases", "case.json", "-o", "new/folder/run"),
        ):
            assert call(*words).code == 3
            assert set(place.rglob("*")) == before
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def test_a_name_as_long_as_names_can_be_is_written(call: Call, place: Path) -> None:
    for number, name in enumerate((f"{'n' * 249}.jsonl", f"{'名' * 83}.jsonl")):
        assert call(*CASES, name).code == 0
        assert (place / name).stat().st_size, number


@pytest.mark.parametrize("name", each(sorted(set(WRITERS) - {"fuzz", "run", "shrink", "report html"})))
def test_a_pipe_gets_what_a_file_would_hold(name: str, call: Call, place: Path) -> None:
    file, pipe = place / WRITERS[name][1], place / "pipe"
    more = (
        ("--format", name.partition(" ")[2])
        if name.startswith("report ") and "--format" not in WRITERS[name][0]
        else ()
    )
    assert succeeded(name, written(call, name, file))
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    called = written(call, name, pipe, *more)
    reader.join(60)
    assert succeeded(name, called), called.err
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    [content] = read
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as one, zipfile.ZipFile(io.BytesIO(content)) as other:
            assert one.namelist() == other.namelist()
    else:
        # Times of day and of the clock differ.
        assert content[:10] == file.read_bytes()[:10]
        assert content.count(b"\n") == file.read_bytes().count(b"\n")


@pytest.mark.parametrize("name", ["cases", "bundle", "report csv", "repro cpp", "waive add", "faults"])
def test_a_device_stays_one(name: str, call: Call, place: Path) -> None:
    full = place / "full"
    try:
        os.mknod(full, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
    except PermissionError:
        # Who may not make a device may not replace one either.
        full = Path("/dev/full")
    try:
        more = ("--format", "csv") if name == "report csv" else ()
        called = written(call, name, full, *more)
    except PermissionError:
        pytest.skip("devices cannot be opened in the folder of tests")
    if "Permission denied" in called.err:
        pytest.skip("devices cannot be opened in the folder of tests")
    assert called.code == 3
    assert f"{full}: cannot be written: No space left on device" in called.err
    assert stat.S_ISCHR(full.stat().st_mode)


def test_a_reader_that_goes_away_is_an_error(call: Call, place: Path) -> None:
    pipe = place / "pipe"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: pipe.open("rb").close())
    reader.start()
    called = call("cases", "softmax_backward", "-n", "300", "--kind", "valid", "-o", str(pipe))
    reader.join(60)
    assert called.code == 3
    assert called.err == f"error: {pipe}: cannot be written: its reader is gone; start one that reads to the end\n"


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("bundle", "run", "-o"), "run/results.sqlite"),
        (("report", "run", "--format", "csv", "-o"), "run/summary.json"),
        (CASES, "run/manifest.json"),
        (("shrink", "case.json", "--adapter", "reference", "-o"), "FINDING"),
        (("repro", "case.json", "-o"), "run/specs/softmax_backward.yaml"),
        (("report", "run", "--format", "html", "-o"), "run/notes.txt"),
    ],
)
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_file_of_a_run_is_never_replaced(
    call: Call, place: Path, words: tuple[str, ...], file: str, force: tuple[str, ...]
) -> None:
    (place / "run" / "notes.txt").write_bytes(MINE)
    path = Path(finding() if file == "FINDING" else file)
    before = path.read_bytes()
    for out in (path, _linked(path, "symbolic")):
        called = call(*words, str(out), *force)
        assert called.code == 2, called
        assert f"-o {out}: lies in the run {place / 'run'}; name a file outside of it" in called.err
        assert path.read_bytes() == before
    assert call("compare", "run", "run").code == 0


def _linked(path: Path, kind: str) -> Path:
    link = Path(f"{kind}{path.suffix}")
    if kind == "symbolic":
        link.symlink_to(path.resolve())
    elif kind == "hard":
        link.hardlink_to(path)
    else:
        return path
    return link


@pytest.mark.parametrize("file", ["summary.json", "campaign.jsonl", "results.sqlite-wal", "failures/more.json"])
def test_a_run_gets_no_file_that_would_be_its_own(call: Call, place: Path, file: str) -> None:
    run = synthetic_run(place / "killed", [record(softmax_case())], finish=False)
    for path in (run / "results.sqlite-wal", run / "results.sqlite-shm"):
        path.unlink(missing_ok=True)
    called = call(*CASES, f"killed/{file}", "--force")
    assert called.code == 2
    assert f"belongs to the run {run}; name a file outside of it" in called.err
    assert not (run / file).exists()
    # Beside its own there is room.
    assert call(*CASES, "killed/mine.jsonl").code == 0
    assert call("run", "--adapter", "reference", "--cases", "case.json", "-o", "killed/specs/new").code == 2
    assert not (run / "specs" / "new").exists()


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("bundle", "run", "--sign", "k.pem", "-o"), "k.pem"),
        (("shrink", "case.json", "--adapter", "reference", "-o"), "case.json"),
        (("repro", "case.json", "-o"), "case.json"),
        (("import-atk", "atk.json", "-o"), "atk.json"),
        (("run", "--adapter", "reference", "--cases", "case.json", "--progress"), "case.json"),
        (("run", "--adapter", "reference", "--waivers", "w.yaml", "--cases", "case.json", "--progress"), "w.yaml"),
        (("fuzz", "--adapter", "reference", "--chunks", "1", "--waivers", "w.yaml", "--progress"), "w.yaml"),
        (("report", "run", "--waivers", "w.yaml", "--format", "html", "-o"), "w.yaml"),
        (("cases", "softmax_backward", "--specs", "mine", "-o"), "mine/x.yaml"),
    ],
)
@pytest.mark.parametrize("kind", ["itself", "symbolic", "hard"])
def test_an_input_of_the_same_command_is_never_replaced(
    call: Call, place: Path, words: tuple[str, ...], file: str, kind: str
) -> None:
    (place / "atk.json").write_bytes(FIXTURE.read_bytes())
    (place / "w.yaml").write_text("subject: nothing\nwaivers: []\n", encoding="utf-8")
    (place / "mine").mkdir()
    (place / "mine" / "x.yaml").write_text("operator: aclnnX\n", encoding="utf-8")
    before = (place / file).read_bytes()
    out = _linked(Path(file), kind)
    called = call(*words, str(out), "--force")
    assert called.code == 2
    assert f" {out}: the command reads this file (" in called.err
    assert (place / file).read_bytes() == before
    assert not Path("runs").exists()


def test_a_case_that_a_waiver_pins_is_an_input(call: Call, place: Path) -> None:
    (place / "waivers.yaml").write_text(
        "subject: a test\nwaivers:\n"
        "  - {id: known, scope: {adapter: torch, operator: aclnnSoftmaxBackward, kind: value}, reason: it is known,\n"
        "     owner: a person, expiry: 2999-12-31, cases: [case.json]}\n",
        encoding="utf-8",
    )
    before = (place / "case.json").read_bytes()
    called = call("report", "run", "--waivers", "waivers.yaml", "--format", "sarif", "-o", "case.json", "--force")
    assert called.code == 2
    assert "the command reads this file" in called.err
    assert (place / "case.json").read_bytes() == before


@pytest.mark.parametrize("key", ["k.pem", "k.pub", "armored.asc", "putty.ppk"])
@pytest.mark.parametrize("words", [CASES, ("bundle", "run", "-o"), ("report", "run", "--format", "csv", "-o")])
def test_a_key_is_never_replaced(call: Call, place: Path, key: str, words: tuple[str, ...]) -> None:
    (place / "armored.asc").write_text("Comment\n-----BEGIN PGP PRIVATE KEY BLOCK-----\n", encoding="utf-8")
    (place / "putty.ppk").write_text("PuTTY-User-Key-File-3: ssh-ed25519\n", encoding="utf-8")
    before = (place / key).read_bytes()
    called = call(*words, key, "--force")
    assert called.code == 2
    assert called.err == f"error: -o {key}: holds a key, which is never replaced; name another file\n"
    assert (place / key).read_bytes() == before


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("cases", '{"format":"aclnn-cts/case/1"'),
        ("import-atk", '{"format":"aclnn-cts/case/1"'),
        ("report markdown", "## aclnn-cts: "),
        ("shrink", '{\n  "format": "aclnn-cts/trial/2"'),
        ("repro cpp", "// aclnnSoftmaxBackward: "),
        ("waive add", "# Drafted from "),
        ("faults", '{\n  "format": "aclnn-cts/kill-matrix/1"'),
    ],
)
def test_a_dash_is_standard_output(call: Call, place: Path, name: str, begins: str) -> None:
    before = {path.name for path in place.iterdir()}
    more = ("--format", "markdown") if name.startswith("report") else ()
    called = written(call, name, "-", *more)
    assert succeeded(name, called), called.err
    assert called.out.startswith(begins)
    assert "\nRESULT" not in called.out
    if begins.startswith("{\n"):
        json.loads(called.out)
    assert {path.name for path in place.iterdir()} == before


@pytest.mark.parametrize("words", [("import-atk", str(FIXTURE)), ("faults", "--op", "softmax_backward")])
def test_standard_output_is_not_given_away_twice(call: Call, words: tuple[str, ...]) -> None:
    called = call(*words, "--json", "-o", "-")
    assert (called.code, called.out) == (2, "")
    assert "-o -: standard output holds what --json prints; name a file" in called.err


def test_a_directory_of_a_run_is_no_stream(call: Call, place: Path) -> None:
    called = call("run", "--adapter", "reference", "--cases", "case.json", "-o", "-")
    assert called.code == 2
    assert "-o -: a run is a directory, which standard output cannot take; name a directory" in called.err
    assert not (place / "-").exists()


def shell(line: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
    words = ["bash", "-c", line]
    return subprocess.run(words, env=environment, capture_output=True, check=False)


def test_what_a_shell_has_opened_is_written_to_as_it_was_opened(place: Path) -> None:
    (place / "all.jsonl").write_bytes(MINE)
    command = f'"$PYTHON" -m aclnn_cts {" ".join(CASES)}'
    done = shell(f"{command} /dev/stdout >> all.jsonl; {command} >(cat > piped.jsonl) && wait $!")
    assert done.returncode == 0, done.stderr
    kept, _, line = (place / "all.jsonl").read_bytes().partition(b"\n")
    assert kept + b"\n" == MINE
    assert line == (place / "piped.jsonl").read_bytes()
    assert json.loads(line)["operator"] == "aclnnSoftmaxBackward"


def test_a_descriptor_of_the_caller_is_written_to(place: Path, call: Call) -> None:
    with Path("x.bundle").open("wb") as file:
        called = call("bundle", "run", "-o", f"/dev/fd/{file.fileno()}")
    assert called.code == 0, called.err
    assert call("verify", "x.bundle").code == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cases", json.dumps(case_to_json(softmax_case()), separators=(",", ":")).replace("valid", "mine")),
        ("cases", json.dumps(case_to_json(softmax_case()))),
        ("cases", ""),
        ("shrink", "FINDING"),
        ("report html", '<!DOCTYPE html>\n<html lang="en">\n<meta name="generator" content="mine">\n'),
        ("report junit", "<?xml version='1.0' encoding='utf-8'?>\n<testsuites name=\"pytest\">\n"),
        ("report sarif", '{\n "$schema": "https://example.org/sarif-2.1.0.json",\n "version": "2.1.0"\n}\n'),
        ("report csv", "run,trial_id,operator\n"),
        ("report xlsx", "WORKBOOK"),
        ("report markdown", "## Mine\n"),
        ("bundle", "PK\3\4 an archive"),
        ("repro cpp", "// aclnnSoftmaxBackward: mine\n"),
        ("waive add", "FILLED"),
        ("faults", '{\n  "format": "aclnn-cts/case/1"\n}\n'),
    ],
)
def test_what_only_looks_like_it_is_left_alone(name: str, content: str, call: Call, place: Path) -> None:
    path = place / WRITERS[name][1]
    if content == "WORKBOOK":
        _saved_by_a_person(path)
    elif content == "FILLED":
        assert written(call, name, path).code == 0
        path.write_text(path.read_text(encoding="utf-8").replace("    owner:", "    owner: numerics"), encoding="utf-8")
    else:
        path.write_bytes(Path(finding()).read_bytes() if content == "FINDING" else content.encode())
    before = path.read_bytes()
    called = written(call, name, path)
    assert called.code == 2
    assert "did not write it; name another file, or replace this one with --force" in called.err
    assert path.read_bytes() == before


def _saved_by_a_person(path: Path) -> None:
    """A workbook of ours, as a spreadsheet leaves it that somebody has written into."""
    xlsxwriter: Any = pytest.importorskip("xlsxwriter")
    book = xlsxwriter.Workbook(str(path))
    book.set_properties({"author": "a person"})
    book.add_worksheet("summary")
    book.close()


def test_a_waiver_and_its_pinned_case_are_both_safe(call: Call, place: Path) -> None:
    assert written(call, "waive add", "w/a.yaml").code == 0
    [pinned] = Path("w/cases").iterdir()
    pinned.write_bytes(MINE)
    called = written(call, "waive add", "w/b.yaml")
    assert called.code == 2
    assert f"-o {pinned}: exists, and `aclnn-cts waive add` did not write it" in called.err
    assert pinned.read_bytes() == MINE
    assert not Path("w/b.yaml").exists()


def test_a_folder_of_reports_is_checked_before_any_is_written(call: Call, place: Path) -> None:
    (place / "out").mkdir()
    (place / "out" / "summary.md").write_bytes(MINE)
    called = call("report", "run", "-o", "out")
    assert called.code == 2
    assert "-o out/summary.md: exists, and `aclnn-cts report` did not write it" in called.err
    assert [path.name for path in Path("out").iterdir()] == ["summary.md"]


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("loop", "-o loop: cannot be written: Too many levels of symbolic links; name another file"),
        ("case.json/x", "-o case.json/x: cannot be written: Not a directory; name another file"),
        ("nowhere/x", "-o nowhere/x: nowhere is no folder; make it first, or name another file"),
        ("x" * 300, "has a part of 300 bytes; at most 255 fit; choose another name"),
        ("run", "-o run: is a folder; expected the name of a file"),
    ],
)
def test_a_path_that_takes_no_file_is_refused_before_any_work(
    call: Call, place: Path, monkeypatch: pytest.MonkeyPatch, out: str, message: str
) -> None:
    def never(*_: object, **_more: object) -> None:
        pytest.fail("nothing was to be run")

    monkeypatch.setattr(faults, "attempts", never)
    Path("loop").symlink_to("loop")
    called = written(call, "faults", out)
    assert called.code == 2
    assert message in called.err


def test_a_link_to_a_file_that_does_not_exist_yet_makes_that_file(call: Call, place: Path) -> None:
    (place / "kept").mkdir()
    Path("x.jsonl").symlink_to("kept/y.jsonl")
    assert call(*CASES, "x.jsonl").code == 0
    assert Path("x.jsonl").is_symlink()
    assert Path("kept/y.jsonl").is_file()


def commands(entries: Collection[CommandEntry], before: str = "") -> Iterator[tuple[str, click.Command]]:
    group = LazyGroup("group", entries=entries)
    for entry in entries:
        command = group.get_command(click.Context(group), entry.name)
        assert command is not None
        yield f"{before}{entry.name}", command


def test_every_output_of_every_command_keeps_to_these_rules() -> None:
    every = [
        *commands(COMMANDS),
        *commands(main.spec._entries.values(), "spec "),
        *commands(main.waive._entries.values(), "waive "),
    ]
    outputs = [
        (name, option, parameter, command)
        for name, command in every
        for parameter in command.params
        for option in ("--output", "--progress")
        if option in parameter.opts
    ]
    directories = {(name, "--output") for name in ("run", "fuzz", "replay", "export", "matrix")}
    for name, option, parameter, command in outputs:
        assert isinstance(parameter.type, OutputPath), name
        forced = any("--force" in each.opts for each in command.params)
        assert forced or (name, option) in directories, name
    files = {(name, option) for name, option, _, _ in outputs} - directories
    assert files == {
        (
            name if name.startswith(("waive ", "spec ")) else name.partition(" ")[0],
            WRITERS[name][0][-1].replace("-o", "--output"),
        )
        for name in WRITERS
    }
