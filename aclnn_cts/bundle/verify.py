"""A bundle checked without a device: bytes, sums, signature, totals that add up, and sampled cases judged again."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from aclnn_cts.bundle.agreement import Agreement
from aclnn_cts.bundle.keys import Verifier
from aclnn_cts.bundle.reading import Reading, read_bundle
from aclnn_cts.bundle.recount import Recount, Sample, judged_again
from aclnn_cts.bundle.statement import BUNDLE_FORMAT, SIGNATURE_NAME, Predicate, Problem, Statement, signed_bytes
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.execution.judges import Judges
from aclnn_cts.execution.measuring import Measuring
from aclnn_cts.store.manifest import older_format


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was checked, and what is wrong."""

    path: str
    size: int
    entries: int
    problems: tuple[Problem, ...]
    predicate: Predicate | None
    """What the bundle says of itself; None where its manifest cannot be read."""
    signature: str
    """In words: by which key, and whether it was checked."""
    recomputed: int
    """Cases judged again."""
    eligible: int
    """Cases whose outputs the bundle holds."""
    seed: int
    """Of the sample."""
    unproved: tuple[str, ...] = ()
    """What of the bundle could have been written by anybody, and contradicts nothing; empty where a key proves it."""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify_bundle(
    path: Path,
    *,
    key: Verifier | None = None,
    recompute: int = 0,
    seed: int | None = None,
    spec_folders: Sequence[Path] = (),
) -> Verification:
    """Check a bundle; whatever is wrong with it is a problem of the result, and nothing in it is run.

    - `key`: whose signature is demanded; without one a signature is held to the manifest and not checked.
    - `recompute`: how many cases to judge again, of those whose outputs the bundle holds; `seed` chooses which.
    - `spec_folders`: where the oracles of operators of the user's own lie. They are Python, and run.
    """
    seed = secrets.randbits(32) if seed is None else seed
    records = Recount(Sample(recompute, Random(seed)))  # noqa: S311 - a sample, and no secret
    reading = read_bundle(path, records)
    problems = [*reading.problems, *records.problems]
    statement = reading.statement
    signature, proved = "not read", False
    recomputed = 0
    if statement is not None:
        signature, wrong = _signature(reading, statement.predicate, key)
        problems += wrong
        proved = key is not None and not wrong
    if statement is not None and statement.is_older:
        older = older_format("its records", statement.predicate.format, BUNDLE_FORMAT)
        problems.append(Problem("file", f"{older}. Here only its bytes and its signature were checked"))
    elif statement is not None and not reading.problems:
        problems += Agreement(records, statement, reading).problems()
        judged = list(_recomputed(path, records, statement, reading.offsets, spec_folders))
        recomputed = len(judged)
        problems += [problem for problem in judged if problem is not None]
    return Verification(
        path=str(path),
        size=reading.size,
        entries=len(reading.offsets),
        problems=tuple(problems),
        predicate=statement.predicate if statement is not None else None,
        signature=signature,
        recomputed=recomputed,
        eligible=records.sample.eligible,
        seed=seed,
        unproved=_unproved(statement) if statement is not None and not proved else (),
    )


_DETERMINED = frozenset(("blobs", "records", "specs"))
"""Entries that are held to other entries, byte by byte or in all that they say."""


def _unproved(statement: Statement) -> tuple[str, ...]:
    """Entries by the first word of their name whose contents nothing else in the bundle tells."""
    names = dict.fromkeys(subject.name.partition("/")[0] for subject in statement.subject)
    return tuple(name for name in names if name not in _DETERMINED)


def _signature(reading: Reading, predicate: Predicate, key: Verifier | None) -> tuple[str, list[Problem]]:
    """What can be said of the signature, and what is wrong with it."""
    if not predicate.signer:
        wrong = [Problem(SIGNATURE_NAME, "the bundle is not signed; the key that was given says nothing of it")]
        return "nobody signed it", wrong if key is not None else []
    if key is None:
        return f"signed by the key {predicate.signer}, not checked: no public key was given", []
    if key.key_id != predicate.signer:
        return "not by the key given", [
            Problem(SIGNATURE_NAME, f"signed by the key {predicate.signer}, and not by the one given ({key.key_id})")
        ]
    if reading.signature is None or not key.accepts(reading.signature, signed_bytes(reading.manifest)):
        return "wrong", [Problem(SIGNATURE_NAME, "the signature is not that of the key given on this manifest")]
    return f"good, by the key {predicate.signer}", []


def _recomputed(
    path: Path, records: Recount, statement: Statement, offsets: Mapping[str, int], folders: Sequence[Path]
) -> Iterator[Problem | None]:
    """For each sampled case what is wrong with its verdict, or None."""
    if not records.sample.chosen:
        return
    try:
        specs = records.specs()
        judges = Judges(
            has_statuses=statement.predicate.statuses,
            spec_folders=folders,
            measuring=Measuring(gate=records.manifest().tolerances),
        )
    except (HarnessError, UsageError) as error:
        yield Problem("specs", str(error).splitlines()[0])
        return
    yield from judged_again(path, records.sample, statement, offsets, specs=specs, judges=judges)
