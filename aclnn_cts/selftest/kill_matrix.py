"""The kill matrix: attempts on faults and decoys, which check noticed each after how many cases, and its document."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outside import DOCUMENT_BYTES, read_json
from aclnn_cts.store.output_file import begins_with
from aclnn_cts.store.provenance import MadeBy

if TYPE_CHECKING:
    from aclnn_cts.selftest.fault_catalogue import Catalogue, Decoy, SeededFault


class SeedResult(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the kill matrix: one fault with one seed."""

    seed: int
    found: bool
    check: str
    """Of the first failure, and so are kind and cases."""
    kind: str
    cases: int
    """Trials up to and with the first failure, or all of the plan where there is none."""
    seconds: float
    errors: int = 0
    """Trials on which the harness itself failed."""


class Attempt(SeedResult, frozen=True, kw_only=True):
    """What came of one fault or decoy with one seed."""

    id: str
    findings: tuple[str, ...] = ()
    """The findings of all failures that were seen, each by its key, as text."""
    failures: tuple[tuple[Fingerprint, int], ...] = ()
    """How many failures had each fingerprint."""


FORMAT = "aclnn-cts/kill-matrix/1"

MATRIX_FILE = begins_with(rb'\{\n  "format": "aclnn-cts/kill-matrix/')
"""Files of `KillMatrix.to_json`."""

SOON = 60
"""Cases within which nine of ten faults are to be found."""


class FaultRow(msgspec.Struct, frozen=True, kw_only=True):
    """One fault: its entry in the catalogue, and what came of it."""

    id: str
    operator: str
    fault_class: str = msgspec.field(name="class")
    sentence: str
    foreseen: tuple[str, ...]
    clauses: tuple[str, ...]
    equivalent: str | None
    by_seed: tuple[SeedResult, ...]
    caught_by: Mapping[str, int]
    """How often each check was the first to notice it."""
    sentence_zh: str = ""
    """In Chinese, for reports; so is `equivalent_zh`."""
    equivalent_zh: str = ""
    findings: float = 0.0
    """Mean number of findings that its failures are, over the seeds that found it; 0 where none did."""

    @property
    def survives(self) -> bool:
        """Whether some seed did not find it, although it can be told from correct behaviour."""
        return self.equivalent is None and not all(result.found for result in self.by_seed)

    @property
    def cases(self) -> float:
        """Median number of cases until it was found, over the seeds that found it; inf where none did."""
        found = [result.cases for result in self.by_seed if result.found]
        return statistics.median(found) if found else float("inf")

    @property
    def seconds(self) -> float:
        """Median time until it was found, or until the plan was at its end."""
        return statistics.median(result.seconds for result in self.by_seed) if self.by_seed else 0.0


class Accusation(msgspec.Struct, frozen=True, kw_only=True):
    """A failure of a decoy: a mistake of the harness."""

    seed: int
    fingerprint: str
    """Without what only the grouping asks for."""


class DecoyRow(msgspec.Struct, frozen=True, kw_only=True):
    """One decoy, run to the end with every seed."""

    id: str
    operator: str
    sentence: str
    cases: int
    """Of all seeds together."""
    accused: tuple[Accusation, ...]
    errors: int = 0
    sentence_zh: str = ""


class KillMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, as it is published."""

    format: str = FORMAT
    profile: str
    seeds: tuple[int, ...]
    decoy_seeds: tuple[int, ...] = ()
    to_end: bool = False
    """Whether plans went on to their end after a fault was found, so that its findings are those of the whole plan."""
    made_by: MadeBy | None = None
    """None in a document of an earlier version, which does not say."""
    faults: tuple[FaultRow, ...]
    decoys: tuple[DecoyRow, ...]

    @property
    def survivors(self) -> tuple[FaultRow, ...]:
        """Faults that some seed did not find and that are not equivalent."""
        return tuple(row for row in self.faults if row.survives)

    @property
    def accused(self) -> tuple[DecoyRow, ...]:
        """Decoys that failed a trial."""
        return tuple(row for row in self.decoys if row.accused)

    @property
    def errors(self) -> int:
        """Trials without a verdict, where nothing explains them: of decoys, and of faults that were not found.

        After a fault that costs the device, what follows cannot be run; by then it is found.
        """
        missed = sum(result.errors for row in self.faults for result in row.by_seed if not result.found)
        return missed + sum(row.errors for row in self.decoys)

    def to_json(self) -> bytes:
        """The document, one fault or decoy a line."""
        return document_of(self, rows=("faults", "decoys"))


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What a matrix comes to, against which the goals are held."""

    faults: int
    equivalent: int
    found: int
    """Faults that are not equivalent and that every seed found."""
    soon: int
    """Of those, how many within `SOON` cases by the median of the seeds."""
    foreseen: float
    """Share of the findings whose check was foreseen."""
    findings: float
    """Mean over the faults that were found."""
    decoys: int
    accused: int


def figures(matrix: KillMatrix) -> Figures:
    """Count."""
    judged = [row for row in matrix.faults if row.equivalent is None]
    results = [(row, result) for row in matrix.faults for result in row.by_seed if result.found]
    return Figures(
        faults=len(matrix.faults),
        equivalent=len(matrix.faults) - len(judged),
        found=sum(not row.survives for row in judged),
        soon=sum(not row.survives and row.cases <= SOON for row in judged),
        foreseen=sum(result.check in row.foreseen for row, result in results) / max(len(results), 1),
        findings=_mean(row.findings for row in matrix.faults if row.findings),
        decoys=len(matrix.decoys),
        accused=len(matrix.accused),
    )


def _mean(values: Iterable[float]) -> float:
    """The mean; 0 of nothing."""
    given = list(values)
    return statistics.fmean(given) if given else 0.0


def build_matrix(
    catalogue: Catalogue,
    attempts: Iterable[Attempt],
    *,
    profile: str,
    seeds: Sequence[int],
    decoy_seeds: Sequence[int],
    to_end: bool,
    made_by: MadeBy | None = None,
) -> KillMatrix:
    """The matrix of what was tried, survivors first, then by cases until found; decoys that were accused first."""
    by_id: dict[str, list[Attempt]] = {}
    for attempt in sorted(attempts, key=lambda item: item.seed):
        by_id.setdefault(attempt.id, []).append(attempt)
    faults = [_fault_row(entry, by_id[name]) for name, entry in catalogue.faults.items() if name in by_id]
    decoys = [_decoy_row(entry, by_id[name]) for name, entry in catalogue.decoys.items() if name in by_id]
    return KillMatrix(
        profile=profile,
        seeds=tuple(seeds),
        decoy_seeds=tuple(decoy_seeds),
        to_end=to_end,
        made_by=made_by,
        faults=tuple(sorted(faults, key=lambda row: (not row.survives, -row.cases, row.id))),
        decoys=tuple(sorted(decoys, key=lambda row: (not row.accused, row.id))),
    )


def _fault_row(entry: SeededFault, attempts: Sequence[Attempt]) -> FaultRow:
    found = [attempt for attempt in attempts if attempt.found]
    return FaultRow(
        id=entry.id,
        operator=entry.operator,
        fault_class=entry.fault_class,
        sentence=entry.sentence,
        foreseen=entry.checks,
        clauses=entry.clauses,
        equivalent=entry.equivalent or None,
        sentence_zh=entry.sentence_zh,
        equivalent_zh=entry.equivalent_zh,
        by_seed=tuple(
            msgspec.convert(
                msgspec.structs.replace(attempt, seconds=round(attempt.seconds, 2)), SeedResult, from_attributes=True
            )
            for attempt in attempts
        ),
        caught_by=dict(sorted(Counter(attempt.check for attempt in found).items())),
        findings=round(_mean(len(attempt.findings) for attempt in found), 2),
    )


def _decoy_row(entry: Decoy, attempts: Sequence[Attempt]) -> DecoyRow:
    return DecoyRow(
        id=entry.id,
        operator=entry.operator,
        sentence=entry.sentence,
        sentence_zh=entry.sentence_zh,
        cases=sum(attempt.cases for attempt in attempts),
        accused=tuple(
            Accusation(seed=attempt.seed, fingerprint=text)
            for attempt in attempts
            for text in dict.fromkeys(found.key.text() for found, _ in attempt.failures)
        ),
        errors=sum(attempt.errors for attempt in attempts),
    )


def shipped_matrix() -> Path:
    """Where the matrix of this release lies."""
    return Path(str(resources.files("aclnn_cts") / "kill_matrix.json"))


def read_matrix(path: Path | None = None) -> KillMatrix:
    """Read a matrix, that of this release by default; UsageError for a file that is none."""
    expected = "a kill matrix, as `aclnn-cts faults -o` writes one"
    return read_json(path or shipped_matrix(), KillMatrix, form=FORMAT, expected=expected, limit=DOCUMENT_BYTES)


def document_of(measurement: msgspec.Struct, *, rows: Sequence[str]) -> bytes:
    """The document; the fields `rows`, which stand last, have one row a line."""
    document = msgspec.to_builtins(measurement)
    encode = msgspec.json.encode
    lines = [f'  "{key}": {encode(document[key]).decode()}' for key in document if key not in rows]
    for key in rows:
        encoded = ",\n".join(f"    {encode(row).decode()}" for row in document[key])
        lines.append(f'  "{key}": [\n{encoded}\n  ]' if encoded else f'  "{key}": []')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()
