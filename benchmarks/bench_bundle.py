"""`make bench-bundle`: how long it takes to compare, bundle and verify a run of many records.

The records are those of a run that passes: cases drawn from the specs, outputs computed by the reference for one in 64,
as runs keep them. `make bench-bundle ARGS=--store` keeps the figures for docs/compare-and-bundle.md (then: make docs).
Run as `python -m benchmarks.bench_bundle [--records N] [--recompute N] [--rounds N] [--folder DIR]`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from aclnn_cts.bundle.verify import Verification, verify_bundle
from aclnn_cts.bundle.write import write_bundle
from aclnn_cts.cli.output import console, show_table, table
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.generate.listing import list_cases
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import Specs, load_specs, package_folder
from aclnn_cts.store.events import BatchJudged, RunFinished, TrialsPlanned
from aclnn_cts.store.manifest import Manifest, environment_facts, timestamp
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.run_writer import create_run
from aclnn_cts.triage.compare import compare_runs
from aclnn_cts.trials.trial_runner import JudgedBatch, TrialRunner
from benchmarks.stored import Rounds, figures_of, start, store

T = TypeVar("T")

NAME = "bundle"
"""Of the stored figures."""

RECORDS, AGAIN = 100_000, 100
GOAL_SECONDS = 30
"""Of the clock, to verify the bundle of that many records."""
COMPARE, BUNDLE, VERIFY = NEEDED = ("compare", "bundle", "verify")
TITLES = ("100,000 records", "processor", "clock", "goal")
PROCESSOR, CLOCK, SIZE, CASES = "processor seconds", "wall seconds", "MB", "cases judged again"

_SEED = 1


def _batches(specs: Specs, number: int) -> Iterator[tuple[str, JudgedBatch]]:
    """Trials of all operators, run on the reference and judged."""
    settings = RunnerSettings(adapter="reference", target=Target())
    share = -(-number // len(specs))
    with settings.open_host(specs) as host:
        runner = TrialRunner(specs=specs, host=host, settings=settings)
        for spec in specs.for_product(settings.target.product).values():
            sampler = Sampler(spec, Target())
            listed = list_cases(sampler, "valid", seed=_SEED, count=share, unproved=Counter())
            for judged in runner.run([Trial("values", case) for case in listed]):
                yield spec.operator, judged


def _make_run(path: Path, number: int) -> None:
    specs = load_specs()
    files = {f"{spec.stem}.yaml": (package_folder() / f"{spec.stem}.yaml").read_bytes() for spec in specs.values()}
    manifest = Manifest(
        command="run",
        operators=tuple(specs),
        adapter="reference",
        seed=_SEED,
        started=timestamp(),
        environment=environment_facts(),
    )
    with create_run(path, manifest=manifest, specs=files) as writer:
        for operator, judged in _batches(specs, number):
            kinds = {record.trial.case.origin.kind for record in judged.records}
            for kind in kinds:
                records = [record for record in judged.records if record.trial.case.origin.kind == kind]
                writer(TrialsPlanned(operator=operator, kind=kind, number=len(records)))
            writer(BatchJudged(records=judged.records, coverage=judged.coverage, blobs=judged.blobs))
        writer(RunFinished(summary=writer.summary, seconds=0.0))


def _timed(work: Callable[[], T]) -> tuple[T, float, float]:
    """What a work gives, and how long it took: by the clock, and of a processor."""
    start, processor = time.monotonic(), time.process_time()
    made = work()
    return made, time.monotonic() - start, time.process_time() - processor


def columns(rounds: Rounds) -> Iterator[tuple[str, str, str, str]]:
    """Each command, what it took of a processor and by the clock, and the goal of the latter."""
    for work in NEEDED:
        found = figures_of(rounds, work)
        what, goal = f"`{work}`", ""
        if work == BUNDLE:
            what += f", without the report ({found[SIZE].median:.0f} MB)"
        elif work == VERIFY:
            what = f"`{work} --recompute {found[CASES].median:.0f}`"
            goal = f"at most {GOAL_SECONDS} s" + (": missed" if found[CLOCK].median > GOAL_SECONDS else "")
        yield what, found[PROCESSOR].text(".1f", "s"), found[CLOCK].text(".1f", "s"), goal


def _turn(run: Path, bundle: Path, recompute: int) -> tuple[dict[str, float], Verification]:
    """Compare, bundle and verify once."""
    turn: dict[str, float] = {}

    def take(work: str, does: Callable[[], T]) -> T:
        made, turn[f"{work}, {CLOCK}"], turn[f"{work}, {PROCESSOR}"] = _timed(does)
        return made

    take(COMPARE, lambda: compare_runs(run, run))
    written = take(BUNDLE, lambda: write_bundle(RunDirectory(run), OutputFile(bundle, force=True)))
    turn[f"{BUNDLE}, {SIZE}"] = written.size / 1e6
    found = take(VERIFY, lambda: verify_bundle(bundle, recompute=recompute, seed=_SEED))
    turn[f"{VERIFY}, {CASES}"] = found.recomputed
    return turn, found


def main(arguments: Sequence[str]) -> int:
    """Make a run; compare, bundle and verify it once a round; print the times, and store them where asked."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_bundle", description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS, metavar="N", help=f"records of the run ({RECORDS})")
    parser.add_argument("--recompute", type=int, default=AGAIN, metavar="N", help=f"cases to judge again ({AGAIN})")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds (3)")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep run and bundle there, and use what is there")
    parser.add_argument("--store", action="store_true", help="keep the figures for the page (then: make docs)")
    chosen = parser.parse_args(arguments)
    if chosen.store and (chosen.records, chosen.recompute, chosen.folder) != (RECORDS, AGAIN, None):
        parser.error(f"--store keeps the figures of {RECORDS:,} records: no other number, cases or folder")
    started = start()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        run = folder / "run"
        if not run.exists():
            _, seconds, _ = _timed(lambda: _make_run(run, chosen.records))
            print(f"run of {chosen.records} records made in {seconds:.1f} s")
        turns, problems = [], 0
        for _ in range(chosen.rounds):
            (folder / "bundle.zip").unlink(missing_ok=True)
            turn, found = _turn(run, folder / "bundle.zip", chosen.recompute)
            turns.append(turn)
            problems += len(found.problems)
            print(
                f"verified: {len(found.problems)} problems, {found.recomputed} of {found.eligible} cases judged again"
            )
    rounds = {what: tuple(turn[what] for turn in turns) for what in turns[0]}
    made = table(*TITLES)
    for cells in columns(rounds):
        made.add_row(*cells)
    show_table(console(), made)
    if chosen.store:
        command = f"make bench-bundle ARGS='--rounds {chosen.rounds} --store'"
        store(NAME, rounds, command=command, started=started, needed=NEEDED)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
