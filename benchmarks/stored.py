"""Measured figures in files of their own, from which pages are made (`make docs`): nobody types them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.store.manifest import environment_facts, timestamp
from aclnn_cts.store.output_file import write_atomically
from aclnn_cts.store.provenance import checkout
from benchmarks.measure import Figure

FOLDER = Path(__file__).resolve().parent / "figures"
FORMAT = "aclnn-cts/figures/2"
_NO_PART = (":!benchmarks/figures", ":!docs", ":!README.md", ":!tests", ":!tools")
"""Files that no figure depends on; some of these are written while one benchmark follows the other."""
_LIBRARIES = {"NumPy": "numpy", "torch": "torch"}

Rounds = Mapping[str, Sequence[float]]
"""The figure of each round, by name; where each operator, fault or the like has its own, by `<name>, <which>`."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """On what was measured; the load is that before the first round."""

    architecture: str
    processor: str
    cores: int
    load: float
    versions: Mapping[str, str]
    """Of Python, and of the libraries that have a part in what is measured."""

    @property
    def text(self) -> str:
        """In words, without the load."""
        of = f"of an {self.processor} ({self.architecture})" if self.processor else f"of an {self.architecture} machine"
        return f"{self.cores} cores {of} with {', '.join(' '.join(item) for item in self.versions.items())}"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one command measured."""

    format: str = FORMAT
    command: str
    """That stored this file."""
    date: str
    """The day, UTC."""
    commit: str
    """Of the code that was measured; with `+` behind it where that had changes that were not committed."""
    machine: Machine
    rounds: Mapping[str, tuple[float, ...]]

    def figure(self, name: str) -> Figure:
        """One of them."""
        return Figure(self.rounds[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Where, when and of what a measurement was begun."""

    date: str
    commit: str
    machine: Machine

    @property
    def text(self) -> str:
        """The machine, and its load."""
        return f"{self.machine.text}, with a load of {self.machine.load:.1f} before"


def start() -> Started:
    """To be called before the first round."""
    return Started(date=timestamp()[:10], commit=this_commit(), machine=this_machine())


def this_machine() -> Machine:
    """The machine as it is now."""
    facts = {name: fact.value for name, fact in environment_facts().items()}
    libraries = {name: facts[f"library.{module}"] for name, module in _LIBRARIES.items()}
    found = {"Python": facts["python.version"]} | libraries
    return Machine(
        architecture=str(facts["machine.architecture"]),
        processor=str(facts["machine.cpu"] or ""),
        cores=len(os.sched_getaffinity(0)),
        load=round(os.getloadavg()[0], 2),
        versions={name: str(version) for name, version in found.items() if version is not None},
    )


def this_commit() -> str:
    """The commit that is checked out; `unknown` without git or a repository."""
    found = checkout(FOLDER.parent.parent, leave_out=_NO_PART)
    return "unknown" if found is None else found.commit[:12] + ("" if found.clean else "+")


def store_figures(name: str, measured: Measured) -> Path:
    """Store what was measured under a name; the file's path."""
    path = FOLDER / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, msgspec.json.format(msgspec.json.encode(measured), indent=1) + b"\n")
    return path


def store(name: str, rounds: Rounds, *, command: str, started: Started, needed: Sequence[str]) -> None:
    """Store figures and tell where. HarnessError where some of those needed are missing."""
    missing = [item for item in needed if item not in rounds and not figures_of(rounds, item)]
    if missing:
        raise HarnessError(
            f"{FOLDER / name}.json: not stored, since {', '.join(missing)} could not be measured here (is torch "
            "installed, and g++?); what was stored before stays as it is"
        )
    path = store_figures(
        name,
        Measured(
            command=command,
            date=started.date,
            commit=started.commit,
            machine=started.machine,
            rounds={label: rounded(values) for label, values in rounds.items()},
        ),
    )
    print(f"{path} is stored; `make docs` puts it into the pages")


def write_rounds(path: Path, rounds: Rounds) -> None:
    """Write figures to a file of any place, for who compares two trees."""
    write_atomically(path, msgspec.json.encode({"rounds": rounds}))


def rounded(values: Sequence[float]) -> tuple[float, ...]:
    """To five significant digits, which is more than any measurement has."""
    return tuple(float(f"{value:.5g}") for value in values)


def figures_of(rounds: Rounds, name: str) -> dict[str, Figure]:
    """The figures of a name, by operator, fault or whatever else has its own."""
    start = f"{name}, "
    return {
        label.removeprefix(start): Figure(tuple(values)) for label, values in rounds.items() if label.startswith(start)
    }


def read_figures(name: str) -> Measured | None:
    """What was stored under a name; None where nothing was. HarnessError for a file that is none of these."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        return None
    try:
        measured = msgspec.json.decode(path.read_bytes(), type=Measured)
    except msgspec.DecodeError as error:
        raise HarnessError(f"{path}: {error}; expected figures that a benchmark stored with --store") from None
    if measured.format != FORMAT:
        raise HarnessError(f"{path}: format {measured.format!r}; expected {FORMAT!r}")
    return measured


def provenance(found: Sequence[Measured]) -> str:
    """When, on what, of which commit and by which command figures were measured; what several share is told once."""
    groups: dict[tuple[str, str], dict[str, list[str]]] = {}
    for item in found:
        commits = groups.setdefault((item.date, item.machine.text), {})
        commits.setdefault(item.commit, []).append(f"`{item.command}` (load before: {item.machine.load:.1f})")
    return " ".join(
        f"Measured on {date} on {machine}: "
        + "; ".join(f"at {_commit_text(commit)} by {', '.join(commands)}" for commit, commands in commits.items())
        + "."
        for (date, machine), commits in groups.items()
    )


def _commit_text(commit: str) -> str:
    if commit == "unknown":
        return "a commit that is not known"
    return f"commit {commit.removesuffix('+')}" + (" with changes" if commit.endswith("+") else "")
