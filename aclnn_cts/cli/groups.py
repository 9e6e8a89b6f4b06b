"""The groups of commands: `aclnn-cts spec`, `oracle` and `waive`."""

from __future__ import annotations

from aclnn_cts.cli.lazy import CommandEntry, LazyGroup

oracle = LazyGroup(
    name="oracle",
    help="Check the oracles against what their formulas derive.",
    entries=(
        CommandEntry("check", "aclnn_cts.cli.oracle_check:check", "Check oracles against what their formulas derive."),
    ),
)
spec = LazyGroup(
    name="spec",
    help="Show, draft, audit and check the specs of operators.",
    entries=(
        CommandEntry("show", "aclnn_cts.cli.spec_show:show", "Show what the document of an operator demands."),
        CommandEntry("draft", "aclnn_cts.cli.spec_draft:draft", "Draft a spec from an operator's document."),
        CommandEntry(
            "audit", "aclnn_cts.cli.spec_audit:audit", "List the statements of a document that no clause has."
        ),
        CommandEntry("lint", "aclnn_cts.cli.spec_lint:lint", "Check spec files; mistakes with file and line."),
    ),
)
waive = LazyGroup(
    name="waive",
    help="Draft waivers: known failures that a person answers for until a day.",
    entries=(CommandEntry("add", "aclnn_cts.cli.waive_add:add", "Draft a waiver for a finding."),),
)
