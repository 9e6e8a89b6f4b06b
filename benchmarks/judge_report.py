"""The counts of `bench_judge` as Markdown, which is what the terminal shows too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.faults_of_precision import FAULTS
from benchmarks.judge_calls import BOUND, JUDGES, OTHERS
from benchmarks.judge_rows import FaultCount, RowCount

MARK_START = "<!-- judged: made from all calls by `make bench-judge`; type nothing here -->"
MARK_END = "<!-- judged: end -->"
_HEAD = "<!-- Made from all calls by `make bench-judge`; change nothing here. -->"


def _table(header: Sequence[str], lines: Iterator[Sequence[str]], *, left: int) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + "|".join(" --- " if place < left else " ---: " for place in range(len(header))) + "|"
    for line in lines:
        yield "| " + " | ".join(line) + " |"
    yield ""


def _number(value: int) -> str:
    return f"{value:,}"


def _alarms(counts: Sequence[RowCount]) -> Iterator[Sequence[str]]:
    for count in counts:
        row = count.row
        figures = (
            count.calls,
            count.torch_calls,
            count.elements,
            count.compared,
            *(count.alarms[judge] for judge in JUDGES),
        )
        yield (row.operator.removeprefix("aclnn"), row.dtype, row.mode, *map(_number, figures))


def _merged(counts: Sequence[FaultCount]) -> FaultCount:
    total = FaultCount()
    for count in counts:
        total.calls += count.calls
        total.alike += count.alike
        total.found += count.found
        total.accused += count.accused
    return total


def _by_fault(counts: Sequence[RowCount]) -> dict[str, FaultCount]:
    found = {}
    for name in FAULTS:
        of_rows = [count.faults[name] for count in counts if name in count.faults]
        if of_rows:
            found[name] = _merged(of_rows)
    return found


def _found(fault: FaultCount, judge: str) -> str:
    """How many calls a judge finds, and those in which it accuses no correct one on the same data."""
    honest = fault.found[judge] - fault.accused[judge]
    if honest == fault.found[judge]:
        return _number(honest)
    return f"{_number(honest)} ({_number(fault.found[judge])})"


def _fault_cells(fault: FaultCount) -> tuple[str, ...]:
    return (_number(fault.calls), _number(fault.alike), *(_found(fault, judge) for judge in JUDGES))


def _detections(counts: Sequence[RowCount]) -> Iterator[Sequence[str]]:
    for name, fault in _by_fault(counts).items():
        yield (name, FAULTS[name].meaning, *_fault_cells(fault))


def _details(counts: Sequence[RowCount]) -> Iterator[Sequence[str]]:
    for count in counts:
        row = count.row
        for name in FAULTS:
            if (fault := count.faults.get(name)) is not None:
                yield (row.operator.removeprefix("aclnn"), row.dtype, row.mode, name, *_fault_cells(fault))


def _honest(fault: FaultCount, judge: str) -> int:
    return fault.found[judge] - fault.accused[judge]


def verdicts(counts: Sequence[RowCount]) -> list[str]:
    """What came of the three goals, a sentence each."""
    alarms: Counter[str] = Counter()
    for count in counts:
        alarms += count.alarms
    lines = [f"False alarms of the bound: {_number(alarms[BOUND])} (goal: 0)."]
    fewer: list[str] = []
    accusing: list[str] = []
    missed: Counter[str] = Counter()
    silent: Counter[str] = Counter()
    for name, fault in _by_fault(counts).items():
        best = max(OTHERS, key=lambda judge: _honest(fault, judge))
        raw = max(OTHERS, key=lambda judge: fault.found[judge])
        if _honest(fault, BOUND) < _honest(fault, best):
            fewer.append(f"{name} (fewer than {best})")
        if fault.found[BOUND] < fault.found[raw]:
            accusing.append(f"{name} ({raw})")
        for judge in JUDGES:
            missed[judge] += fault.calls - _honest(fault, judge)
            silent[judge] += fault.calls - fault.found[judge]
    lines.append(
        "Faults on which the bound finds fewer calls than the best of the others (goal: none): "
        f"{'; '.join(fewer) or 'none'}."
    )
    lines.append(
        "Faults on which another rule accuses more calls than the bound, but correct implementations on the same data "
        f"as well: {'; '.join(accusing) or 'none'}."
    )
    best = min(OTHERS, key=lambda judge: missed[judge])
    share = missed[BOUND] / max(missed[best], 1)
    lines.append(
        f"Missed in total, a call counted as missed where a correct implementation is accused on the same data: "
        f"{', '.join(f'{judge} {_number(missed[judge])}' for judge in JUDGES)}; the bound misses {share:.2f} times "
        f"what {best} does (goal: at most 0.50)."
    )
    best = min(OTHERS, key=lambda judge: silent[judge])
    share = silent[BOUND] / max(silent[best], 1)
    lines.append(
        f"Missed in total, every accusation counted, whoever else is accused on the same data: "
        f"{', '.join(f'{judge} {_number(silent[judge])}' for judge in JUDGES)}; {share:.2f} times what {best} does."
    )
    return lines


_NAMES = ("operator", "dtype", "mode")


def report(counts: Sequence[RowCount], *, command: str) -> str:
    """What came of the goals, and the faults."""
    lines = [
        MARK_START,
        "",
        f"Made by `{command}`.",
        "",
        *(f"- {line}" for line in verdicts(counts)),
        "",
        "### Faulty implementations found at fault",
        "",
        *_table(("fault", "meaning", "calls", "alike", *JUDGES), _detections(counts), left=2),
        "Row by row: [correct implementations](judgement/correct.md), and [faulty ones](judgement/faulty.md).",
        "",
        MARK_END,
    ]
    return "\n".join(lines) + "\n"


def row_pages(counts: Sequence[RowCount]) -> Mapping[str, str]:
    """The pages below the report with a row for each operator, dtype and mode."""
    alarms = _table((*_NAMES, "calls", "of torch", "elements", "all judges", *JUDGES), _alarms(counts), left=3)
    details = _table((*_NAMES, "fault", "calls", "alike", *JUDGES), _details(counts), left=4)
    titles = {"correct": ("Correct", alarms), "faulty": ("Faulty", details)}
    return {
        f"{name}.md": "\n".join([_HEAD, "", f"# {title} implementations found at fault", "", *lines])
        for name, (title, lines) in titles.items()
    }
