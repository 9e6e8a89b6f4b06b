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

from aclnn_cts.core.errors import UsageError, nearest
from aclnn_cts.core.outside import DOCUMENT_BYTES, read_outside
from aclnn_cts.core.printable import printable
from aclnn_cts.core.verdict import Record
from aclnn_cts.findings.shared_condition import SharedCondition, condition_in_run
from aclnn_cts.store.manifest import Manifest
from aclnn_cts.store.output_file import begins
from aclnn_cts.store.run_directory import RunDirectory, failure_name
from aclnn_cts.store.store_reader import Finding, Query

_WIDTH = 118
_MESSAGES = 3
"""Messages of failures that the draft quotes, the worst first."""
_FILL_IN = (
    ("reason", "why the failure is accepted: what the implementation does otherwise, and where it does not"),
    ("owner", "who answers for it: a person or a team"),
    ("expiry", "the last day on which it holds, as 2027-01-31"),
)
UNFILLED_DRAFT = begins(
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
        known = {failure_name(entry.key): entry for entry in results.findings()}
        if finding.name not in known:
            raise UsageError(
                f"{finding}: the run has no such finding; `failures` in {run.path} holds them"
                f"{nearest(finding.name, known)}"
            )
        entry = known[finding.name]
        query = Query(fingerprint=entry.key)
        records = list(results.records(query, worst_first=True, limit=_MESSAGES))
        shared = condition_in_run(results, [entry.key])
        # A campaign takes failures of several checks and kinds together.
        checks = [str(name) for (name,) in results.tally("check_id", query=query)]
        kinds = [str(kind) for (kind,) in results.tally("fault", query=query)]
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
                scope=_scope(run.manifest, entry, records, checks=checks, kinds=kinds),
                shared=shared,
            )
        )
        + "\n",
        case=case,
        case_name=name,
        waived_by=tuple(dict.fromkeys(record.waiver for record in records if record.waiver)),
    )


def _lines(
    run: RunDirectory,
    entry: Finding,
    records: list[Record],
    identifier: str,
    pinned: str,
    *,
    scope: Mapping[str, str | list[str]],
    shared: SharedCondition | None,
) -> list[str]:
    within = "      "
    failing = "1 trial fails" if entry.number == 1 else f"{entry.number} trials fail"
    return [
        *_comment(
            f"Drafted from {run.path}, where {failing} like this. It is refused until reason, owner and expiry are"
            " filled in; docs/waivers.md describes every key."
        ),
        *(line for record in records for line in _comment(f"{record.trial_id[:12]}: {record.verdict.message}")),
        "",
        f"subject: {_scalar(f'{run.manifest.adapter}: {entry.key.operator}')}",
        "",
        "waivers:",
        f"  - id: {_scalar(identifier)}",
        "    scope:",
        *(f"{within}{key}: {_scalar(value)}" for key, value in scope.items()),
        *_comment(
            "when: an expression over the arguments that holds of the cases that fail alone, such as"
            " not contiguous(out) or numel(out) > 4096 (docs/spec-format.md, Expressions)",
            indent=within,
        ),
        *(() if shared is None else _shared(shared, within)),
        *(f"    {key}:  # {what}" for key, what in _FILL_IN),
        "    # reason_zh: the reason in Chinese, for the Chinese page of the report",
        "    # link: where it is tracked",
        f"    cases: [{_scalar(pinned)}]",
    ]


def _shared(shared: SharedCondition, indent: str) -> list[str]:
    said = _comment(f"What failures share: {shared.en}. To waive these alone, add:", indent=indent)
    return [*said, f"{indent}# when: {_scalar(shared.when)}"]


def _scope(
    manifest: Manifest, entry: Finding, records: list[Record], *, checks: list[str], kinds: list[str]
) -> dict[str, str | list[str]]:
    key = entry.key
    scope: dict[str, str | list[str]] = {
        "adapter": manifest.adapter,
        "version": _version(manifest),
        "operator": key.operator,
        "check": checks if len(checks) > 1 else checks[0],
        "constraint": key.clause,
        "product": records[0].trial.case.product,
        "dtype": key.dtype,
        "mode": key.mode,
        "output": key.output,
        "kind": kinds if len(kinds) > 1 else kinds[0],
    }
    return {key: value for key, value in scope.items() if value}


def _version(manifest: Manifest) -> str:
    """The version of the library on which it was seen; empty where it is not known, or is no version."""
    fact = manifest.environment.get("adapter.version")
    try:
        return f"=={Version(str(fact.value)).public}" if fact is not None else ""
    except InvalidVersion:
        return ""


def _identifier(manifest: Manifest, entry: Finding) -> str:
    """Adapter, operator and what is wrong, as ids of waivers are spelled, and a part of the finding's own name."""
    key = entry.key
    operator = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", key.operator.removeprefix("aclnn"))
    words = [manifest.adapter.partition(",")[0], operator, f"{key.output} {key.fault}"]
    slugs = [re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") for word in words]
    digest = failure_name(key).removesuffix(".json").rpartition("-")[2][:4]
    return f"{'.'.join(slug for slug in slugs if slug)}-{digest}"


def _scalar(value: str | list[str]) -> str:
    """A string, or a list of some, as YAML spells it on one line."""
    words = value if isinstance(value, list) else [value]
    plain = all(printable(word) == word for word in words)
    text: Any = yaml.safe_dump(value, allow_unicode=plain, width=10**6, default_flow_style=True)
    return str(text).removesuffix("\n").removesuffix("...").strip()


def _comment(text: str, *, indent: str = "") -> list[str]:
    plain = "".join(character if character.isprintable() else " " for character in text)
    return textwrap.wrap(plain, _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")
