"""KernelBench-style files: the gradients of `ModelNew` that autograd gives, held to a backward operator's bound.

    judge_module("softmax.py", "softmax_backward", attributes={"dim": -1})

The file is executed in a confined process. `get_inputs()` makes the inputs of each trial, with a seed of its own;
nothing is drawn from a document, since only the file knows which inputs its module takes. The file also runs autograd
itself: mistakes are found, and a file that patches torch to hide them is not. The forward pass is not judged.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aclnn_cts.candidates.cases import drawn_seed, is_integer
from aclnn_cts.candidates.check import CheckResult, JudgedDocument, check, judged_document
from aclnn_cts.candidates.judge import seconds_of
from aclnn_cts.candidates.verdict import CandidateFinding, Isolation, Judgement
from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.printable import quote
from aclnn_cts.core.verdict import RunVerdict
from aclnn_cts.sandbox.child import ChildEnd
from aclnn_cts.sandbox.module_host import BackwardPass, ModuleProcess

_MEMORY_BYTES = 4 << 30
"""Most that the process may take: as a Python adapter."""
_FAULTS: Mapping[str, Fault] = {CallEnd.RAISED: Fault.REJECTED, CallEnd.TIME_LIMIT: Fault.HANG}
"""By how a backward pass ended; anything else is a crash."""
_USUAL: Mapping[str, str] = {
    **dict.fromkeys(("gradOutput", "gradOut", "grad", "dy"), "grad"),
    **dict.fromkeys(("output", "result"), "output"),
    **dict.fromkeys(("self", "input", "x"), "input0"),
    **dict.fromkeys(("target",), "input1"),
    **dict.fromkeys(("weight", "weightOptional", "gamma"), "weight"),
    **dict.fromkeys(("bias", "biasOptional"), "bias"),
    **dict.fromkeys(("gradInput", "out", "gradInputOut", "dxOut"), "d.input0"),
    **dict.fromkeys(("gradWeight", "gradWeightOut", "dgammaOut", "gradGammaOut"), "d.weight"),
    **dict.fromkeys(("gradBias", "gradBiasOut", "gradBetaOut"), "d.bias"),
}
"""By parameter of an operator, which array of a backward pass it usually is."""


def judge_module(
    file: str | Path,
    op: str,
    *,
    attributes: Mapping[str, Any] | None = None,
    arrays: Mapping[str, str] | None = None,
    trials: int = 5,
    seed: int | None = None,
    budget: str | float = "30s",
) -> Judgement:
    """Judge the backward pass of a file's `ModelNew` as an operator.

    - `attributes`: the operator's parameters that are no tensors, by name.
    - `arrays`: which array each parameter is, where it is not the usual one: `grad` (what reaches the module's output),
      `output`, `input0`, `input1`, ... or a parameter of the module; for an output of the operator `d.input0`,
      `d.weight`. Tensors that no module has, such as saved statistics, are left out, and the document says whether it
      takes null for them.
    - `trials`: how often inputs are made; `seed`: of the first, None for one from the system's entropy.

    Raises UsageError for a file, operator or name that is wrong, HarnessError where nothing can be run here.
    """
    began, seconds = time.monotonic(), seconds_of(budget)
    if not (is_integer(trials) and trials >= 1):
        raise UsageError(f"trials: {quote(trials)}; expected a number of trials, at least 1")
    known, drawn = judged_document(op), drawn_seed(seed)
    named = _checked(arrays or {}, known)
    given = {known.names.get(name, name): value for name, value in (attributes or {}).items()}
    tally: Counter[str] = Counter()
    finding: CandidateFinding | None = None
    reason = ""
    with ModuleProcess(Path(file), seconds=seconds, memory_bytes=_MEMORY_BYTES) as process:
        for number in range(trials):
            if time.monotonic() - began > seconds:
                break
            made = process.backward(drawn + number)
            if isinstance(made, ChildEnd) and made.ended == CallEnd.INEXPRESSIBLE:
                tally[RunVerdict.INCONCLUSIVE.value] += 1
                reason = made.message
                break
            if isinstance(made, ChildEnd):
                tally[RunVerdict.FAILS.value] += 1
                reason, fault = made.message, _FAULTS.get(made.ended, Fault.CRASH)
                finding = CandidateFinding(fault=str(fault), sentence=reason, trial=str(drawn + number))
                break
            found = _held(known.spec.operator, [item.name for item in known.spec.parameters], made, given, named)
            tally[found.verdict] += 1
            reason = reason or found.reason
            if found.verdict == RunVerdict.FAILS.value:
                finding = _finding(found, drawn + number)
                break
        missing = process.missing
    judged = tally[RunVerdict.CONFORMS.value] + tally[RunVerdict.FAILS.value]
    verdict = RunVerdict.FAILS if finding else RunVerdict.CONFORMS if judged == trials else RunVerdict.INCONCLUSIVE
    return Judgement(
        verdict=verdict.value,
        candidate=f"{file}:ModelNew",
        operator=known.spec.operator,
        product=known.target.product,
        seed=drawn,
        reason="" if verdict is RunVerdict.CONFORMS else reason or "the budget ended before the trials",
        findings=() if finding is None else (finding,),
        planned=trials,
        passed=tally[RunVerdict.CONFORMS.value],
        failed=tally[RunVerdict.FAILS.value],
        unjudged=tally[RunVerdict.INCONCLUSIVE.value],
        passed_first=tally[RunVerdict.CONFORMS.value],
        judged_share=judged / max(tally.total(), 1),
        complete=tally.total() == trials,
        isolation=Isolation.CONFINED,
        missing=missing,
        seconds=time.monotonic() - began,
    )


def _checked(arrays: Mapping[str, str], known: JudgedDocument) -> dict[str, str]:
    """Those of the caller, by the C name of each parameter. UsageError for what is none, and without a gradient."""
    for name in arrays:
        if name not in known.names:
            takes = ", ".join(item.name for item in known.spec.parameters)
            raise UsageError(
                f"arrays: {quote(name)}: {known.spec.operator} takes {takes}{did_you_mean(name, known.names)}"
            )
    named = {known.names[name]: value for name, value in arrays.items()}
    if not _gradients({**_USUAL, **named}, [item.name for item in known.spec.parameters]):
        operator = known.spec.operator
        raise UsageError(f"arrays: no output of {operator} is a gradient of the module; name one, as d.input0")
    return named


def _gradients(chosen: Mapping[str, str], parameters: Sequence[str]) -> list[str]:
    """The gradients among the arrays that parameters are."""
    return [chosen[name] for name in parameters if chosen.get(name, "").startswith("d.")]


def _held(
    operator: str, parameters: list[str], made: BackwardPass, given: Mapping[str, Any], named: Mapping[str, str]
) -> CheckResult:
    """A backward pass against the document; `named`: which array a parameter is where the caller says it."""
    for name, array in named.items():
        # A gradient that does not come is the module's mistake.
        if array.removeprefix("d.") not in made.arrays:
            raise UsageError(f"arrays: {name}: {quote(array)}; expected one of {', '.join(made.arrays)}")
    chosen = {**_USUAL, **named}
    found = {name: made.arrays[chosen[name]] for name in parameters if chosen.get(name) in made.arrays}
    outputs = {name: array for name, array in found.items() if chosen[name].startswith("d.")}
    inputs = {name: array for name, array in found.items() if name not in outputs}
    if not outputs:
        reason = f"no gradient reaches {_gradients(chosen, parameters)[0].removeprefix('d.')}"
        return CheckResult(
            ok=False, verdict=RunVerdict.FAILS.value, operator=operator, reason=reason, fault=str(Fault.UNWRITTEN)
        )
    return check(operator, {**inputs, **given}, outputs)


def _finding(found: CheckResult, trial: int) -> CandidateFinding:
    ratio = 0.0 if found.worst is None else found.worst.error_ratio
    return CandidateFinding(
        fault=found.fault, sentence=found.reason, clause=found.clause, error_ratio=ratio, trial=str(trial)
    )
