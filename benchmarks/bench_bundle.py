"""`make bench-bundle`: how long it takes to compare, bundle and verify a run of many records.

The records are those of a run that passes: cases drawn from the specs, outputs computed by the reference for one in 64,
as runs keep them. Run as `python -m benchmarks.bench_bundle [--records N] [--recompute N] [--folder DIR]`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.engine.bench import Bench, Judged
from aclnn_cts.engine.bundle.verify import verify_bundle
from aclnn_cts.engine.bundle.write import write_bundle
from aclnn_cts.engine.compare import compare_runs
from aclnn_cts.engine.events import BatchJudged, Planned, RunFinished
from aclnn_cts.engine.manifest import Manifest, environment_facts, timestamp
from aclnn_cts.engine.run_directory import RunDirectory
from aclnn_cts.engine.run_writer import create_run
from aclnn_cts.engine.settings import BenchSettings
from aclnn_cts.generate.listing import case_stream
from aclnn_cts.spec.load import Specs, load_specs, package_folder

__all__ = ["main"]

T = TypeVar("T")

_SEED = 1


def _batches(specs: Specs, number: int) -> Iterator[tuple[str, Judged]]:
    """Trials of all operators, run on the reference and judged."""
    settings = BenchSettings(adapter="reference", target=Target())
    share = -(-number // len(specs))
    with settings.open_host(specs) as host:
        bench = Bench(specs=specs, host=host, settings=settings)
        for spec in specs.values():
            listed = case_stream(spec, Target(), "valid", seed=_SEED, count=share)
            for judged in bench.run([Trial("values", item.case) for item in listed]):
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
                writer(Planned(operator=operator, kind=kind, number=len(records)))
            writer(BatchJudged(records=judged.records, coverage=judged.coverage, blobs=judged.blobs))
        writer(RunFinished(summary=writer.summary, seconds=0.0))


def _timed(work: Callable[[], T]) -> tuple[T, str]:
    """What a work gives, and how long it took: by the clock, and of a processor."""
    start, processor = time.monotonic(), time.process_time()
    made = work()
    return made, f"{time.monotonic() - start:.1f} s ({time.process_time() - processor:.1f} s of processor)"


def main(arguments: Sequence[str]) -> int:
    """Make a run, bundle it, verify it, and print the times."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_bundle", description=__doc__)
    parser.add_argument("--records", type=int, default=100_000, metavar="N", help="records of the run (100000)")
    parser.add_argument("--recompute", type=int, default=100, metavar="N", help="cases to judge again (100)")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep run and bundle there, and use what is there")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        run, bundle = folder / "run", folder / "bundle.zip"
        if not run.exists():
            _, text = _timed(lambda: _make_run(run, chosen.records))
            print(f"run of {chosen.records} records made in {text}")
        compared, text = _timed(lambda: compare_runs(run, run))
        print(f"compared with itself in {text}: {compared.common} trials in both")
        written, text = _timed(lambda: write_bundle(RunDirectory(run), bundle))
        print(f"bundled in {text}: {written.records} records, {written.entries} entries, {written.size / 1e6:.0f} MB")
        good = True
        for number in (0, chosen.recompute):
            found, text = _timed(partial(verify_bundle, bundle, recompute=number, seed=_SEED))
            good = good and found.good
            print(
                f"verified in {text}: {len(found.problems)} problems,"
                f" {found.recomputed} of {found.eligible} cases judged again"
            )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
