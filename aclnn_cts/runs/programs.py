"""The programs of a run's findings, made when it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.run_writer import MakePrograms


def program_maker(specs: Specs, spec_folders: Sequence[Path]) -> MakePrograms:
    """What `store.run_writer.create_run` takes."""

    def make(run: RunDirectory) -> Mapping[str, object]:
        from aclnn_cts.repro.keep import keep_run_programs  # noqa: PLC0415 - only where something failed

        return keep_run_programs(run, specs=specs, spec_folders=spec_folders)

    return make
