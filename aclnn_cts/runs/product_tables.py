"""Is a library built for another SoC than `--product` states? Then most tables that differ between products fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.speclang.kinds_dtype import Listed
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.events import BatchJudged, Event

_OF_TABLES = frozenset({Fault.REJECTED, Fault.STATUS})


@dataclass(frozen=True, slots=True)
class _Table:
    """The names of one list of dtypes or formats that not all products of an operator have."""

    operator: str
    names: frozenset[str]


@dataclass(slots=True, kw_only=True)
class ProductTables:
    """Listens to a run, and counts the tables whose differing names were tried, and those of which a trial failed."""

    product: str
    specs: Iterable[Spec]
    _rows: Mapping[str, Mapping[str, _Table]] = field(init=False)
    """By operator and parameter."""
    _tried: set[_Table] = field(default_factory=set)
    _failed: set[_Table] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Collect the tables of the product's operators."""
        self._rows = {spec.operator: dict(_tables(spec)) for spec in self.specs if self.product in spec.products}

    def __call__(self, event: Event, /) -> None:
        """Take the records of a batch."""
        for record in event.records if isinstance(event, BatchJudged) else ():
            self._add(record)

    def _add(self, record: Record) -> None:
        if record.verdict.result not in (Result.PASSED, Result.FAILED):
            return
        touched = set(self._touched(record.trial.case))
        self._tried |= touched
        if record.verdict.kind in _OF_TABLES:
            self._failed |= touched

    def _touched(self, case: Case) -> Iterator[_Table]:
        rows = self._rows.get(case.operator, {})
        for name, value in case.arguments.items():
            table = rows.get(name)
            if table is not None and isinstance(value, Tensor) and {value.dtype, value.format} & table.names:
                yield table

    @property
    def suspicion(self) -> str:
        """What to check, where most tables fail; empty otherwise."""
        if 2 * len(self._failed) <= len(self._tried):
            return ""
        operators = ", ".join(sorted({table.operator for table in self._failed}))
        return (
            f"{len(self._failed)} of {len(self._tried)} lists of dtypes and formats that differ between products fail "
            f"({operators}): the library may be built for another SoC than --product {self.product} says; check for "
            "which SoC it was built, and state that product"
        )


def _tables(spec: Spec) -> Iterator[tuple[str, _Table]]:
    for item in spec.constraints:
        rule = item.rule
        if not isinstance(rule, Listed):
            continue
        lists = [frozenset(rule.table.get(product, ())) for product in spec.products]
        if names := frozenset.union(*lists) - frozenset.intersection(*lists):
            yield rule.of, _Table(spec.operator, names)
