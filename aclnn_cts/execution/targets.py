"""What a run's cases are made for: the product asked for or the device's own, and what rules of documents depend on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from aclnn_cts.core.target import DEFAULT_PRODUCT, Target
from aclnn_cts.judgement.model import load_precision
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.speclang.load import package_folder
from aclnn_cts.speclang.model import Spec

__all__ = ["target_on", "unsupported_phases"]


def target_on(host: SessionHost, asked: Target, specs: Iterable[Spec]) -> Target:
    """The target of cases for an open implementation.

    Of what a device says of itself, only that is taken over on which a check depends: runs on two devices of a
    product then make the same cases. That is determinism where it is on, an overflow mode that is not the product's
    own, and the number of cores where a spec reads it.
    """
    device = host.capabilities.target
    if device is None:
        return asked if asked.product else Target(product=DEFAULT_PRODUCT)
    usual = load_precision().overflow.get(device.product, device.overflow_mode)
    return Target(
        product=device.product,
        soc=asked.soc,
        core_count=asked.core_count or (device.core_count if any(map(_reads_cores, specs)) else None),
        deterministic=asked.deterministic or (True if device.deterministic else None),
        overflow_mode=asked.overflow_mode or (device.overflow_mode if device.overflow_mode != usual else None),
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
