"""Sentinels: one known-good call of each operator tells a broken installation or device from a broken call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case import Case, Origin
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.core.trial import Trial
from aclnn_cts.execution.executor import lend_buffers
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.judgement.verdict import status_text
from aclnn_cts.sandbox.host import DeviceCheck, SessionHost
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.registry import EXAMPLE
from aclnn_cts.trials.plan import Part

_STREAM = "sentinel"
_TRIES = 200
_BUDGET = 64
"""Most elements of a tensor."""


def sentinel_case(sampler: Sampler) -> Case:
    """The known-good call of an operator (`sentinel_trial`)."""
    return sentinel_trial(sampler).case


def sentinel_trial(sampler: Sampler) -> Trial:
    """The document's own example, where that keeps all rules of its document; else a small valid call.

    The latter has contiguous tensors that are not empty, and nothing about it is left open. Raises HarnessError where
    no draw gives one.
    """
    spec = sampler.spec
    for trial in EXAMPLE.trials(Part(spec.operator, EXAMPLE.id, EXAMPLE.id), sampler, seed=0):
        if not evaluate(spec, trial.case).broken:
            return trial
    return Trial("values", _drawn(sampler))


def _drawn(sampler: Sampler) -> Case:
    spec = sampler.spec
    stream = f"{spec.operator}/{sampler.target.product}/{_STREAM}"
    for number in range(_TRIES):
        drawing = sampler.draw(StreamChoices(0, stream, number), budget=_BUDGET)
        case = sampler.case(drawing, origin=Origin(kind="valid"))
        plain = all(tensor.is_contiguous and tensor.offset == 0 and tensor.numel for _, tensor in case.tensors())
        if plain and not evaluate(spec, case).broken:
            return case
    raise HarnessError(f"{spec.path}: none of {_TRIES} drawn calls is small, contiguous and valid; see its draws")


def refused_sentinels(
    host: SessionHost, cases: Iterable[Case], specs: Mapping[str, Spec], *, phases: int
) -> dict[str, str]:
    """What came back instead of success, by operator. One that the implementation does not have is left out."""
    return {operator: what for operator, what in _answers(host, cases, specs, phases=phases).items() if what}


def _answers(host: SessionHost, cases: Iterable[Case], specs: Mapping[str, Spec], *, phases: int) -> dict[str, str]:
    """What came back instead of success, empty where success did, by operator that the implementation has."""
    calls = [_call(host, specs[case.operator], case, phases) for case in cases]
    return {
        call.case.operator: ""
        if outcome.ended == CallEnd.RETURNED and not outcome.status
        else _describe_outcome(outcome)
        for call, outcome in zip(calls, host.run(calls), strict=True)
        if outcome.ended != CallEnd.INEXPRESSIBLE
    }


def rejection_text(operator: str, trial: Trial, what: str) -> str:
    """What a person is told of an operator that rejects its sentinel where statuses alone are judged."""
    call = f"the example of {trial.case.origin.source}" if trial.check == EXAMPLE.id else "a known-good call"
    return (
        f"{operator}: rejects {call} ({what}), so that negative tests would be meaningless. It is a finding, and "
        "nothing else of the operator is tried. Check that the operator package matches the device and --product"
    )


def device_check(host: SessionHost, specs: Mapping[str, Spec], *, phases: int) -> DeviceCheck:
    """What a host asks after a fault of the device: which calls that succeeded before fail, where all of them do."""

    def check(cases: Sequence[Case]) -> str:
        answers = _answers(host, cases, specs, phases=phases)
        if not answers or not all(answers.values()):
            return ""
        operator, what = next(iter(answers.items()))
        return f"every call that succeeded before, such as one of {operator}: {what}"

    return check


def _call(host: SessionHost, spec: Spec, case: Case, phases: int) -> Call:
    if phases == 1 or case.call.phases == 1:
        return Call(case)
    return Call(case, lend_buffers(host, spec, case, case_arrays(case, spec.given_inputs(case))))


def _describe_outcome(outcome: Outcome) -> str:
    what = status_text(outcome) if outcome.ended == CallEnd.RETURNED else outcome.ended
    said = outcome.message.strip().partition("\n")[0]
    return f"{what}{': ' + said if said else ''}"
