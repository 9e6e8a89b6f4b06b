"""Does an implementation answer as the lists of another product say? Of one whose product nothing but a word tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Record, Result, is_valid_call
from aclnn_cts.speclang.kinds_dtype import ListedRule
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.events import BatchJudged, Event


@dataclass(frozen=True, slots=True)
class _ListDifference:
    """The names of one list of dtypes or formats that two products do not share."""

    constraint: str
    rule: ListedRule
    other: str
    """The product that is not stated."""
    here: frozenset[str]
    """Names that the stated product lists alone."""
    there: frozenset[str]


@dataclass(slots=True, kw_only=True)
class OtherProductComparison:
    """Listens to a run: does the implementation answer as the lists of another product say?

    Only calls count whose promise the lists decide: a valid call with a name that the other product does not list, and
    a call that breaks the list with a name that the other product has.
    """

    product: str
    specs: Iterable[Spec]
    _differences: Mapping[str, Sequence[_ListDifference]] = field(init=False)
    """By operator."""
    _as_here: set[str] = field(default_factory=set)
    """Products that at least one call contradicts."""
    _as_there: Counter[str] = field(default_factory=Counter)
    """By product, the calls that were answered as its lists say."""
    _accepts: bool = False
    """Whether a valid call passed: an implementation that rejects everything answers as no product."""

    def __post_init__(self) -> None:
        """Compare the lists of the product's operators."""
        self._differences = {
            spec.operator: tuple(_differences(spec, self.product))
            for spec in self.specs
            if self.product in spec.products
        }

    def __call__(self, event: Event, /) -> None:
        """Take the records of a batch."""
        for record in event.records if isinstance(event, BatchJudged) else ():
            if record.verdict.result in (Result.PASSED, Result.FAILED):
                self._add(record)

    def _add(self, record: Record) -> None:
        case, kind = record.trial.case, record.verdict.kind
        passed = record.verdict.result == Result.PASSED
        valid = is_valid_call(record.trial)
        self._accepts |= valid and passed
        for item in self._differences.get(case.operator, ()):
            value = case.arguments.get(item.rule.of)
            name = getattr(value, item.rule.what) if isinstance(value, Tensor) else None
            decides = (
                name in item.here if valid else record.fingerprint.clause == item.constraint and name in item.there
            )
            if not decides:
                continue
            if kind == (Fault.REJECTED if valid else Fault.STATUS):
                self._as_there[item.other] += 1
            elif passed or valid:
                self._as_here.add(item.other)

    @property
    def suspicion(self) -> str:
        """What to check, where every call that tells two products apart is answered as on the other one; else empty."""
        others = {name: number for name, number in self._as_there.items() if name not in self._as_here}
        if not others or not self._accepts:
            return ""
        calls = ", ".join(f"{number} as on {name}" for name, number in sorted(others.items()))
        return (
            f"all calls whose dtype or format only --product {self.product} or only another product supports are "
            f"answered as on the other ({calls}): the library may be built for another SoC; check which, and pass its "
            "product"
        )


def _differences(spec: Spec, product: str) -> Iterator[_ListDifference]:
    for item in spec.constraints:
        if not isinstance(item.rule, ListedRule) or product not in item.rule.table:
            continue
        here = frozenset(item.rule.table[product])
        for other, names in item.rule.table.items():
            if other != product and here != frozenset(names):
                yield _ListDifference(item.id, item.rule, other, here - {*names}, frozenset(names) - here)
