"""Measured figures in files of their own, from which pages are made (`make docs`): nobody types them."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.engine.files import write_atomically
from benchmarks.measure import Figure

__all__ = ["FOLDER", "Machine", "Measured", "read_figures", "store_figures", "this_machine"]

FOLDER = Path(__file__).resolve().parent / "figures"
FORMAT = "aclnn-cts/figures/1"


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """On what was measured; the load is that before the first round."""

    architecture: str
    cores: int
    load: float

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.cores} cores of an {self.architecture} machine with a load of {self.load:.1f} before"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one command measured."""

    format: str = FORMAT
    command: str
    """That stored this file."""
    machine: Machine
    rounds: Mapping[str, tuple[float, ...]]
    """The figure of each round, by name."""

    def figure(self, name: str) -> Figure:
        """One of them."""
        return Figure(self.rounds[name])


def this_machine() -> Machine:
    """The machine as it is now."""
    return Machine(
        architecture=platform.machine(), cores=len(os.sched_getaffinity(0)), load=round(os.getloadavg()[0], 2)
    )


def store_figures(name: str, measured: Measured) -> Path:
    """Store what was measured under a name; the file's path."""
    path = FOLDER / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, msgspec.json.format(msgspec.json.encode(measured), indent=1) + b"\n")
    return path


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
