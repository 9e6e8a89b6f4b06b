"""What a run would find here: versions, adapters that can be used, devices, and whether runs can be stored."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from aclnn_cts import __version__
from aclnn_cts.adapters.registry import ADAPTERS, Entry, choose, load
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.target import DEFAULT_PRODUCT, OWN_PRODUCT, Target
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.speclang.load import Specs, load_specs

__all__ = ["LIBRARIES", "describe_surroundings"]

LIBRARIES = (
    "click",
    "hypothesis",
    "ml_dtypes",
    "mpmath",
    "msgspec",
    "numpy",
    "packaging",
    "pydantic",
    "pytest",
    "pyyaml",
    "rich",
    "torch",
    "torch_npu",
)
"""The distribution's dependencies, and what adapters import where it is there."""


def describe_surroundings() -> dict[str, Any]:
    """Everything as plain JSON values. What does not work here is said in it and never raised."""
    specs, problem = _specs()
    return {
        "aclnn_cts": __version__,
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "machine": {"system": platform.platform(), "processors": len(os.sched_getaffinity(0))},
        "libraries": {name: _version(name) for name in LIBRARIES},
        "specs": {"operators": list(specs or ()), "problem": problem},
        "adapters": [_adapter(entry, specs) for entry in ADAPTERS.values()],
        "torch_devices": _torch_devices(),
        "store": _store(Path.cwd()),
    }


def _version(name: str) -> str | None:
    """The installed version of a distribution; None where there is none."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _specs() -> tuple[Specs | None, str | None]:
    try:
        return load_specs(), None
    except UsageError as error:
        return None, str(error)


def _adapter(entry: Entry, specs: Specs | None) -> dict[str, Any]:
    """Whether an adapter opens, found out by opening it, and what it says of itself then."""
    problem = None
    description, environment = entry.description, dict[str, str]()
    try:
        description, environment = _opened(entry, specs)
    except (HarnessError, UsageError) as error:
        problem = str(error).removeprefix(f"--adapter {entry.name}: ")
    except Exception as error:  # noqa: BLE001 - whatever an implementation raises is what the user wants to know
        problem = f"{type(error).__name__}: {error}"
    return {
        "name": entry.name,
        "description": description if problem is None else entry.description,
        "usable": problem is None,
        "problem": problem,
        "environment": environment,
    }


def _opened(entry: Entry, specs: Specs | None) -> tuple[str, dict[str, str]]:
    target = Target(product=OWN_PRODUCT if entry.own_product else DEFAULT_PRODUCT)
    if entry.isolate:
        # What crashes when its libraries are loaded must not end the one who asks why.
        with ProcessHost(entry.name, target=target, spare=False) as host:
            return host.capabilities.description or entry.description, dict(host.environment)
    session = load(choose(entry.name)).open(target, specs or {})
    try:
        return session.capabilities.description or entry.description, dict(session.environment)
    finally:
        session.close()


def _torch_devices() -> list[dict[str, str]]:
    """The devices that torch sees, where torch is installed; the CPU is always one."""
    if importlib.util.find_spec("torch") is None:
        return []
    try:
        torch = importlib.import_module("torch")
        if importlib.util.find_spec("torch_npu") is not None:
            importlib.import_module("torch_npu")
    except Exception as error:  # noqa: BLE001 - a broken installation is a finding here, not a failure
        return [{"device": "none", "name": f"torch does not load: {type(error).__name__}: {error}"}]
    devices = [{"device": "cpu", "name": platform.processor() or platform.machine()}]
    for kind in ("cuda", "npu"):
        module = getattr(torch, kind, None)
        if module is not None and module.is_available():
            devices += [
                {"device": f"{kind}:{number}", "name": str(module.get_device_name(number))}
                for number in range(module.device_count())
            ]
    return devices


def _store(folder: Path) -> dict[str, Any]:
    """Whether runs can be written where they are by default: below the current directory."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0")
            file.flush()
    except OSError as error:
        return {"folder": str(folder), "writable": False, "problem": error.strerror}
    return {"folder": str(folder), "writable": True, "problem": None}
