"""Does a second implementation answer what it is to be compared with?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.core.verdict import ToleranceWhy
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.runs.beginning import is_tested
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.events import BatchJudged, Event
from aclnn_cts.store.scope import declared_scope


def check_benchmark(benchmark: SessionHost, operators: Iterable[Spec], settings: RunnerSettings) -> None:
    """Refuse a benchmark that does not offer an operator of the run. Raises UsageError."""
    scope = declared_scope(benchmark.capabilities, adapter=settings.benchmark)
    asked = (spec.operator for spec in operators if is_tested(spec, settings))
    lacking = [name for name in asked if not scope.offers(name, settings.target.product)]
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise UsageError(
            f"--benchmark {settings.benchmark}: does not offer {lacking[0]}{more}; expected an adapter that offers"
            " every operator of the run; name another, or operators that it offers"
        )


@dataclass(slots=True)
class BenchmarkUse:
    """Listens to a run: of which operators did no output get a benchmark that needs one?"""

    _lacking: dict[str, None] = field(default_factory=dict)
    _compared: set[str] = field(default_factory=set)

    def __call__(self, event: Event, /) -> None:
        """Take the records of a batch."""
        for record in event.records if isinstance(event, BatchJudged) else ():
            for results in record.verdict.tolerances.values():
                for result in results.values():
                    if result.benchmark:
                        self._compared.add(record.trial.case.operator)
                    elif result.why == ToleranceWhy.NO_BENCHMARK:
                        self._lacking[record.trial.case.operator] = None

    def notes(self, benchmark: str) -> Iterator[Note]:
        """Why the run says nothing, by operator."""
        for name in self._lacking:
            if name not in self._compared:
                text = f"{name}: --benchmark {benchmark} answered no call, so that no output was compared with it"
                yield Note(text, NoteCode.NO_BENCHMARK, {"operator": name, "benchmark": benchmark})
