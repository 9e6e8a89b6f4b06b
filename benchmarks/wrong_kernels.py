"""`make bench-wrong-kernels`: kernels with mistakes that public reports describe, and who accepts them.

Each kernel of `tests/wrong_kernels` is put to the rules that others publish and to ours: the quick profile with several
seeds, and the standard one with a single seed where quick has not found it each time.
`ARGS=--store` keeps the figures for `docs/wrong-kernels.md`. Run as `python -m benchmarks.wrong_kernels`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks.stored import Rounds, start, store
from tests.wrong_kernels.catalogue import (
    RULES,
    WrongKernel,
    accepted_by,
    call_text,
    found_by,
    input_bytes,
    judged,
    wrong_kernels,
)

NAME = "wrong_kernels"
"""Of the stored figures."""
SEEDS = 5
NOT_FOUND = "not found"
SHOWN = "shown by "
TITLES = ("operator", "mistake", *RULES, "quick", "standard")
CALL_TITLES = ("kernel", "profile", "seed", "clause", "smallest failing call")


def measured(kernel: WrongKernel, *, seeds: int) -> Iterator[tuple[str, float]]:
    """What the rules say of a kernel, how many judgements end in what, and the smallest failing call with its seed."""
    for rule, accepts in accepted_by(kernel).items():
        yield f"accepted by {rule}", float(accepts)
    judgements = {"quick": [judged(kernel, seed=seed) for seed in range(seeds)]}
    ends = Counter(map(found_by, judgements["quick"]))
    yield from ((f"quick: {end}", float(number)) for end, number in ends.most_common())
    if NOT_FOUND in ends:
        judgements["standard"] = [judged(kernel, seed=0, profile="standard")]
        yield f"standard: {found_by(judgements['standard'][0])}", 1.0
    for profile, made in judgements.items():
        if failing := [judgement for judgement in made if judgement.findings]:
            smallest = min(failing, key=lambda judgement: input_bytes(judgement.findings[0]))
            finding = smallest.findings[0]
            yield f"{SHOWN}{profile}: {finding.clause}; {call_text(finding)}", float(smallest.seed)
            return


def rows(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """Rows of a table: operator, mistake with its reports, what each rule says, and what ours found."""
    for kernel in wrong_kernels():
        if found := _of(kernel, rounds):
            links = ", ".join(_link(report) for report in kernel.reports)
            rules = ("accepts" if found[f"accepted by {rule}"] else "rejects" for rule in RULES)
            yield (
                f"`{kernel.operator}`",
                f"{kernel.sentence} ({links})",
                *rules,
                _ends(found, "quick: "),
                _ends(found, "standard: "),
            )


def calls(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """Rows of a table: of each kernel that is found, the smallest failing call and the clause that it contradicts."""
    for kernel in wrong_kernels():
        for name, seed in _of(kernel, rounds).items():
            if name.startswith(SHOWN):
                profile, _, shown = name.removeprefix(SHOWN).partition(": ")
                clause, _, call = shown.partition("; ")
                yield f"`{kernel.id}`", profile, f"{seed:.0f}", f"`{clause}`" if clause else "—", f"`{call}`"


def _of(kernel: WrongKernel, rounds: Rounds) -> dict[str, float]:
    """The figures of a kernel by their names without it."""
    end = f", {kernel.id}"
    return {name.removesuffix(end): values[0] for name, values in rounds.items() if name.endswith(end)}


def _link(report: str) -> str:
    repository, _, number = report.partition("#")
    address = f"https://github.com/{repository}" + (f"/issues/{number}" if number else "")
    return f"[{report}]({address})"


def _ends(found: dict[str, float], profile: str) -> str:
    ends = {name.removeprefix(profile): number for name, number in found.items() if name.startswith(profile)}
    return ", ".join(f"{end} ({number:.0f})" for end, number in ends.items()) or "—"


def summary(rounds: Rounds) -> Iterator[str]:
    """How many kernels each rule accepts, in one sentence each."""
    kernels = [kernel for kernel in wrong_kernels() if f"accepted by {next(iter(RULES))}, {kernel.id}" in rounds]
    number = len(kernels)
    counts = {rule: sum(bool(rounds[f"accepted by {rule}, {kernel.id}"][0]) for kernel in kernels) for rule in RULES}
    accepted = ", ".join(f"{rule}: {count}" for rule, count in counts.items())
    quick = sum(f"quick: {NOT_FOUND}, {kernel.id}" not in rounds for kernel in kernels)
    standard = sum(f"standard: {NOT_FOUND}, {kernel.id}" not in rounds for kernel in kernels)
    seeds = rounds["seeds"][0]
    yield f"Of {number} wrong kernels the published rules accept: {accepted}."
    yield f"The quick profile finds {quick} with each of {seeds:.0f} seeds; with the standard profile it is {standard}."


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.wrong_kernels", description=__doc__)
    parser.add_argument("--kernel", action="append", metavar="ID", help="such as softmax_backward.nan")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/wrong-kernels.md")
    options = parser.parse_args(arguments)
    started = start()
    rounds: dict[str, tuple[float, ...]] = {"seeds": (float(options.seeds),)}
    for kernel in wrong_kernels():
        if not options.kernel or kernel.id in options.kernel:
            found = dict(measured(kernel, seeds=options.seeds))
            rounds |= {f"{name}, {kernel.id}": (value,) for name, value in found.items()}
            accepted = sum(bool(value) for name, value in found.items() if name.startswith("accepted"))
            ends = ", ".join(
                f"{name} {value:.0f}" for name, value in found.items() if name.startswith(("quick: ", "standard: "))
            )
            print(f"{kernel.id}: {accepted} of {len(RULES)} rules accept it; {ends}", flush=True)
    print("\n".join(summary(rounds)))
    if options.store:
        store(NAME, rounds, command="make bench-wrong-kernels ARGS=--store", started=started, needed=("seeds",))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
