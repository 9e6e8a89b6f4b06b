"""What a session is asked for, and whether it goes on with the campaign that was begun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outside import sha256_of
from aclnn_cts.execution.settings import PHASES, RunnerSettings
from aclnn_cts.findings.waivers.file import Waiver, waivers_beside_shipped
from aclnn_cts.runs.campaign.head import StopLimits
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.manifest import OWN_ADAPTER_FILE, OWN_ADAPTER_SHA256, Fact, Manifest, sources_hash
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.scope import Scope

SESSION_STATE = "session/"
"""What the keys of sessions in a store's state begin with; a number follows."""

_ANY_OF_THEM = frozenset(("adapter.device", "adapter.device_id", "adapter.threads"))
"""Facts that tell one of several like devices, and how busy its host is: these may be others from now on."""

_NAMED = 4
"""Differences that a message names."""


class SessionEntry(msgspec.Struct, kw_only=True):
    """A session of a campaign, as it is kept."""

    started: str
    """UTC, ISO 8601."""
    arguments: tuple[str, ...]
    inputs: Mapping[str, str]
    """SHA-256 of waiver files by path."""
    workers: int
    devices: tuple[str, ...]
    cluster: str | None
    harness: str
    """SHA-256 of the package's modules, specs and waivers (`manifest.sources_hash`)."""


def earlier_campaign(options: CampaignOptions) -> Manifest:
    """The manifest of the campaign that is to go on; UsageError where it is another one than the options say."""
    manifest = RunDirectory(options.out).manifest
    if not manifest.is_campaign:
        raise UsageError(f"{options.out}: holds a {manifest.command}, and no campaign; name the directory of one")
    asked = {
        "--adapter": (options.settings.adapter, manifest.adapter),
        "--edition": (options.settings.edition, manifest.edition),
        "operators": (sorted(spec.operator for spec in options.operators), sorted(manifest.operators)),
    }
    for word, (now, then) in asked.items():
        if now != then:
            raise UsageError(f"{options.out}: its campaign has {word} {_shown(then)}, not {_shown(now)}; give the same")
    began = _decisive(_as_begun(options, manifest))
    for name, now in _decisive(options).items():
        then = began[name]
        if name in options.given and now != then:
            raise UsageError(
                f"{_format_option(name, now)}: the campaign in {options.out} began {_with(name, then)}; leave {name} "
                "out to go on with it, or begin another one in a directory of its own"
            )
    for spec in options.operators:
        name = f"{spec.stem}.yaml"
        if manifest.specs.get(name) != spec.sha256:
            raise UsageError(
                f"{options.out}: {name} has changed since its campaign began, so that chunks would be others; "
                "begin a new one"
            )
    return manifest


def _decisive(options: CampaignOptions) -> dict[str, Any]:
    """The options that decide what chunks hold and how they are judged."""
    settings = options.settings
    return {
        "--product": settings.target.product,
        "--seed": options.seed,
        "--chunk-trials": options.size,
        "--max-bytes": settings.max_bytes,
        "--phases": PHASES[settings.phases],
        "--call-timeout": settings.call_seconds,
        "--strict-limits": settings.strict_limits,
        "--unsafe": settings.unsafe,
        "--tolerance": sorted(settings.measuring.gate),
    }


def _as_begun(options: CampaignOptions, manifest: Manifest) -> CampaignOptions:
    """The options, with those that decide what chunks hold and how they are judged as the campaign began."""
    kept = manifest.settings
    settings = replace(
        options.settings,
        target=manifest.target,
        max_bytes=int(kept["max_bytes"]),
        phases=int(kept["phases"]),
        call_seconds=kept.get("call_seconds"),
        strict_limits=bool(kept.get("strict_limits", False)),
        unsafe=bool(kept["unsafe"]),
        measuring=replace(options.settings.measuring, gate=tuple(kept["tolerances"])),
    )
    return replace(options, settings=settings, seed=manifest.seed, size=int(kept["chunk_trials"]))


def _format_option(name: str, value: Any) -> str:  # noqa: ANN401 - of any option
    return name if value is True else f"{name} {_shown(value)}"


def _with(name: str, value: Any) -> str:  # noqa: ANN401 - of any option
    return "without it" if value is False or value == [] else f"with {_format_option(name, value)}"


def _shown(value: object) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


def go_on(options: CampaignOptions, manifest: Manifest) -> CampaignOptions:
    """The options with all that the campaign began with and that nobody has said again.

    Waivers are those of the session before, unless others are given: they may be mended and renewed. UsageError where
    a file of them is not what it was.
    """
    options = _as_begun(options, manifest)
    if "--waivers" in options.given:
        return options
    with RunDirectory(options.out).results() as results:
        sessions = sorted(results.states(SESSION_STATE))
    inputs = msgspec.convert(sessions[-1][1], SessionEntry).inputs if sessions else manifest.inputs
    for name, digest in inputs.items():
        advice = "give those that count from now on with --waivers"
        found = sha256_of(Path(name), expected=f"a waiver file of the campaign in {options.out}; {advice}")
        if found != digest:
            raise UsageError(
                f"{name}: a waiver file that has changed since the last session of the campaign in "
                f"{options.out}; give it with --waivers again, so that it counts as it is now"
            )
    return replace(
        options,
        waivers=waivers_beside_shipped(map(Path, inputs), adapter=options.settings.adapter),
        inputs=dict(inputs),
    )


def check_implementation(path: Path, manifest: Manifest, facts: Mapping[str, Fact], scope: Scope | None) -> str:
    """What a person should know before the campaign goes on; empty where that is nothing.

    UsageError where the implementation says other things of itself than when the campaign began: a library that was
    replaced, another version, chip or driver, or declares another scope. Verdicts of two implementations do not belong
    into one statement.
    """
    if scope is not None and manifest.scope_sha256 not in ("", scope.sha256):
        raise UsageError(
            f"{path}: the adapter declares another scope than when the campaign began (manifest.json, $.scope); begin "
            "another campaign in a directory of its own"
        )
    file, digest = facts.get(OWN_ADAPTER_FILE), facts.get(OWN_ADAPTER_SHA256)
    before = manifest.environment.get(OWN_ADAPTER_SHA256)
    if file is not None and digest is not None and before is not None and before.value != digest.value:
        raise UsageError(
            f"{path}: the adapter's file {file.value} has changed since the campaign began (SHA-256 "
            f"{before.value!s:.12} then, {digest.value!s:.12} now); restore it, or begin another campaign in a "
            "directory of its own"
        )
    then = {name: fact.value for name, fact in manifest.environment.items() if name.startswith("adapter.")}
    now = {name: fact.value for name, fact in facts.items() if name.startswith("adapter.")}
    harness = manifest.environment.get("harness.sha256")
    # What this one records and that one did not says nothing of the implementation, but for the files that it consists
    # of, whose names have paths.
    other_harness = harness is not None and harness.value != sources_hash()
    changed = [
        f"{name.removeprefix('adapter.')} was {_value(then.get(name))}, and is {_value(now.get(name))}"
        for name in sorted({*then, *now} - _ANY_OF_THEM)
        if then.get(name) != now.get(name) and not (other_harness and name not in then and " " not in name)
    ]
    if changed:
        more = f"; and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        raise UsageError(
            f"{path}: its campaign began on another implementation: {'; '.join(changed[:_NAMED])}{more}; go on with "
            "that one, or begin another campaign in a directory of its own (`aclnn-cts compare` tells the two apart)"
        )
    if other_harness:
        return (
            f"aclnn-cts itself has changed since the campaign began (version {manifest.harness} then): chunks from now "
            "on may not be those that it would have made"
        )
    return ""


def _value(value: object) -> str:
    return "not told" if value is None else f"{value!s:.80}"


CHUNK_TRIALS = 2000
"""Trials of a chunk that is drawn, where nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignOptions:
    """What a session of a campaign is asked for."""

    arguments: tuple[str, ...]
    specs: Specs
    operators: tuple[Spec, ...]
    settings: RunnerSettings
    out: Path
    stop: StopLimits
    seed: int = 0
    size: int = CHUNK_TRIALS
    workers: int = 1
    devices: tuple[str, ...] = ()
    """Values of the adapter's option `device`, which workers get in turn."""
    cluster: str | None = None
    """Ray's address, or `local`; None: processes of this machine."""
    cluster_resource: str = ""
    """What an actor takes one of: `NPU`, `GPU`; empty: a CPU."""
    waivers: tuple[Waiver, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of waiver files by path."""
    resume: bool = False
    given: frozenset[str] = frozenset()
    """Options such as `--seed` that somebody chose; a campaign that goes on has the others as it began."""
