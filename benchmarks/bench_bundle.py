"""`make bench-bundle`: how long it takes to compare, bundle and verify a run of many records.

The records are those of a run that passes: cases drawn from the specs, outputs computed by the reference for one in 64,
as runs keep them. Run as `python -m benchmarks.bench_bundle [--records N] [--recompute N] [--folder DIR]`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.engine.bench import Bench, Judged
from aclnn_cts.engine.bundle.verify import verify_bundle
from aclnn_cts.engine.bundle.write import write_bundle
from aclnn_cts.engine.compare import compare_runs
from aclnn_cts.engine.events import BatchJudged, Planned, RunFinished
from aclnn_cts.engine.manifest import Manifest, environment_facts, timestamp
from aclnn_cts.engine.run_directory import RunDirectory, create_run
from aclnn_cts.engine.settings import BenchSettings
from aclnn_cts.generate.listing import case_stream
from aclnn_cts.spec.load import Specs, load_specs, package_folder

__all__ = ["main"]

_BATCH = 1000
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
            start = time.monotonic()
            _make_run(run, chosen.records)
            print(f"run of {chosen.records} records made in {time.monotonic() - start:.1f} s")
        start = time.monotonic()
        compared = compare_runs(run, run)
        print(f"compared with itself in {time.monotonic() - start:.1f} s: {compared.common} trials in both")
        start = time.monotonic()
        written = write_bundle(RunDirectory(run), bundle)
        print(
            f"bundle of {written.records} records in {written.entries} entries, {written.size / 1e6:.0f} MB,"
            f" written in {time.monotonic() - start:.1f} s"
        )
        for number in (0, chosen.recompute):
            start, processor = time.monotonic(), time.process_time()
            found = verify_bundle(bundle, recompute=number, seed=_SEED)
            print(
                f"verified in {time.monotonic() - start:.1f} s ({time.process_time() - processor:.1f} s of processor),"
                f" {found.recomputed} of {found.eligible} cases judged again: {len(found.problems)} problems"
            )
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
