"""A waiver drafted from a finding: its scope is what the records tell; why, who and until when is for a person."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.version import InvalidVersion, Version

from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.finding import Finding, SharedCondition, failure_name
from aclnn_cts.core.outside import DOCUMENT_BYTES, read_outside
from aclnn_cts.core.printable import printable
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.findings.findings import FindingIndex, findings_of
from aclnn_cts.findings.waivers.matching import BINDING
from aclnn_cts.store.manifest import Manifest
from aclnn_cts.store.output_file import begins_with
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.store_reader import Query

_WIDTH = 118
_MESSAGES = 3
"""Messages of failures that the draft quotes, the worst first."""
_FILL_IN = (
    ("reason", "why the failure is accepted: what the implementation does otherwise, and where it does not"),
    ("owner", "who answers for it: a person or a team"),
    ("expiry", "the last day on which it holds, as 2027-01-31"),
)
UNFILLED_DRAFT = begins_with(
    b"# Drafted from .*?\n" + b"\n".join(re.escape(f"    {key}:  # {what}").encode() for key, what in _FILL_IN)
)
"""Drafts that nobody has filled in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverDraft:
    """The text of a waiver file, which is refused until a person has filled it in."""

    id: str
    text: str
    case: bytes
    """The trial file that the draft pins."""
    case_name: str
    waived_by: tuple[str, ...]
    """Waivers that speak for failures of the finding already."""


def draft_waiver(finding: Path, *, pinned: str) -> WaiverDraft:
    """Draft a waiver for a finding, a trial file in the `failures` folder of a run directory.

    `pinned` is how the draft names the trial file that runs first in every run, `{name}` standing for its name. Raises
    UsageError where the file is none of a run's findings.
    """
    if finding.is_dir() or finding.parent.name != "failures":
        raise UsageError(
            f"{finding}: no finding; expected one of the trial files in the folder `failures` of a run directory"
        )
    run = RunDirectory(finding.parent.parent)
    with run.results() as results:
        findings = findings_of(results)
        known = {entry.file: number for number, entry in enumerate(findings)}
        if finding.name not in known:
            raise UsageError(
                f"{finding}: the run has no such finding; `failures` in {run.path} holds them"
                f"{did_you_mean(finding.name, known)}"
            )
        number = known[finding.name]
        entry, index = findings[number], FindingIndex(findings)
        failed = results.records(Query(result=Result.FAILED, operator=entry.key.operator), worst_first=True)
        records = [record for record in failed if index.number_of(record) == number]
    case = read_outside(finding, limit=DOCUMENT_BYTES, expected="a trial file of a run")
    identifier = _identifier(run.manifest, entry)
    name = f"{identifier.replace('.', '-')}.json"
    return WaiverDraft(
        id=identifier,
        text="\n".join(
            _lines(
                run,
                entry,
                records,
                identifier,
                pinned.replace("{name}", name),
                scope=_scope(run.manifest, entry, records),
            )
        )
        + "\n",
        case=case,
        case_name=name,
        waived_by=(entry.waiver,) if entry.waiver else (),
    )


def _lines(
    run: RunDirectory,
    entry: Finding,
    records: list[Record],
    identifier: str,
    pinned: str,
    *,
    scope: Mapping[str, str | list[str]],
) -> list[str]:
    within = "      "
    failing = "1 trial fails" if entry.failures == 1 else f"{entry.failures} trials fail"
    return [
        *_comment(
            f"Drafted from {run.path}, where {failing} like this. It is refused until reason, owner and expiry are"
            " filled in; docs/waivers.md describes every key."
        ),
        *(
            line
            for record in records[:_MESSAGES]
            for line in _comment(f"{record.trial_id[:12]}: {record.verdict.message}")
        ),
        "",
        f"subject: {_scalar(f'{run.manifest.adapter}: {entry.key.operator}')}",
        "",
        "waivers:",
        f"  - id: {_scalar(identifier)}",
        "    scope:",
        *(f"{within}{key}: {_scalar(value)}" for key, value in scope.items()),
        *(_proposed(entry.condition, within)),
        *(f"    {key}:  # {what}" for key, what in _FILL_IN),
        "    # reason_zh: the reason in Chinese, for the Chinese page of the report",
        "    # link: where it is tracked",
        f"    cases: [{_scalar(pinned)}]",
    ]


def _proposed(shared: SharedCondition | None, indent: str) -> list[str]:
    """The predicate that narrows the scope to what failures share and passing calls do not, or how to write one."""
    if shared is None:
        return _comment(
            "when: an expression over the arguments that holds of the cases that fail alone, such as"
            " not contiguous(out) or numel(out) > 4096 (docs/spec-expressions.md, Expressions)",
            indent=indent,
        )
    said = _comment(f"What failures share: {shared.en}. Other failures are not waived.", indent=indent)
    return [*said, f"{indent}when: {_scalar(shared.when)}"]


def _scope(manifest: Manifest, entry: Finding, records: list[Record]) -> dict[str, str | list[str]]:
    def of_failures(*words: str) -> str | list[str]:
        """What failures have, a list where they differ; empty where one of them has none."""
        found = sorted(set(words))
        return "" if not all(found) else found[0] if len(found) == 1 else found

    key = entry.key
    found = entry.fingerprints
    scope: dict[str, str | list[str]] = {
        "adapter": manifest.adapter,
        "version": _version(manifest),
        "operator": key.operator,
        "binding": _fact(manifest, BINDING + key.operator),
        "check": of_failures(*(record.trial.check for record in records)),
        "constraint": of_failures(*(item.clause for item in found)),
        "product": records[0].trial.case.product,
        "dtype": of_failures(*(item.dtype for item in found)),
        "mode": of_failures(*(item.mode for item in found)),
        "output": of_failures(*(item.output for item in found)),
        "kind": of_failures(*(str(record.verdict.kind) for record in records)),
    }
    return {key: value for key, value in scope.items() if value}


def _version(manifest: Manifest) -> str:
    """The version of the library on which it was seen; empty where it is not known, or is no version."""
    try:
        return f"=={Version(version).public}" if (version := _fact(manifest, "version")) else ""
    except InvalidVersion:
        return ""


def _fact(manifest: Manifest, name: str) -> str:
    """What the adapter said of itself under a name; empty where it said nothing."""
    fact = manifest.environment.get(f"adapter.{name}")
    return str(fact.value) if fact is not None else ""


def _identifier(manifest: Manifest, entry: Finding) -> str:
    """Adapter, operator and what is wrong, as ids of waivers are spelled, and a part of the finding's own name."""
    key = entry.key
    operator = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", key.operator.removeprefix("aclnn"))
    words = [manifest.adapter.partition(",")[0], operator, f"{key.output} {key.fault}"]
    slugs = [re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") for word in words]
    digest = failure_name(key).removesuffix(".json").rpartition("-")[2][:4]
    which = f"-{entry.number}" if entry.number > 1 else ""
    return f"{'.'.join(slug for slug in slugs if slug)}-{digest}{which}"


def _scalar(value: str | list[str]) -> str:
    """A string, or a list of some, as YAML spells it on one line."""
    words = value if isinstance(value, list) else [value]
    plain = all(printable(word) == word for word in words)
    text: Any = yaml.safe_dump(value, allow_unicode=plain, width=10**6, default_flow_style=True)
    return str(text).removesuffix("\n").removesuffix("...").strip()


def _comment(text: str, *, indent: str = "") -> list[str]:
    plain = "".join(character if character.isprintable() else " " for character in text)
    return textwrap.wrap(plain, _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")
