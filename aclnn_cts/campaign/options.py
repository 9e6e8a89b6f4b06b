"""What a campaign is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aclnn_cts.campaign.stopping import Stop
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.waivers.file import Waiver
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec

CHUNK_TRIALS = 2000
"""Trials of a chunk that is drawn, where nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignOptions:
    """What a session of a campaign is asked for."""

    arguments: tuple[str, ...]
    specs: Specs
    operators: tuple[Spec, ...]
    settings: BenchSettings
    out: Path
    stop: Stop
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
