"""What a trial runner is asked for: the settings that a run, its workers and a gate hand on unchanged; its target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.target import DEFAULT_PRODUCT, Target
from aclnn_cts.execution.measuring import Measuring
from aclnn_cts.judgement.model import load_precision
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.sandbox.limits import DEFAULT_MAX_BYTES, RunnerLimits
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.speclang.load import package_folder
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.scope import Scope, declared_scope

PHASES: Mapping[int, str] = MappingProxyType({1: "one", 2: "both"})
"""Numbers of phases (`RunnerSettings.phases`) as `--phases` names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """Which implementation, on what, and how it is run and judged. Holds nothing open; workers get it pickled."""

    adapter: str
    """The word of `--adapter`."""
    target: Target
    """What cases are made for; until an implementation is open its product may be `OWN_PRODUCT`."""
    spec_folders: tuple[Path, ...] = ()
    """The user's own (`--specs`), beside the shipped files."""
    edition: str = ""
    """Of the documents (`--edition`); empty: each spec's own."""
    max_bytes: int = DEFAULT_MAX_BYTES
    """Of one call's arguments."""
    phases: int = 2
    """1: every trial calls the first phase alone; what needs both is not judged."""
    call_seconds: float | None = None
    """How long the host waits for a call; None: 60 s, or longer where the adapter has a clock of its own."""
    strict_limits: bool = False
    """Whether what is otherwise recorded and not judged is a failure (`core.verdict.Observation`)."""
    unsafe: bool = False
    """Also calls that must never reach a device."""
    measuring: Measuring = Measuring()
    """Which tolerances gate, and which trials they are put to."""
    benchmark: str = ""
    """An adapter word: the second implementation that tolerances compare with; empty: each operator's own in FLOAT."""
    workers: int = 1
    """Judges that share this machine: a runner's memory limit is a share of theirs."""
    scope: Scope | None = None
    """What the adapter declared to offer when it was first opened; workers hold theirs to the same."""

    def recorded(self) -> dict[str, Any]:
        """What a manifest keeps of them under `settings`, beside adapter, target, scope and workers."""
        return {
            "phases": self.phases,
            "max_bytes": self.max_bytes,
            "call_seconds": self.call_seconds,
            "strict_limits": self.strict_limits,
            "unsafe": self.unsafe,
            "spec_folders": [str(folder) for folder in self.spec_folders],
            "edition": self.edition,
            "tolerances": list(self.measuring.gate),
            **({"benchmark": self.benchmark} if self.benchmark else {}),
        }

    def open_host(self, specs: Mapping[str, Spec]) -> SessionHost:
        """Open the implementation; whoever calls closes it. Raises as `open_host` does."""
        return open_host(
            self.adapter,
            target=self.target,
            specs=specs,
            spec_folders=self.spec_folders,
            edition=self.edition,
            limits=None if self.call_seconds is None else RunnerLimits(call_seconds=self.call_seconds),
            max_bytes=self.max_bytes,
            workers=self.workers,
        )

    def open_benchmark(self, specs: Mapping[str, Spec]) -> SessionHost | None:
        """Open the second implementation, if there is one; whoever calls closes it. Raises as `open_host` does."""
        if not self.benchmark:
            return None
        try:
            return replace(self, adapter=self.benchmark).open_host(specs)
        except (UsageError, HarnessError) as error:
            # What an adapter says names the option that usually gives it.
            raise type(error)(str(error).replace("--adapter ", "--benchmark ", 1)) from error

    def on(self, host: SessionHost, operators: Iterable[Spec]) -> RunnerSettings:
        """The settings with the target that cases of these operators have on an open implementation, and its scope."""
        scope = declared_scope(host.capabilities, adapter=self.adapter)
        return replace(self, target=target_on(host, self.target, operators), scope=scope)


def target_on(host: SessionHost, asked: Target, specs: Iterable[Spec]) -> Target:
    """The target of cases for an open implementation.

    What is no device has the default product where an operator names it, else the usual one of the first.
    Of what a device says of itself, only that is taken over on which a check depends: runs on two devices of a
    product then make the same cases. That is determinism where it is on, an overflow mode that is not the product's
    own, and the number of cores where a spec reads it.
    """
    device = host.capabilities.target
    if device is None:
        usual = [spec.usual_product for spec in specs]
        named = DEFAULT_PRODUCT in usual or not usual
        return asked if asked.product else Target(product=DEFAULT_PRODUCT if named else usual[0])
    overflow = load_precision().overflow.get(device.product, device.overflow_mode)
    return Target(
        product=device.product,
        soc=asked.soc,
        core_count=asked.core_count or (device.core_count if any(map(_reads_cores, specs)) else None),
        deterministic=asked.deterministic or (True if device.deterministic else None),
        overflow_mode=asked.overflow_mode or (device.overflow_mode if device.overflow_mode != overflow else None),
    )


def unsupported_phases(host: SessionHost, phases: int) -> str:
    """Why a run of these phases cannot be made on an implementation; empty where it can."""
    if phases == 1 or host.capabilities.executes:
        return ""
    return (
        f"{host.capabilities.description}: it can answer the first phase alone; "
        f"give --phases one, or install what carries calls out (see aclnn-cts doctor)"
    )


def _reads_cores(spec: Spec) -> bool:
    shipped = package_folder() / f"{spec.stem}.yaml"
    file = shipped if spec.path == f"specs/{spec.stem}.yaml" else Path(spec.path)
    return "target.core_count" in file.read_text(encoding="utf-8")
