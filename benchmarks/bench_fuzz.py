"""What a campaign costs and finds: `make bench-fuzz`. Every figure is a ratio or a rate of processor time.

`make bench-fuzz ARGS=--store` keeps the figures for docs/campaigns-at-scale.md (then: `make docs`), a file for each
part. Run as `python -m benchmarks.bench_fuzz [--only PART,...]` from the checkout.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from aclnn_cts.cli.output import console, wrap
from aclnn_cts.core.target import Target
from aclnn_cts.sandbox.limits import freeze_objects
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Spec
from benchmarks import campaign_faults, campaign_memory, campaign_rates, campaign_scaling, overlapping
from benchmarks.shown import Row, show_rows
from benchmarks.stored import Rounds, start, store, write_rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measuring:
    """What parts are told."""

    out: Console
    specs: Specs
    chosen: tuple[Spec, ...]
    target: Target
    rounds: int | None
    cases: int
    seeds: int
    alone: bool
    """Leave out what the rates are compared with."""

    def rounds_or(self, usual: int) -> int:
        """The number of rounds that is asked for, else the usual one."""
        return usual if self.rounds is None else self.rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One measurement, whose figures are stored under a name."""

    name: str
    needed: Sequence[str]
    measure: Callable[[_Measuring], Rounds]
    shown: Callable[[Rounds], Iterator[Row]]
    words: Callable[[_Measuring], str]
    """Its own words of the command line."""


def _faults(asked: _Measuring) -> Rounds:
    found = campaign_faults.faults(asked.specs, asked.target, asked.seeds)
    campaign_faults.show_faults(asked.out, found)
    return found


PARTS: Mapping[str, _Part] = {
    "rates": _Part(
        name=campaign_rates.NAME,
        needed=campaign_rates.NEEDED,
        measure=lambda asked: campaign_rates.rates(
            asked.out, asked.chosen, asked.target, asked.rounds_or(5), alone=asked.alone
        ),
        shown=campaign_rates.shown,
        words=lambda asked: f"--rounds {asked.rounds_or(5)}",
    ),
    "scaling": _Part(
        name=campaign_scaling.NAME,
        needed=campaign_scaling.NEEDED,
        measure=lambda asked: campaign_scaling.scaling(asked.specs, asked.chosen, asked.target, asked.rounds_or(3)),
        shown=campaign_scaling.shown,
        words=lambda asked: f"--rounds {asked.rounds_or(3)}",
    ),
    "overlap": _Part(
        name=overlapping.NAME,
        needed=overlapping.NEEDED,
        measure=lambda asked: overlapping.overlap(asked.out, asked.chosen, asked.target, asked.rounds_or(3)),
        shown=lambda _rounds: iter(()),
        words=lambda asked: f"--rounds {asked.rounds_or(3)}",
    ),
    "memory": _Part(
        name=campaign_memory.NAME,
        needed=campaign_memory.NEEDED,
        measure=lambda asked: campaign_memory.memory(asked.chosen[-1], asked.target, asked.cases),
        shown=campaign_memory.shown,
        words=lambda asked: f"--cases {asked.cases}",
    ),
    "faults": _Part(
        name=campaign_faults.NAME,
        needed=campaign_faults.NEEDED,
        measure=_faults,
        shown=campaign_faults.shown,
        words=lambda asked: f"--seeds {asked.seeds}",
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Measure the parts that are asked for, print them, and store them where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_fuzz", description=__doc__)
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds (rates 5, scaling and overlap 3)")
    parser.add_argument("--cases", type=int, default=200_000, metavar="N", help="cases of the look at memory (200000)")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="searches for each fault (10)")
    parser.add_argument("--only", default=",".join(PARTS), metavar="PART,...", help="parts of it (all)")
    parser.add_argument(
        "--store", action="store_true", help="keep the figures for docs/campaigns-at-scale.md (then: make docs)"
    )
    parser.add_argument("operators", nargs="*", metavar="OP", help="operators (all)")
    parser.add_argument(
        "--alone", type=Path, metavar="FILE", help="of --only rates: measure nothing to compare with; write to FILE"
    )
    options = parser.parse_args(arguments)
    parts = options.only.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"--only: {', '.join(unknown)}; expected of {', '.join(PARTS)}")
    if options.alone and parts != ["rates"]:
        parser.error("--alone FILE: give it with --only rates")
    if options.store and (options.operators or options.alone):
        parser.error("--store keeps the figures of all operators and of what they are compared with: give it alone")
    if len(parts) > 1:
        # Each in a process of its own, whose memory holds nothing that another left.
        again = [sys.executable, "-m", "benchmarks.bench_fuzz", *arguments]
        return max(subprocess.run([*again, f"--only={part}"], check=False).returncode for part in parts)
    specs = load_specs()
    asked = _Measuring(
        out=console(),
        specs=specs,
        chosen=specs.select(options.operators),
        target=Target(),
        rounds=options.rounds,
        cases=options.cases,
        seeds=options.seeds,
        alone=bool(options.alone),
    )
    freeze_objects()  # as a campaign's worker does
    [name] = parts
    part, started = PARTS[name], start()
    wrap(asked.out, f"{name}: on {started.text}")
    asked.out.print()
    rounds = part.measure(asked)
    if options.alone:
        write_rounds(options.alone, rounds)
        return 0
    if rows := list(part.shown(rounds)):
        show_rows(asked.out, rows)
    if options.store:
        command = f"make bench-fuzz ARGS='--only {name} {part.words(asked)} --store'"
        store(part.name, rounds, command=command, started=started, needed=part.needed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
