"""Which tolerances of the ecosystem a run measures: those that gate, and the others on failures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """What a run asks of the tolerances."""

    gate: tuple[str, ...] = ()
    """Those that an implementation is held to beside the bound; computed on every trial."""
    always: bool = False
    """Compute all of them, and the counts by magnitude, of every output, and not of those at fault alone."""


def chosen_tolerances(words: Iterable[str], *, benchmark: str = "") -> tuple[str, ...]:
    """The tolerances that `--tolerance NAME,...` names.

    UsageError for an unknown one, and where none compares with the adapter that `--benchmark` names.
    """
    names = [name.strip() for word in words for name in word.split(",")]
    if not names and not benchmark:
        return ()
    from aclnn_cts.judgement.tolerances.registry import check_names  # noqa: PLC0415 - most runs name none

    return check_names(names, where="--tolerance", benchmark=benchmark)
