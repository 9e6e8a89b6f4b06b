"""A test of the gate, what all of them come to, and the last lines on the terminal."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aclnn_cts.core.printable import quote

if TYPE_CHECKING:
    from aclnn_cts.findings.waivers.file import Waiver
    from aclnn_cts.runs.gate import Gate, GateResult
    from aclnn_cts.speclang.model import Spec


PROPERTY = "aclnn-cts"
"""What a test came to, as JSON among its properties: xdist and JUnit files carry it."""

EMPTY = "aclnn-cts-empty"
"""Where a process of xdist says why it selected nothing."""


def tell(node: Any, **facts: object) -> None:  # noqa: ANN401 - pytest does not name the class
    """Hand facts of a test to the process that reports; as text, since xdist carries no more."""
    node.user_properties.append((PROPERTY, json.dumps(facts)))


@dataclass(slots=True, eq=False)  # pytest keeps its plugins in sets
class Report:
    """Adds up what the tests told; a plugin of the process that reports."""

    adapter: str
    numbers: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("judged", "passed", "failed", "accepted", "errors"), 0)
    )
    """Of trials, by result; `accepted` are failures that waivers accept."""
    unnamed: tuple[str, ...] = ()
    """Changed files that name no operator, where changes decide what is tested."""
    known: dict[str, int] = field(default_factory=dict)
    """Tests in which a finding of the baseline failed again, by its name."""
    sarif: Path | None = None
    """Where findings are written as SARIF when the tests have ended."""
    failures: Path | None = None
    """The folder that the user named for trial files, which is the baseline of later gates."""
    findings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What is written there of each finding, by its file."""
    pinned: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("passed", "failed"), 0))
    """Of cases that waivers pin."""
    waived: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    outside: dict[str, int] = field(default_factory=dict)
    """Trials out of scope, by what the adapter does not offer."""
    verdicts: dict[str, int] = field(default_factory=dict)
    """Tests by verdict; those on which nothing is to be judged have none."""
    waivers: Sequence[Waiver] = ()
    """Those that the gate was given."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """What the tests say of waivers, as `WaiverCounts` is written."""
    ignored: str = ""
    """The line about waivers for other versions of the implementation."""
    empty: str = ""
    """Why the selection rightly left no test."""
    refusal: int | None = None
    """The exit code where the implementation could not be opened."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a test told; the report of its teardown carries that of all its phases."""
        crash = getattr(report.longrepr, "reprcrash", None)
        if crash is not None and any(name == PROPERTY for name, _ in report.user_properties):
            # Findings are told whole above; under CI pytest's short summary would tell them a second time.
            crash.message = crash.message.partition("\n")[0]
        if report.when != "teardown":
            return
        for name, text in report.user_properties:
            if name == PROPERTY:
                self._add(json.loads(str(text)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # noqa: ANN401 - xdist's own
        """Take what a process of xdist says of its selection, which is that of all."""
        self.empty = getattr(node, "workeroutput", {}).get(EMPTY, self.empty)

    def _add(self, facts: dict[str, Any]) -> None:
        self.refusal = facts.pop("refusal", self.refusal)
        self.ignored = facts.pop("ignored", self.ignored)
        self.findings.update({item["file"]: item for item in facts.pop("findings", [])})
        for name, found in facts.pop("evidence", {}).items():
            if isinstance(found, dict):
                self.evidence.setdefault(name, {}).update(found)
            else:
                self.evidence.setdefault(name, []).extend(found)
        for total, numbers in (
            (self.waived, facts.pop("waived", {})),
            (self.skipped, facts.pop("skipped", {})),
            (self.outside, facts.pop("outside", {})),
            (self.verdicts, facts.pop("verdicts", {})),
            (self.pinned, facts.pop("pinned", {})),
            (self.known, facts.pop("known", {})),
            (self.numbers, facts),
        ):
            for key, number in numbers.items():
                total[key] = total.get(key, 0) + number

    def _verdict(self) -> str:
        """The worst verdict of the tests, in words."""
        from aclnn_cts.core.verdict import RunVerdict
        from aclnn_cts.store.run_verdict import scope_text, worst_verdict

        found = [RunVerdict(name) for name, number in self.verdicts.items() if number]
        said = f"verdict of the selected tests: {worst_verdict(found).value}"
        alone = "all its findings are of the baseline" if self.known and not self.findings else ""
        return "; ".join(part for part in (said, alone, scope_text(self.outside)) if part)

    def _notices(self) -> tuple[str, ...]:
        """What owners of waivers should know."""
        import msgspec

        from aclnn_cts.findings.waivers.matching import WaiverCounts

        evidence = msgspec.convert(self.evidence, WaiverCounts)
        return evidence.report(self.waivers, ignored=self.ignored).notices()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A gate on which nothing was judged does not pass."""
        if self.empty and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        if session.config.getoption("--collect-only"):
            return
        if self.refusal is not None:
            session.exitstatus = self.refusal
        if self.sarif is not None and self.refusal is None:
            # By its name: the libraries of the report are an extra.
            form = importlib.import_module("aclnn_cts.reports.judgements").gate_sarif
            self.sarif.write_bytes(form([self.findings[name] for name in sorted(self.findings)]))
        ended = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if self.failures is not None and self.refusal is None and session.exitstatus in ended:
            from aclnn_cts.runs.baseline import write_mark

            write_mark(self.failures, findings=len(self.findings))
        if self.refusal is None and exitstatus == pytest.ExitCode.OK and not self.numbers["judged"]:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Counts over all tests, and what was waived."""
        if config.getoption("--collect-only") or self.refusal is not None:
            return
        terminalreporter.section(f"conformance of {self.adapter}")
        if self.empty:
            terminalreporter.write_line(f"nothing was selected: {self.empty}")
            return
        terminalreporter.write_line(self._verdict())
        skipped, outside = (
            ", ".join(f"{number} {reason}" for reason, number in sorted(counts.items())) or "none"
            for counts in (self.skipped, self.outside)
        )
        failed = f"{self.numbers['failed']} failed ({self.numbers['accepted']} of these waived)"
        terminalreporter.write_line(
            f"trials: {self.numbers['passed']} passed, {failed}, {self.numbers['errors']} errors; "
            f"skipped: {skipped}; out of scope: {outside}"
        )
        if any(self.pinned.values()):
            told = ", ".join(f"{number} {word}" for word, number in self.pinned.items())
            terminalreporter.write_line(f"cases that waivers pin: {told}")
        if self.known:
            names = ", ".join(name.removesuffix(".json") for name in sorted(self.known))
            terminalreporter.write_line(f"findings of the baseline, which fail no test: {names}")
        if self.unnamed:
            one = "1 changed file names"
            said = one if len(self.unnamed) == 1 else f"{len(self.unnamed)} changed files name"
            terminalreporter.write_line(f"{said} no operator, such as {quote(self.unnamed[0])}")
        for waiver, number in sorted(self.waived.items()):
            terminalreporter.write_line(f"waived by {waiver}: {number}")
        for notice in self._notices():
            terminalreporter.write_line(notice)
        if not self.numbers["judged"]:
            terminalreporter.write_line("nothing was judged: the gate does not pass")


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
        from aclnn_cts.core.verdict import SkipReason
        from aclnn_cts.runs.gate import PINNED

        product = self._gate.options.settings.target.product
        if product not in self._spec.products:
            tell(self._request.node, skipped={SkipReason.UNSUPPORTED: 1})
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
            known=dict.fromkeys(result.known, 1),
            findings=list(map(self._gate.sarif_facts, result.findings)),
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
