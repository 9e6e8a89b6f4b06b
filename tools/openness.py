"""How much of the values of planned calls documents leave open: by dtype and check, on each operator's page."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from aclnn_cts.core.case import tensors_in
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import is_valid_call
from aclnn_cts.execution.judging import Judges
from aclnn_cts.execution.undecided import open_elements
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.counts import OpenElementCount
from aclnn_cts.trials.checks.registry import check_by_id
from aclnn_cts.trials.plan import PROFILES, plan_parts
from tools.markdown import table

_CHECKS = ("example", "values", "boundary", "memory", "precision")
_TRIALS = 16
"""Of each check, the first of the quick profile: pages are made again for every test of them."""
_MOST_BYTES = 1 << 16


def open_section(spec: Spec) -> Iterator[str]:
    """The table of one operator."""
    shares = _shares(spec)
    if not any(item.open for item in shares.values()):
        return
    yield from ("## What is open", "")
    yield (
        f"How many elements conform whatever they hold, of the first {_TRIALS} valid calls of each check "
        f"(quick profile, {spec.usual_product}). Beyond 20 % of a dtype's elements no clause on values is met. "
        "`run -v` shows the same of a run."
    )
    yield ""
    yield from table(
        ("dtype", "check", "calls", "open", "elements open", "mostly since"),
        [
            (dtype, name, str(item.calls), f"{item.share:.1%}", f"{item.open} of {item.elements}", item.usual_reason)
            for (dtype, name), item in sorted(shares.items())
            if item.open
        ],
    )
    yield ""


def _shares(spec: Spec) -> dict[tuple[str, str], OpenElementCount]:
    judge = Judges(has_statuses=True).of(spec)
    found: dict[tuple[str, str], OpenElementCount] = {}
    for name in _CHECKS:
        for trial in itertools.islice(_trials(spec, name), _TRIALS):
            case = trial.case
            counts = open_elements(judge, case)
            if not isinstance(counts, str) and counts.elements:
                tensors = (tensor for output in spec.outputs for tensor in tensors_in(case.arguments.get(output)))
                dtype = next((tensor.dtype for tensor in tensors), "")
                found.setdefault((dtype, name), OpenElementCount()).count_call(
                    opened=counts.open, elements=counts.elements, why=counts.why
                )
    return found


def _trials(spec: Spec, name: str) -> Iterator[Trial]:
    sampler = Sampler(spec, Target(spec.usual_product))
    parts = plan_parts([spec], product=spec.usual_product, chosen=PROFILES["quick"])
    for part in parts:
        if part.check == name:
            for trial in check_by_id(name, where="page").trials(part, sampler, seed=0):
                if is_valid_call(trial) and trial.case.nbytes <= _MOST_BYTES:
                    yield trial
