"""A run in one file: what was found, and everything that it takes to check it without a device."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from aclnn_cts.bundle.archive import Source, archive_bytes, bad_name, source_of
from aclnn_cts.bundle.statement import (
    BLOBS,
    LOOKED_INTO,
    MANIFEST_LIMIT,
    MANIFEST_NAME,
    SIGNATURE_NAME,
    Contents,
    Predicate,
    Signer,
    Statement,
    Subject,
    envelope_bytes,
    limit_of,
    record_schema,
    record_to_json,
    signed_bytes,
    statement_bytes,
)
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outside import YAML_BYTES
from aclnn_cts.core.printable import shown
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record
from aclnn_cts.repro import SUFFIXES
from aclnn_cts.repro.write import Programs, languages_of
from aclnn_cts.speclang.binding import check_prototype
from aclnn_cts.speclang.load import specs_from_texts
from aclnn_cts.store.case_files import read_case_file
from aclnn_cts.store.manifest import product_of, ran_on
from aclnn_cts.store.output_file import OutputFile, begins, storage_failure
from aclnn_cts.store.run_directory import RunDirectory, read_own

BUNDLE = begins(
    rb'PK\x03\x04.{26}MANIFEST\.json\{"_type":"https://in-toto\.io/Statement/v1","predicate":\{.{0,2000}?'
    rb'"format":"aclnn-cts/bundle/'
)
"""Files of `write_bundle`."""
RECORDS_LIMIT = 32 * 1024 * 1024
"""Bytes of one file of records."""
SCHEMA_NAME = "schemas/record.schema.json"

MakeReport = Callable[[Path], bytes]
"""From a run directory to its report, one HTML file. Raises HarnessError where it cannot be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a bundle came to."""

    entries: int
    size: int
    records: int
    signer: str
    left_out: Mapping[str, str]


@dataclass(slots=True)
class _Staging:
    """Gathers entries; what does not fit the memory lies in a folder of its own."""

    folder: Path
    sources: list[Source] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    records: int = 0
    digests: set[str] = field(default_factory=set)
    """Of recorded outputs, by the records."""
    statuses: bool = False

    def add(self, name: str, content: bytes | Path) -> None:
        if bad_name(name):
            raise HarnessError(
                f"{shown(name)}: no name that every program can unpack; rename the file in the run directory"
            )
        source = source_of(name, content)
        size = source.member.size
        if size > limit_of(name) and name.partition("/")[0] in LOOKED_INTO:
            raise HarnessError(
                f"{name}: has {size} bytes; `verify` reads at most {limit_of(name)} of an entry of its kind"
            )
        self.sources.append(source)

    def see(self, record: Record) -> None:
        """Note what a record tells on its way."""
        self.records += 1
        for attempt in record.attempts[:1]:
            for outcome in attempt:
                self.statuses = self.statuses or outcome.phase_one is not None
                self.digests.update(state.sha256 for state in outcome.buffers.values() if state.sha256)


def write_bundle(
    run: RunDirectory,
    out: OutputFile,
    *,
    signer: Signer | None = None,
    make_report: MakeReport | None = None,
    spec_folders: Sequence[Path] = (),
) -> Written:
    """Write the bundle of a finished run. The same run gives the same bytes.

    `spec_folders`: where the oracles of operators of the user's own lie; their Python runs. Those that the run's
    manifest names are not looked at, since anybody may have written it.

    Raises UsageError where the run is not finished, HarnessError where it is damaged or the file cannot be written.
    """
    if not run.finished:
        raise UsageError(f"{run.path}: the run has not finished; let it end, or resume it, and bundle it then")
    # First, so that nothing of a run is gathered that is none.
    manifest, summary = run.manifest, run.summary()
    try:
        staged = tempfile.TemporaryDirectory(prefix=".aclnn-cts-bundle-", dir=out.folder)
    except OSError as error:
        raise storage_failure(out.path, error) from error
    key_id = signer.key_id if signer is not None else ""
    with staged as folder:
        staging = _Staging(Path(folder))
        _add_records(run, staging)
        _add_blobs(run, staging)
        _add_files(run, staging)
        _add_programs(run, staging, spec_folders)
        report = _add_report(run, staging, make_report)
        sources = sorted(staging.sources, key=lambda source: source.member.name)
        statement = Statement.of(
            tuple(Subject.of(source.member.name, source.sha256, source.member.size) for source in sources),
            Predicate(
                harness=manifest.harness,
                adapter=manifest.adapter,
                product=product_of(manifest),
                ran_on=ran_on(manifest),
                operators=manifest.operators,
                started=manifest.started,
                verdict=summary.verdict.value,
                totals=Contents.of(summary.total, records=staging.records),
                statuses=staging.statuses,
                report=report,
                left_out=staging.left_out,
                signer=key_id,
            ),
        )
        heads = _heads(statement_bytes(statement), signer)
        size = out.write(archive_bytes([*heads, *sources]))
        return Written(
            entries=len(heads) + len(sources),
            size=size,
            records=staging.records,
            signer=key_id,
            left_out=dict(staging.left_out),
        )


def _heads(manifest: bytes, signer: Signer | None) -> list[Source]:
    if len(manifest) > MANIFEST_LIMIT:
        raise HarnessError(
            f"{MANIFEST_NAME}: has {len(manifest)} bytes; `verify` reads at most {MANIFEST_LIMIT}: bundle a run that"
            " keeps fewer outputs"
        )
    contents = {MANIFEST_NAME: manifest}
    if signer is not None:
        signature = signer.sign(signed_bytes(manifest))
        contents[SIGNATURE_NAME] = envelope_bytes(manifest, signature=signature, key_id=signer.key_id)
    return [source_of(name, content) for name, content in contents.items()]


def _add_records(run: RunDirectory, staging: _Staging) -> None:
    """The records in order of arrival, in files of limited size."""
    schema = msgspec.json.encode(record_schema(), order="deterministic")
    staging.add(SCHEMA_NAME, msgspec.json.format(schema, indent=2) + b"\n")
    with run.results() as results:
        records = results.records()
        pending = next(records, None)
        number = 0
        while pending is not None:
            path = staging.folder / f"{number:06}.jsonl"
            size = 0
            try:
                with path.open("wb") as file:
                    while pending is not None and size < RECORDS_LIMIT:
                        staging.see(pending)
                        size += file.write(msgspec.json.encode(record_to_json(pending)) + b"\n")
                        pending = next(records, None)
            except OSError as error:
                raise storage_failure(path, error) from error
            staging.add(f"records/{path.name}", path)
            number += 1


def _add_blobs(run: RunDirectory, staging: _Staging) -> None:
    """Recorded outputs of which a record tells; what else lies there is left where it is."""
    folder = run.path / "blobs"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name not in staging.digests:
            continue
        staging.add(f"{BLOBS}{path.name}", path)
        if staging.sources[-1].sha256 != path.name:
            raise HarnessError(f"{path}: its SHA-256 is another; the file has been changed or its disk is damaged")


def _add_files(run: RunDirectory, staging: _Staging) -> None:
    for name in ("manifest.json", "summary.json"):
        staging.add(f"run/{name}", run.path / name)
    for entry, paths in (("specs", run.specs()), ("waivers", run.waivers()), ("cases", run.failures())):
        for path in paths:
            staging.add(f"{entry}/{path.name}", path)
    if not run.waivers():
        staging.left_out["waivers"] = "the run kept none"


def _add_programs(run: RunDirectory, staging: _Staging, folders: Sequence[Path]) -> None:
    """Programs of each finding that a program can hold."""
    failures = run.failures()
    if not failures:
        return
    texts = {path.stem: read_own(path, limit=YAML_BYTES) for path in run.specs() if path.suffix == ".yaml"}
    specs = specs_from_texts({stem: text.decode("utf-8", errors="replace") for stem, text in texts.items()})
    programs = Programs(specs=specs, spec_folders=folders)
    for file in failures:
        for trial in (entry.content for entry in read_case_file(file, regular=True)):
            if not isinstance(trial, Trial):
                continue
            if trial.case.operator not in programs.specs:
                staging.left_out[f"repro/{file.stem}"] = f"the run has no spec of {trial.case.operator}"
                continue
            try:
                check_prototype(programs.specs[trial.case.operator], trial.case, where=file.name)
                for language, text in programs.texts(trial, languages_of(run.manifest)).items():
                    staging.add(f"repro/{file.stem}{SUFFIXES[language]}", text.encode())
            except (HarnessError, UsageError) as error:
                staging.left_out[f"repro/{file.stem}"] = str(error).splitlines()[0]


def _add_report(run: RunDirectory, staging: _Staging, make_report: MakeReport | None) -> str:
    if make_report is None:
        return "none: it was not asked for"
    try:
        content = make_report(run.path)
    except HarnessError as error:
        return f"none: {error}"
    staging.add("report.html", content)
    return "report.html"
