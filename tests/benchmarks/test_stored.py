"""Figures that benchmarks store, and the parts of pages that are made from them."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.errors import HarnessError
from benchmarks import (
    bench,
    bench_fuzz,
    bench_report,
    bench_size,
    campaign_faults,
    campaign_memory,
    corner_mutants,
    overlapping,
    stored,
)
from benchmarks.bench_gate import COMMANDS, measured
from benchmarks.measure import Figure
from benchmarks.shown import row, tally
from benchmarks.stored import Machine, Measured, figures_of, provenance, read_figures, start, store, store_figures
from tools import power
from tools.markdown import between
from tools.measured import SECTIONS, Section, with_figures

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(stored.FOLDER.glob("*.json"))
MACHINE = Machine(architecture="x86-64", processor="Abacus 9", cores=2, load=0.25, versions={"Python": "3.11.2"})


def figures(**rounds: tuple[float, ...]) -> Measured:
    return Measured(command="make it", date="2026-01-31", commit="abc", machine=MACHINE, rounds=rounds)


def section(name: str) -> Section:
    [found] = [section for section in SECTIONS if section.name == name]
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(stored, "FOLDER", tmp_path / "figures")
    return tmp_path / "figures"


def test_figures_come_back(folder: Path) -> None:
    assert read_figures("gate") is None
    given = figures(run=(3.0, 1.0, 2.0))
    assert store_figures("gate", given) == folder / "gate.json"
    assert read_figures("gate") == given
    assert given.figure("run").median == 2.0


@pytest.mark.parametrize("content", ["", "[]", '{"command": "x"}', '{"format": "other", "command": "", "rounds": {}}'])
def test_other_files_are_refused(content: str, folder: Path) -> None:
    folder.mkdir()
    (folder / "gate.json").write_text(content)
    with pytest.raises(HarnessError, match=r"gate\.json: .*; expected"):
        read_figures("gate")


def test_a_file_of_another_format_is_refused(folder: Path) -> None:
    store_figures("gate", msgspec.structs.replace(figures(), format="aclnn-cts/figures/3"))
    with pytest.raises(HarnessError, match="format 'aclnn-cts/figures/3'; expected 'aclnn-cts/figures/2'"):
        read_figures("gate")


def test_what_is_stored_says_where_when_and_of_what(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store("x", {"a, b": [1.23456789, 2.0]}, command="make x", started=start(), needed=("a",))
    found = read_figures("x")
    assert found is not None
    assert found.rounds == {"a, b": (1.2346, 2.0)}
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", found.date)
    assert re.fullmatch(r"[0-9a-f]{12}\+?|unknown", found.commit)
    assert "x.json is stored; `make docs`" in capsys.readouterr().out
    assert folder.exists()


def test_half_a_measurement_is_not_stored(folder: Path) -> None:
    store_figures("x", figures(a=(1.0,)))
    with pytest.raises(HarnessError, match=r"x\.json: not stored, since b, c could not be measured here"):
        store("x", {"a": [1.0]}, command="", started=start(), needed=("a", "b", "c"))
    assert read_figures("x") == figures(a=(1.0,))
    assert folder.exists()


def test_without_a_repository_the_commit_is_unknown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent.parent))
    assert stored.this_commit() == "unknown"
    monkeypatch.setenv("PATH", "")
    assert stored.this_commit() == "unknown"


def test_a_commit_with_changes_is_marked_unless_they_are_figures_and_pages(folder: Path) -> None:
    root = folder.parent
    person = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    for path in ("code.py", "README.md", "docs/page.md", "benchmarks/figures/x.json", "tests/test_x.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("before")
    # As the package's folder lies in the checkout: two folders below its top.
    stored.FOLDER = root / "benchmarks" / "figures"
    for words in (["init", "-q"], ["add", "."], [*person, "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    commit = stored.this_commit()
    assert re.fullmatch(r"[0-9a-f]{12}", commit)
    for path in ("README.md", "docs/page.md", "benchmarks/figures/x.json", "tests/test_x.py"):
        (root / path).write_text("after")
    assert stored.this_commit() == commit
    (root / "code.py").write_text("after")
    assert stored.this_commit() == commit + "+"


def test_figures_of_a_name_are_told_apart() -> None:
    rounds = {"a, x": (1.0,), "a, y": (2.0,), "ab, x": (3.0,), "a": (4.0,)}
    assert figures_of(rounds, "a") == {"x": Figure((1.0,)), "y": Figure((2.0,))}


def test_the_provenance_tells_once_what_is_shared() -> None:
    first, second = figures(), msgspec.structs.replace(figures(), command="make that")
    assert provenance([first, second]) == (
        "Measured on 2026-01-31 on 2 cores of an Abacus 9 (x86-64) with Python 3.11.2: at commit abc by `make it` "
        "(load before: 0.2), `make that` (load before: 0.2)."
    )
    changed = msgspec.structs.replace(second, commit="abd+")
    assert provenance([first, changed]).endswith("; at commit abd with changes by `make that` (load before: 0.2).")
    later = msgspec.structs.replace(second, date="2026-02-01", commit="unknown")
    assert provenance([first, later]).count("Abacus 9") == 2
    assert "at a commit that is not known by `make that`" in provenance([first, later])


def test_a_missed_goal_is_said_to_be_missed() -> None:
    kept = row("speed", Figure((9.0, 10.0, 11.0)), ".1f", unit="times", least=10)
    missed = row("size", Figure((12.0,)), unit="MiB", most=10, note="grew")
    assert (kept.figure, kept.verdict) == ("10.0 times ±10%", "at least 10 times")
    assert (missed.figure, missed.verdict) == ("12 MiB (grew)", "at most 10 MiB: missed")
    assert tally([kept, missed]) == "Goals met: 1 of 2."
    assert tally([kept, kept, row("x", Figure((1.0,)))]) == "Goals met: 2 of 2."


def test_rounds_are_in_turns_and_the_first_is_not_counted() -> None:
    asked: list[str] = []

    def seconds(words: object) -> float:
        asked.append(next(name for name, known in COMMANDS.items() if known == words))
        return float(len(asked))

    assert measured(2, seconds=seconds) == {"run": (3.0, 5.0), "pytest": (4.0, 6.0)}
    assert asked == ["run", "pytest"] * 3


def test_the_page_on_power_has_what_is_stored(folder: Path) -> None:
    assert "was not measured yet; `make bench-gate ARGS=--store` does" in power.gate_time()
    store_figures("gate", figures(run=(20.0, 21.2, 30.0), pytest=(25.0, 24.0, 90.0)))
    text = power.gate_time()
    assert text.startswith(
        "All operators of the software device took 21 s with `aclnn-cts run --adapter loopback --profile quick"
    )
    assert "25 s with `pytest -q -n 2" in text
    assert "medians of 3 rounds. Measured on 2026-01-31" in text
    assert folder.exists()


def test_a_page_has_what_is_stored(folder: Path) -> None:
    overlap = section("overlap")
    assert "Not measured yet: overlap; `make bench-fuzz" in "\n".join(overlap.lines())
    rounds = {f"loopback, {column}": (1.0, 1.2) for column in overlapping.COLUMNS}
    store_figures("overlap", figures(**rounds))
    other = "\n".join(f"{other.start}\n{other.end}" for other in SECTIONS if other.page == "campaigns-at-scale.md")
    page = with_figures("campaigns-at-scale.md", f"a\n{other}\nb\n")
    assert re.search(r"^\| loopback \| 1\.10 ±9% \| 1\.10 ±9% \|$", page, re.MULTILINE)
    assert "Not measured yet: campaign-rates, campaign-scaling, campaign-memory, campaign-faults;" in page
    assert "torch" not in page
    assert page.startswith("a\n")
    assert f"{overlap.end}\n" in page
    assert page.endswith("\nb\n")
    assert with_figures("campaigns-at-scale.md", page) == page
    assert folder.exists()


def test_a_page_that_differs_from_what_is_stored_is_seen(folder: Path) -> None:
    names = ("judged on the reference", "descriptions by the stream")
    rounds = {f"{name}, aclnnX": (2000.0,) for name in names}
    starts = {"all specs loaded": (0.2,), "aclnn-cts --help": (0.1,), "the interpreter alone": (0.02,)}
    store_figures("bench", figures(**rounds, **starts))
    speed = section("speed")
    commands = section("commands")
    page = with_figures(speed.page, f"{commands.start}\n{commands.end}\n{speed.start}\n{speed.end}\n")
    assert "| all specs loaded | 200 ms | at most 150 ms: missed |" in page
    assert "Goals met: 2 of 4. Medians" in page
    store_figures("bench", figures(**rounds, **starts | {"all specs loaded": (0.1,)}))
    assert with_figures(speed.page, page) != page
    assert folder.exists()


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a line <a> and below it a line <b>"):
        between("<b>\n<a>", "<a>", "<b>", "")


def test_the_search_for_rare_faults_is_summed_up_over_those_that_are_rare() -> None:
    rounds = {
        "plain cases, a": (600.0, 700.0, 800.0),
        "campaign cases, a": (9.0, 9.0, 9.0),
        "plain seconds, a": (1.0, 2.0, 3.0),
        "campaign seconds, a": (0.1, 0.2, 0.3),
        "plain cases, easy": (500.0,),
        "campaign cases, easy": (9.0,),
        "plain seconds, easy": (1.0,),
        "campaign seconds, easy": (9.0,),
    }
    [found] = campaign_faults.shown(rounds)
    assert (found.figure, found.missed) == ("0.10 (0.10 to 0.10)", False)
    assert "1 of 2 faults need more than 500 cases" in found.what


@pytest.mark.parametrize(("last", "missed"), [(101.0, False), (120.0, True)])
def test_memory_that_grows_is_not_flat(last: float, missed: bool) -> None:
    marks = (100.0,) * 90 + (last,) * 10
    [found] = campaign_memory.shown({"resident MiB, aclnnXBackward": marks, "peak MiB": (130.0,)})
    assert found.figure == f"100 and {last:.0f} MiB ({last / 100 - 1:+.1%}; peak 130 MiB)"
    assert found.missed == missed
    assert "over 200,000 cases of X" in found.what


@pytest.mark.parametrize(
    ("main", "words", "message"),
    [
        (bench.main, ["--store", "softmax_backward"], "--store keeps the figures of all operators"),
        (bench_fuzz.main, ["--store", "softmax_backward"], "--store keeps the figures of all operators"),
        (bench_fuzz.main, ["--only", "memory,speed"], "--only: speed; expected of rates, scaling, overlap, memory"),
        (bench_size.main, ["--store", "--no-peak"], "--store keeps the figures of 1,048,576 elements"),
        (bench_report.main, ["--store", "--records", "5"], "--store keeps the figures of 100,000 records of torch"),
    ],
)
def test_only_whole_measurements_are_stored(
    main: object, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(main)
    with pytest.raises(SystemExit):
        main(words)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_what_is_stored_in_the_repository_is_shown_and_can_be_measured_again(path: Path) -> None:
    found = read_figures(path.stem)
    assert found is not None
    assert found.machine.processor
    assert found.machine.versions.keys() >= {"Python", "NumPy"}
    assert found.date
    assert found.commit
    shown = {source for section in SECTIONS for source in section.sources}
    shown |= {"findings", "gate", "planned-regimes", "size", *corner_mutants.NAMES.values()}
    assert path.stem in shown, "no page shows these figures"
    make, target, arguments = shlex.split(found.command)
    assert make == "make"
    assert "--store" in arguments.removeprefix("ARGS=").split()
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
