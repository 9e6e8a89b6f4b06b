"""The reference, whose first call takes a folder away (`--adapter takes_away_adapter:TakesAway,folder=F`)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec


class TakesAway(ReferenceAdapter):
    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def open(self, target: Target, specs: Mapping[str, Spec]) -> TakesAwaySession:
        return TakesAwaySession(target, specs, self._folder)


class TakesAwaySession(ReferenceSession):
    def __init__(self, target: Target, specs: Mapping[str, Spec], folder: Path) -> None:
        super().__init__(target, specs)
        self._folder = folder

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        shutil.rmtree(self._folder, ignore_errors=True)
        return super().run(calls)
