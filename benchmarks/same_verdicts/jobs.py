"""What both trees run, and how often: BASE twice, since what it does not conclude twice is not compared."""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchmarks.same_verdicts.rows import Comparison, Line, compare
from benchmarks.same_verdicts.trees import READER, Names, Tree

ADAPTERS = ("reference", "torch", "loopback")
FAULT = "softmax.tail-unwritten"
"""Switched on for a campaign, so that it has a finding to confirm, minimize and deduplicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command of a tree."""

    part: str
    """`runs`, `campaign` or `mutants`, as `--only` takes them."""
    title: str
    reads: str
    """The function of `reader.py` for what it writes."""
    command: str
    """Its name in `names.yaml`."""
    words: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    workers: int = 1
    """Cores that it uses by itself."""


def _fuzz(adapter: str, title: str, variables: Mapping[str, str]) -> Job:
    words = ("--adapter", adapter, "--seed", "0", "--chunks", "20")
    return Job(part="campaign", title=title, reads="campaign", command="fuzz", words=words, variables=variables)


JOBS: tuple[Job, ...] = (
    Job(
        part="mutants",
        title="kill matrix",
        reads="mutants",
        command="mutants",
        words=("--profile", "quick", "--seed", "0", "--workers", "2"),
        workers=2,
    ),
    *(
        Job(
            part="runs",
            title=f"run {adapter}",
            reads="run",
            command="run",
            words=("--adapter", adapter, "--seed", "0", "--profile", "quick"),
        )
        for adapter in reversed(ADAPTERS)
    ),
    *(_fuzz(adapter, f"fuzz {adapter}", {}) for adapter in reversed(ADAPTERS)),
    _fuzz("loopback", f"fuzz {FAULT}", {"ACLNN_LOOPBACK_FAULT": FAULT}),
)
"""Those that take longest first."""


def _packages() -> str:
    return " ".join(sorted(f"{item.name}=={item.version}" for item in importlib.metadata.distributions()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What BASE concluded on this machine, so that the next comparison with it runs the current tree alone."""

    folder: Path
    commit: str
    packages: str = field(default_factory=_packages)

    def path(self, job: Job, number: int) -> Path:
        """The file of one run of a job; another one where anything differs that it depends on."""
        given = (self.commit, self.packages, sys.version, READER.read_text(encoding="utf-8"), repr(job), str(number))
        return self.folder / f"{self.commit[:12]}-{hashlib.sha256(repr(given).encode()).hexdigest()[:16]}.jsonl"

    def lines(self, job: Job, number: int, make: Callable[[], list[Line]]) -> list[Line]:
        """What is kept, else what is made now and kept from then on."""
        path = self.path(job, number)
        if path.exists():
            return [msgspec.json.decode(line, type=Line) for line in path.read_bytes().splitlines()]
        made = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_bytes(b"\n".join(map(msgspec.json.encode, made)))
        partial.replace(path)
        return made


def _lines(job: Job, tree: Tree, out: Path, names: Names, done: Callable[[str], None]) -> list[Line]:
    """Run a job and read what it wrote."""
    start = time.monotonic()
    word = tree.command(names.commands[job.command])
    code, _ = tree.checked("-m", "aclnn_cts", word, *job.words, "-o", str(out), variables=job.variables)
    found = [*tree.read(job.reads, out, names), Line(type="exit", result=str(code))]
    done(f"{job.title}: {tree.name}, {time.monotonic() - start:.0f} s")
    return found


def run_jobs(
    jobs: Sequence[Job], old: Tree, new: Tree, *, names: Names, kept: Kept, cores: int, done: Callable[[str], None]
) -> Iterator[Comparison]:
    """Run BASE twice where nothing is kept of it, the current tree once, and compare; HarnessError where one breaks.

    `done` is told each command that has ended.
    """
    numbers = itertools.count()

    def out(tree: Tree) -> Path:
        return tree.folder.parent / f"out-{next(numbers)}"

    def of_base(job: Job, number: int) -> list[Line]:
        made = kept.lines(job, number, lambda: _lines(job, old, out(old), names, done))
        return [line.renamed(names.renamed) for line in made]

    # Those that use several cores have the machine for themselves.
    for workers, group in itertools.groupby(jobs, key=lambda job: job.workers):
        with ThreadPoolExecutor(max(cores // workers, 1)) as pool:
            chosen = list(group)
            sides = [
                (
                    job,
                    pool.submit(of_base, job, 1),
                    pool.submit(of_base, job, 2),
                    pool.submit(_lines, job, new, out(new), names, done),
                )
                for job in chosen
            ]
            try:
                for job, first, again, current in sides:
                    yield compare(job.title, first.result(), again.result(), current.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
