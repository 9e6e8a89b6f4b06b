"""No escape sequence, bidirectional control or NUL of an outside string reaches a terminal or a file."""

from __future__ import annotations

import io
import json
import re
import unicodedata
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from rich.console import Console

from aclnn_cts.bundle.write import write_bundle
from aclnn_cts.cli.campaign_screen import status_screen
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.printable import ECHO_LIMIT, printable, printable_document, printable_lines, quote
from aclnn_cts.core.trial import Trial, trial_to_json
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.run_directory import RunDirectory
from tests.cli.conftest import Called
from tests.cli.test_campaign_screen import a_status
from tests.reports.synthetic import record, softmax_case, synthetic_run
from tests.support.evil_adapter import EVIL

Call = Callable[..., Called]
SUPPORT = Path(__file__).parents[1] / "support"
FIXTURES = Path(__file__).parents[1] / "fixtures"


def hidden(text: str) -> set[str]:
    """Characters of a text that show nothing or move others."""
    return {
        character
        for character in text
        if not character.isprintable() and character not in "\n\t" and unicodedata.category(character) != "Zs"
    }


def clean(called: Called) -> Called:
    assert not hidden(called.out)
    assert not hidden(called.err)
    assert "unexpected" not in called.err
    return called


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Everything that a run directory takes from an adapter, a waiver or a command line."""
    failed: dict[str, Any] = {"result": "failed", "kind": "value", "output": "out", "error_ratio": 2.0}
    evil = record(softmax_case(1), message=EVIL, waiver=EVIL, facts={EVIL: EVIL}, **failed)
    outcome = msgspec.structs.replace(evil.attempts[0][0], message=EVIL)
    origin = msgspec.structs.replace(evil.trial.case.origin, source=EVIL, change=EVIL)
    trial = msgspec.structs.replace(evil.trial, case=msgspec.structs.replace(evil.trial.case, origin=origin))
    evil = msgspec.structs.replace(evil, attempts=((outcome,),), trial=trial, where={"adapter": EVIL, "worker": EVIL})
    path = synthetic_run(
        tmp_path / "run",
        [record(softmax_case()), evil, record(softmax_case(2), message=EVIL, result="error"), record(softmax_case(3))],
    )
    document = json.loads((path / "manifest.json").read_bytes())
    document |= {"adapter": EVIL, "profile": EVIL, "arguments": [EVIL], "harness": EVIL}
    document["environment"] = {
        "adapter.description": {"value": EVIL, "known": "declared", "zh": EVIL},
        f"adapter.{EVIL}": {"value": EVIL, "known": EVIL},
    }
    document["settings"] = {"spec_folders": [EVIL]}
    (path / "manifest.json").write_text(json.dumps(document))
    summary = json.loads((path / "summary.json").read_bytes())
    summary |= {"violations": [EVIL], "problems": [EVIL], "notices": [EVIL]}
    (path / "summary.json").write_text(json.dumps(summary))
    return path


def test_what_a_run_holds(call: Call, run: Path, tmp_path: Path) -> None:
    [finding] = (run / "failures").glob("*.json")
    clean(call("compare", str(run), str(run)))
    clean(call("compare", "--json", str(run), str(run)))
    clean(call("report", str(run), "-o", str(tmp_path / "forms")))
    clean(call("waive", "add", str(finding)))
    clean(call("replay", str(run), "--adapter", "reference", "-o", str(tmp_path / "replayed")))
    clean(call("shrink", str(run)))
    clean(call("validate", str(finding)))
    forms = list((tmp_path / "forms").iterdir())
    assert any(file.suffix == ".xlsx" for file in forms)
    for file in forms:
        if file.suffix == ".xlsx":
            text = workbook_text(file)
            assert not hidden(text)
            # How a workbook spells a control character that a cell shall hold.
            assert not re.search("_x00[01][0-9A-Fa-f]_", text)
            assert "\\x1b" in text
        elif file.suffix != ".pdf":
            text = file.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
            assert not hidden(text), file.name
            assert file.name == "signing.html" or "\\x1b" in text or "\\u001b" in text, file.name


def workbook_text(file: Path) -> str:
    """All that the cells and properties of a workbook hold."""
    with zipfile.ZipFile(file) as book:
        parts = [ET.fromstring(book.read(name)) for name in book.namelist() if name.endswith(".xml")]
    return "\n".join(text for part in parts for text in part.itertext())


@pytest.fixture
def own_adapter(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(SUPPORT)
    return "evil_adapter:Evil"


@pytest.mark.slow
def test_what_an_adapter_says(call: Call, own_adapter: str, tmp_path: Path) -> None:
    lines = [json.dumps(case_to_json(softmax_case(seed))) for seed in range(2)]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    assert "\\x1b" in clean(call("doctor", own_adapter)).out
    assert "\\u001b" in clean(call("doctor", own_adapter, "--json")).out
    assert clean(call("run", "--cases", "c.jsonl", "--adapter", own_adapter, "-o", "made")).code == 1
    clean(call("replay", "made", "--adapter", own_adapter, "-o", "again", "-v"))
    for words in (("run",), ("doctor",), ("fuzz", "--chunks", "1")):
        option = () if words[0] == "doctor" else ("--adapter",)
        called = clean(call(*words, *option, f"{own_adapter},how=raise"))
        assert "\\x1b" in called.out + called.err


@pytest.mark.slow
def test_what_an_adapter_says_to_a_campaign(call: Call, own_adapter: str) -> None:
    words = f"fuzz softmax_backward --adapter {own_adapter} --chunks 2 --chunk-trials 16 -o made".split()
    called = clean(call(*words, "--progress", "p.jsonl"))
    assert called.code == 1
    assert "\\x1b" in called.out
    assert not hidden(Path("p.jsonl").read_text())
    assert not hidden(Path("made/campaign.jsonl").read_text())


def test_what_a_campaign_shows_while_it_runs() -> None:
    status = a_status(operators=1, findings=1, slots=2)
    [finding] = status.findings
    evil = Fingerprint(EVIL, EVIL, EVIL, EVIL, EVIL, output=EVIL, mode=EVIL, dtype=EVIL)
    status = replace(
        status,
        phase=EVIL,
        ran_on=EVIL,
        ending=EVIL,
        findings=[msgspec.structs.replace(finding, key=evil, note=EVIL)],
        slots=[
            replace(slot, name=EVIL, device=f"{EVIL},device={EVIL}", health=health)
            for slot, health in zip(status.slots, ("busy", "out"), strict=True)
        ],
        operators=[replace(item, name=EVIL) for item in status.operators],
    )
    for width in (80, 200):
        terminal = io.StringIO()
        out = Console(file=terminal, width=width, height=30, color_system=None, highlight=False)
        out.print(status_screen(status, Path(EVIL), width=width, height=30))
        assert "\\x1b" in terminal.getvalue()
        assert not hidden(terminal.getvalue())
        assert max(map(len, terminal.getvalue().splitlines())) <= width


def test_what_a_bundle_holds(call: Call, run: Path, tmp_path: Path) -> None:
    write_bundle(RunDirectory(run), OutputFile(tmp_path / "b.zip", written_by_us=lambda file: True, command="test"))
    assert "\\x1b" in clean(call("verify", str(tmp_path / "b.zip"))).out
    clean(call("verify", "--json", str(tmp_path / "b.zip")))


def changed(place: str) -> dict[str, Any]:
    """A trial with hidden characters at one place."""
    document = trial_to_json(Trial("values", softmax_case()))
    case = document["case"]
    tensor = case["arguments"]["out"]["tensor"]
    changes: dict[str, Callable[[], object]] = {
        "argument": lambda: case["arguments"].update({EVIL: None}),
        "argument_of_an_unknown_kind": lambda: case["arguments"].update({EVIL: {EVIL: EVIL}}),
        "tensor_of_a_name": lambda: case["arguments"].update({EVIL: {"tensor": {"shape": EVIL}}}),
        "kind": lambda: case["arguments"].update(out={EVIL: 1}),
        "check": lambda: document.update(check=EVIL),
        "parameter": lambda: document.update(parameters={EVIL: EVIL}),
        "operator": lambda: case.update(operator=EVIL),
        "product": lambda: case.update(product=EVIL),
        "format": lambda: document.update(format=EVIL),
        "key": lambda: document.update({EVIL: 1}),
        "target": lambda: case.update(target={EVIL: EVIL}),
        "call": lambda: case.update(call={"null": [EVIL]}),
        "dtype": lambda: tensor.update(dtype=EVIL),
        "tensor_key": lambda: tensor.update({EVIL: 1}),
        "recipe": lambda: tensor.update(data={"recipe": EVIL}),
        "of": lambda: tensor.update(data={"recipe": "rstd", "of": EVIL}),
        "value": lambda: tensor.update(data={"values": [EVIL]}),
        "origin": lambda: case.update(origin={"kind": EVIL, "source": EVIL}),
        "origin_key": lambda: case.update(origin={EVIL: EVIL}),
    }
    changes[place]()
    return document


PLACES = (
    *("argument", "argument_of_an_unknown_kind", "tensor_of_a_name", "kind", "check", "parameter", "operator"),
    *("product", "format", "key", "target", "call", "dtype", "tensor_key", "recipe", "of", "value", "origin"),
    "origin_key",
)


@pytest.mark.parametrize("place", PLACES)
def test_what_a_trial_file_holds(call: Call, tmp_path: Path, place: str) -> None:
    (tmp_path / "trial.json").write_text(json.dumps(changed(place)))
    clean(call("validate", "trial.json"))
    clean(call("validate", "--json", "trial.json"))
    clean(call("repro", "trial.json", "-o", "r.cpp", "--language", "cpp"))
    if (tmp_path / "r.cpp").exists():
        assert not hidden((tmp_path / "r.cpp").read_text())


def test_what_an_atk_file_holds(call: Call, tmp_path: Path) -> None:
    [first, *_] = json.loads((FIXTURES / "atk/softmax.json").read_bytes())
    entries = [json.loads(json.dumps(first)) for _ in range(4)]
    entries[0] |= {"id": EVIL, "standard": {"acc": EVIL}}
    entries[1]["aclnn_name"] = EVIL
    entries[2]["inputs"][0] |= {"name": EVIL}
    entries[3]["inputs"][0] |= {"dtype": EVIL, "range_values": EVIL}
    (tmp_path / "atk.json").write_text(json.dumps(entries))
    clean(call("import-atk", "atk.json", "-o", "a.jsonl"))
    clean(call("import-atk", "atk.json", "-o", "b.jsonl", "--json"))


def test_what_a_spec_and_a_waiver_hold(call: Call, tmp_path: Path) -> None:
    word = '"' + EVIL.encode("unicode_escape").decode().replace("\\u", "\\u") + '"'
    spec = (FIXTURES / "specs/logistic_backward.yaml").read_text()
    (tmp_path / "logistic_backward.yaml").write_text(f"{spec}\n{word}: 1\n")
    assert clean(call("spec", "lint", "logistic_backward.yaml")).code == 1
    clean(call("spec", "lint", "--json", "logistic_backward.yaml"))
    (tmp_path / "w.yaml").write_text(
        f"subject: {word}\nwaivers:\n  - {{id: a, reason: {word}, owner: {word}, expiry: {word}, {word}: 1,"
        f" scope: {{adapter: {word}, kind: {word}, check: {word}, when: {word}, version: {word}}}, cases: "
        f"[{word}]}}\n"
    )
    assert clean(call("run", "--adapter", "reference", "--waivers", "w.yaml")).code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--adapter", EVIL),
        ("run", "--adapter", f"torch:{EVIL}=1"),
        ("run", "--adapter", f"{EVIL}:x"),
        ("run", EVIL, "--adapter", "reference"),
        ("run", "--adapter", "reference", "--product", EVIL),
        ("run", "--adapter", "reference", "--tolerance", EVIL),
        ("run", "--adapter", "reference", "--profile", EVIL),
        ("fuzz", EVIL, "--adapter", "reference", "--chunks", "1"),
        ("fuzz", "--adapter", EVIL, "--chunks", "1"),
        ("cases", EVIL),
        ("spec", "show", EVIL),
        ("spec", "lint", EVIL),
        ("clauses", EVIL),
        ("validate", EVIL),
        ("repro", EVIL, "-o", "x"),
        ("report", EVIL, "-o", EVIL),
        ("compare", EVIL, EVIL),
        ("verify", EVIL),
        ("replay", EVIL, "--adapter", EVIL),
        ("shrink", EVIL),
        ("import-atk", EVIL, "-o", EVIL),
        ("bundle", EVIL, "-o", EVIL),
        ("waive", "add", EVIL),
        ("ops", "--specs", EVIL),
        (EVIL,),
        ("ops", f"--{EVIL}"),
    ],
    ids=lambda words: "-".join(word for word in words if word.isprintable())[:40],
)
def test_words_of_the_command_line(call: Call, words: tuple[str, ...]) -> None:
    # A word of a command line holds no NUL.
    called = clean(call(*(word.replace("\x00", "") for word in words)))
    assert called.code in (2, 3)


def test_a_command_line_that_is_no_text(call: Call) -> None:
    clean(call("validate", "\udcff.json"))


def test_printable_text_is_left_as_it_is() -> None:
    for text in ("", "plain", "中文，。　全角", "é ß \xa0", "😀"):
        assert printable(text) == printable_document(text) == text
    assert printable_document("a\tb\nc") == "a\tb\nc"
    assert printable("a\nb") == "a\\nb"
    assert not hidden(printable(EVIL))


def test_a_value_is_repeated_with_at_most_200_characters() -> None:
    nested: Any = [0]
    for _ in range(5000):
        nested = [nested]
    for value in ("x" * 10**6, b"x" * 10**6, 10**100_000, [[1] * 1000] * 1000, {"k" * 999: "v" * 999}, nested):
        assert len(quote(value)) <= ECHO_LIMIT
    assert quote([1, "a", {"b": None}]) == "[1, 'a', {'b': None}]"


def test_a_message_has_a_bounded_number_of_bounded_lines() -> None:
    text = printable_lines("\n".join(["y" * 10_000] * 1000))
    assert len(text.splitlines()) < 250
    assert max(map(len, text.splitlines())) < 5000


def test_a_case_is_still_written_as_it_is(call: Call, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(case_to_json(softmax_case())))
    assert clean(call("validate", "c.json")).code == 0
