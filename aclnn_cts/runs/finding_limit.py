"""The number of findings after which a run or a gate tries nothing more."""

from __future__ import annotations

from dataclasses import dataclass, field

from aclnn_cts.core.verdict import Record
from aclnn_cts.findings.findings import Failures
from aclnn_cts.store.events import BatchJudged, Event


@dataclass(slots=True)
class FindingLimit:
    """Listens to a run or a gate: are there so many findings without a waiver?"""

    number: int | None = None
    """None: there is no limit."""
    _failures: Failures = field(default_factory=Failures)

    def __call__(self, event: Event, /) -> None:
        """Take the records of a batch."""
        for record in event.records if isinstance(event, BatchJudged) else ():
            self.add(record)

    def add(self, record: Record) -> None:
        """Take one record."""
        if self.number is not None:
            self._failures.add(record)

    @property
    def reached(self) -> bool:
        """Whether nothing more is to be tried."""
        return self.number is not None and len(self._failures.unwaived) >= self.number

    @property
    def notice(self) -> str:
        """What a person should know of it; empty where the run tried everything."""
        found = "1 finding" if self.number == 1 else f"{self.number} findings"
        return f"stopped after {found}, as asked; what was not tried counts as not judged" if self.reached else ""
