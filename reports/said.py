"""What a failure is, said in Chinese: a sentence from its figures, beside which its recorded English message stands.

Numbers look as they do in that message.
"""

from __future__ import annotations

from collections.abc import Mapping

from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.outcome import Ended
from aclnn_cts.core.printable import number_text
from aclnn_cts.core.verdict import Deviation, ToleranceVerdict
from aclnn_cts.reports.model.acceptance_findings import FindingCard
from aclnn_cts.reports.text import phrase, said, share_text

_VALUES = Fault.of(Family.VALUES, Family.LAW) | {Fault.LIMIT_VALUE}
_ENDS = frozenset({Ended.SIGNAL, Ended.EXIT, Ended.MEMORY_LIMIT, Ended.DEVICE_FAULT})


def chinese_message(card: FindingCard) -> str:
    """The smallest case's failure in a sentence or two; the meaning of its kind where no figures are recorded."""
    text = _sentence(card)
    facts = card.fault
    if facts.call and facts.calls > 1 and card.record.verdict.kind not in (Fault.STATUS, Fault.LEAK):
        text += said("call", calls=facts.calls, call=facts.call)
    return text


def _sentence(card: FindingCard) -> str:
    kind, facts = card.record.verdict.kind, card.fault
    outcome, state = facts.outcome, facts.state
    worst = _worst(card)
    if kind in _VALUES:
        if worst is None:
            return _meaning(card)
        text = _element(worst, of_law=card.record.trial.check.startswith("law/"))
        if kind == Fault.MODEL:
            text += said("model", basis=phrase(f"basis.{facts.basis or 'unknown'}", "zh"))
        return said("limit", constraint=card.constraint) + text if kind == Fault.LIMIT_VALUE else text
    if kind == Fault.TOLERANCE:
        failed = dict.fromkeys(
            item.tolerance
            for outputs in card.record.verdict.tolerances.values()
            for item in outputs.values()
            if item.verdict == ToleranceVerdict.FAIL
        )
        return said("tolerance", output=card.output, tolerances="、".join(failed)) if failed else _meaning(card)
    if kind in (Fault.STATUS, Fault.REJECTED):
        return _status(card)
    if kind == Fault.CRASH:
        return said(outcome.ended if outcome.ended in _ENDS else "crash", signal=outcome.signal)
    figures: Mapping[str, tuple[str, dict[str, object]]] = {
        Fault.HANG: ("hang", {"seconds": number_text(outcome.seconds)}),
        Fault.UNWRITTEN: ("unwritten", {"number": state.unwritten}),
        Fault.SHAPE: ("shape", {"form": facts.form}),
        Fault.DTYPE: ("dtype", {"form": facts.form}),
        Fault.GUARD: ("guard", {"before": state.guard_before, "after": state.guard_after, "gap": state.gap}),
        Fault.INPUT: ("input", {"number": state.changed}),
        Fault.LEAK: ("leak", {"number": facts.grown}),
    }
    known = figures.get(kind)
    if known is None or not facts.call or (kind in (Fault.SHAPE, Fault.DTYPE) and not facts.form):
        return _meaning(card)
    return said(known[0], output=card.output, **known[1])


def _element(worst: Deviation, *, of_law: bool) -> str:
    special = isinstance(worst.got, str) or isinstance(worst.expected, str)
    name = "law" if of_law else "special" if special else "value" if worst.bound else "exact"
    return said(
        name,
        place=worst.place,
        got=number_text(worst.got, 9),
        expected=number_text(worst.expected, 9),
        bound=number_text(worst.bound),
        share=share_text(worst.share),
        beyond=worst.beyond,
        elements=worst.elements,
    )


def _status(card: FindingCard) -> str:
    facts = card.fault
    if not facts.call:
        return _meaning(card)
    names = {"constraint": card.constraint, "returned": facts.returned, "promised": " / ".join(facts.promised)}
    if card.record.verdict.kind == Fault.REJECTED:
        return said("rejected" if facts.returned else "raised", **names)
    if not facts.returned:
        return said("status_raised", **names)
    return said("phase_two" if facts.returned in facts.promised else "status", **names)


def _worst(card: FindingCard) -> Deviation | None:
    named = [element for element in card.record.verdict.deviations if element.output == card.output]
    return next(iter(named or [element for element in card.record.verdict.deviations if element.beyond]), None)


def _meaning(card: FindingCard) -> str:
    return phrase(f"fault.{card.record.verdict.kind}", "zh") + "。"
