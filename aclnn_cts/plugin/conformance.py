"""What a suite's test asks for: one check of one operator, tried on the opened implementation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from aclnn_cts.plugin.report import tell

if TYPE_CHECKING:
    from aclnn_cts.runs.gate import Gate, GateResult
    from aclnn_cts.speclang.model import Spec

SHOWN = 4
"""Findings, and trials without a verdict, that a failing test tells whole."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no gate, and the exit code of that."""

    message: str
    code: int


class Conformance:
    """One check of one operator."""

    def __init__(self, gate: Gate, spec: Spec, check: str, request: pytest.FixtureRequest) -> None:
        self._gate, self._spec, self._check, self._request = gate, spec, check, request

    def check(self) -> None:
        """Try the check; fails the test with what was found, skips it where nothing was judged."""
        import msgspec

        from aclnn_cts.core.errors import HarnessError, UsageError
        from aclnn_cts.core.verdict import Skip
        from aclnn_cts.runs.gate import PINNED

        product = self._gate.options.settings.target.product
        if product not in self._spec.products:
            tell(self._request.node, skipped={Skip.UNSUPPORTED: 1})
            pytest.skip(f"{self._spec.operator}: {product} is not supported")
        try:
            result = self._gate.check(self._spec, self._check)
        except (HarnessError, UsageError) as error:
            tell(self._request.node, errors=1)
            pytest.fail(str(error), pytrace=False)
        counts = result.counts
        numbers = {"passed": counts.passed, "failed": counts.failed}
        pinned = self._check.startswith(PINNED)
        tell(
            self._request.node,
            # Cases that waivers pin are counted apart, here as everywhere.
            **({"pinned": numbers} if pinned else {**numbers, "judged": counts.judged, "accepted": counts.waived}),
            errors=counts.errors,
            waived=result.summary.waivers,
            skipped=counts.skipped_by_reason,
            outside=counts.out_of_scope_by_reason,
            verdicts={result.summary.verdict.value: 1} if counts.counted and not pinned else {},
            evidence=msgspec.to_builtins(self._gate.news()),
            ignored=self._gate.waivers.ignored,
        )
        if messages := list(self._messages(result)):
            pytest.fail("\n\n".join(messages), pytrace=False)
        if result.beside:
            pytest.skip(result.beside)
        if not counts.judged:
            left = {**counts.skipped_by_reason, **counts.out_of_scope_by_reason}
            reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(left.items()))
            pytest.skip(f"nothing is to be judged: {reasons or 'no trial could be generated'}")

    def _messages(self, result: GateResult) -> Iterator[str]:
        yield from (note.text for note in self._gate.waivers.report().violations())
        yield from result.errors[:SHOWN]
        if len(result.errors) > SHOWN:
            yield f"... and {len(result.errors) - SHOWN} more trials without a verdict"
        for finding in result.findings[:SHOWN]:
            yield "\n".join(self._gate.describe(finding, self._spec))
        if len(result.findings) > SHOWN:
            yield f"... and {len(result.findings) - SHOWN} more findings"
        if result.unjudged:
            yield "\n".join(result.unjudged)
