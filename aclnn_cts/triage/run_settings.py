"""The settings of a recorded run, with which its trials are made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import quote
from aclnn_cts.execution.measuring import chosen_tolerances
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.sandbox.limits import DEFAULT_MAX_BYTES
from aclnn_cts.store.run_directory import FAILURES, MANIFEST, RunDirectory


def run_of(source: Path) -> RunDirectory | None:
    """The run that a path is, or whose finding it is; None of any other folder or file."""
    folder = source if source.is_dir() else source.absolute().parent
    path = folder.absolute().parent if folder.name == FAILURES else folder
    return RunDirectory(path) if (path / MANIFEST).is_file() else None


def settings_of(
    run: RunDirectory, *, adapter: str | None = None, benchmark: str = "", spec_folders: tuple[Path, ...] = ()
) -> RunnerSettings:
    """The run's own: its adapter and target, and whatever decides which failure a trial is.

    Code that the run names and that is not part of this program runs only where a person names it too (`adapter`,
    `benchmark`, `spec_folders`): UsageError where they do not.
    """
    manifest = run.manifest
    if adapter is not None and adapter != manifest.adapter:
        raise UsageError(
            f"--adapter {adapter}: {run.path} was made with {quote(manifest.adapter)}; expected that, or leave it out"
        )
    if adapter is None and ":" in manifest.adapter:
        raise UsageError(_unnamed(run, "the adapter", manifest.adapter, "--adapter"))
    if manifest.spec_folders and not spec_folders:
        raise UsageError(
            f"{run.path}: was made with operators in {quote(list(manifest.spec_folders))}, whose Python runs; give the"
            " folders with --specs"
        )
    settings = RunnerSettings(
        adapter=manifest.adapter,
        target=manifest.target,
        spec_folders=spec_folders,
        edition=manifest.edition,
        unsafe=manifest.settings.get("unsafe", False),
        benchmark=benchmark,
    )
    return with_settings_of_run(settings, run)


def with_settings_of_run(settings: RunnerSettings, run: RunDirectory) -> RunnerSettings:
    """These settings; what they leave at its default of limits, tolerances and benchmark is the run's own.

    UsageError for another benchmark, and for one of the user's own that the settings do not name.
    """
    stated = run.manifest.settings
    benchmark, recorded = settings.benchmark, stated.get("benchmark", "")
    if benchmark and benchmark != recorded:
        with_it = f"was made with {quote(recorded)}" if recorded else "was made without one"
        raise UsageError(f"--benchmark {benchmark}: {run.path} {with_it}; expected that, or leave it out")
    if ":" in recorded and not benchmark:
        raise UsageError(_unnamed(run, "the benchmark", recorded, "--benchmark"))
    is_default = settings.max_bytes == DEFAULT_MAX_BYTES
    return replace(
        settings,
        max_bytes=stated.get("max_bytes", DEFAULT_MAX_BYTES) if is_default else settings.max_bytes,
        phases=stated.get("phases", 2),
        call_seconds=settings.call_seconds or stated.get("call_seconds"),
        strict_limits=settings.strict_limits or stated.get("strict_limits", False),
        measuring=replace(
            settings.measuring, gate=settings.measuring.gate or chosen_tolerances(run.manifest.tolerances)
        ),
        benchmark=recorded,
    )


def _unnamed(run: RunDirectory, what: str, word: str, option: str) -> str:
    return (
        f"{run.path}: was made with {what} {quote(word)}, whose code or options anybody may have written there; give it"
        f" with {option} to have it called"
    )
