"""`make bench-run`: what users wait for, by running the commands: start, runs, first findings, crashes, campaigns.

Times are of whole commands, from the shell's prompt: CPU time of all processes, or by the wall where the name says so.
`ARGS='--base COMMIT'` measures another commit in turns, and prints ratios. `--store` keeps the figures for
`docs/speed.md`. `--only WORD` measures those whose name holds the word. Bytecode is compiled before,
as an installation has it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from rich.console import Console

from benchmarks.measure import Figure
from benchmarks.same_verdicts.trees import Tree, commit_of, unpack
from benchmarks.shown import Row, row, show_rows
from benchmarks.stored import Rounds, start, store

NAME = "run"
"""Of the stored figures."""
ROOT = Path(__file__).resolve().parent.parent
FAULTY = "faulty_softmax"
"""The module of the adapters with mistakes, which is put beside the tree: an older one does not have it."""
QUICK = ("run", "--profile", "quick")
REFERENCE = ("--adapter", "reference")
ALONE = (
    "softmax_backward",
    "conv_tbc_backward",
    "sigmoid_backward",
    "deformable_conv2d_backward",
    "gru_backward",
    "flash_attention_unpadding_score_grad",
)
"""Operators that are run alone: from the cheapest call to the dearest."""
TYPICAL = ALONE[0]
PER_TRIAL = "CPU a trial, alone, {}"
"""The figure of one of them."""
_CASES = re.compile(r"^RESULT .*\bcases=(\d+)", re.MULTILINE)
_MIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    cpu: float
    wall: float
    peak: float
    """MB of the largest process."""
    cases: int


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure: a command, and what of it counts."""

    name: str
    words: tuple[str, ...]
    value: Callable[[Ended], float]
    form: str
    unit: str
    most: float | None = None
    least: float | None = None


def _per_trial(ended: Ended) -> float:
    return 1000 * ended.cpu / max(ended.cases, 1)


def _measures() -> Iterator[Measure]:
    of_all = (*QUICK, *REFERENCE)
    one, two = (*of_all, TYPICAL), ("--workers", "2")
    cpu, wall, peak = attrgetter("cpu"), attrgetter("wall"), attrgetter("peak")
    yield Measure("start of `run`, one case, CPU", ("run", "--cases", "{case}", *REFERENCE), cpu, ".2f", "s", most=0.5)
    for stem in ALONE:
        yield Measure(PER_TRIAL.format(stem), (*of_all, stem), _per_trial, ".1f", "ms", most=12)
        yield Measure(f"peak memory, {stem}", (*of_all, stem), peak, ".0f", "MB", most=300)
    yield Measure("CPU a trial, all operators, two workers", (*of_all, *two), _per_trial, ".1f", "ms", most=5)
    yield Measure("all operators, two workers, wall", (*of_all, *two), wall, ".0f", "s", most=240)
    yield Measure("one operator, one worker, wall", one, wall, ".1f", "s")
    yield Measure("one operator, two workers, wall", (*one, *two), wall, ".1f", "s", most=3)
    for kernel, limit, options in (
        ("AlwaysWrong", 1.5, ("--fail-fast",)),
        ("SeldomWrong", 2.0, ("--fail-fast",)),
        ("Exits", 20.0, ()),
    ):
        words = (*QUICK, "--adapter", f"{FAULTY}:{kernel}", TYPICAL, *options)
        yield Measure(" ".join((f"{kernel},", *options, "wall")), words, wall, ".1f", "s", most=limit)
    exits = ("fuzz", TYPICAL, "--adapter", f"{FAULTY}:Exits", "--time", "60s")
    yield Measure("Exits, fuzz --time 60s, wall", exits, wall, ".0f", "s", most=65)
    fuzz = ("fuzz", *REFERENCE, "--time", "60s", *two)
    yield Measure("campaign, one operator, two workers, cases a second", (*fuzz, TYPICAL), _rate, ".0f", "")
    yield Measure("campaign, all operators, two workers, cases a second", fuzz, _rate, ".0f", "", least=400)


def _rate(ended: Ended) -> float:
    return ended.cases / ended.wall


def _ended(tree: Tree, words: Sequence[str], folder: Path) -> Ended:
    """Run a command of a tree. Exit codes 0, 1 and 3 are verdicts; another one is an error of the benchmark."""
    case = folder / "case.jsonl"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ACLNN_")}
    environment |= {"PYTHONPATH": f"{tree.folder}{os.pathsep}{folder}", "PYTHONDONTWRITEBYTECODE": ""}
    if "{case}" in words and not case.exists():
        listed = (sys.executable, "-m", "aclnn_cts", "cases", TYPICAL, "-n", "1")
        case.write_bytes(
            subprocess.run(listed, cwd=tree.folder, env=environment, check=True, capture_output=True).stdout
        )
    given = [word.format(case=case) for word in words]
    out = tempfile.mkdtemp(dir=folder)
    began = time.perf_counter()
    command = (sys.executable, "-m", "aclnn_cts", *given, "-o", f"{out}/run")
    with (
        Path(out, "text").open("w+b") as text,
        subprocess.Popen(command, cwd=tree.folder, env=environment, stdout=text, stderr=subprocess.STDOUT) as process,
    ):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.perf_counter() - began
        text.seek(0)
        said = text.read().decode(errors="replace")
    found = _CASES.search(said)
    if process.returncode not in (0, 1, 3) or found is None:
        raise SystemExit(f"{tree.name}: aclnn-cts {' '.join(given)}: exit code {process.returncode}\n{said[-2000:]}")
    cpu = usage.ru_utime + usage.ru_stime
    return Ended(cpu=cpu, wall=took, peak=usage.ru_maxrss / _MIB, cases=int(found[1]))


def measured(trees: Sequence[Tree], measures: Sequence[Measure], rounds: int) -> dict[str, Rounds]:
    """The figures of each tree, round by round and in turns; commands that several figures are of run once."""
    found: dict[str, dict[str, list[float]]] = {tree.name: {} for tree in trees}
    with tempfile.TemporaryDirectory(prefix="aclnn-cts-bench-") as folder:
        shutil.copy(ROOT / "benchmarks" / f"{FAULTY}.py", folder)
        for _ in range(rounds):
            for words in dict.fromkeys(item.words for item in measures):
                for tree in trees:
                    ended = _ended(tree, words, Path(folder))
                    for item in (item for item in measures if item.words == words):
                        found[tree.name].setdefault(item.name, []).append(item.value(ended))
    return {name: {key: tuple(values) for key, values in mine.items()} for name, mine in found.items()}


def goal_rows(rounds: Rounds) -> Iterator[Row]:
    """The figures beside their goals."""
    for item in _measures():
        if item.name in rounds:
            figure = Figure(tuple(rounds[item.name]))
            yield row(item.name, figure, item.form, unit=item.unit, most=item.most, least=item.least)


def _ratio_rows(of: Mapping[str, Rounds]) -> Iterator[Row]:
    """What each figure is beside that of the base."""
    base, mine = of["base"], of["this tree"]
    for name in mine:
        ratios = tuple(new / old for new, old in zip(mine[name], base[name], strict=True))
        yield Row(what=name, figure=Figure(ratios).text(".2f"))


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and store where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_run", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds (3)")
    parser.add_argument("--only", default="", metavar="WORD", help="figures whose name holds this word")
    parser.add_argument("--without", default="", metavar="WORD", help="no figures whose name holds this word")
    parser.add_argument("--base", default="", metavar="COMMIT", help="measure this commit in turns, for ratios")
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/speed.md (then: make docs)")
    options = parser.parse_args(arguments)
    measures = [item for item in _measures() if options.only in item.name]
    measures = [item for item in measures if not options.without or options.without not in item.name]
    if not measures:
        parser.error(f"--only {json.dumps(options.only)}: no figure has this word in its name")
    started, console = start(), Console()
    trees = [Tree(name="this tree", folder=ROOT)]
    with tempfile.TemporaryDirectory(prefix="aclnn-cts-base-") as folder:
        if options.base:
            trees.append(unpack("base", commit_of(options.base), Path(folder) / "base"))
            subprocess.run((sys.executable, "-m", "compileall", "-q", str(trees[1].folder / "aclnn_cts")), check=True)
        of = measured(trees, measures, options.rounds)
    console.print(f"{options.rounds} rounds on {started.text}")
    show_rows(console, list(goal_rows(of["this tree"])))
    if options.base:
        console.print(f"\nas a share of {options.base}")
        show_rows(console, list(_ratio_rows(of)))
    if options.store:
        without = f' --without "{options.without}"' if options.without else ""
        command = f"make bench-run ARGS='--rounds {options.rounds}{without} --store'"
        store(NAME, of["this tree"], command=command, started=started, needed=())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
