"""What a run would find here: versions, adapters that can be used, devices, and whether runs can be stored."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from aclnn_cts import __version__
from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.adapters.registry import ADAPTERS, AdapterChoice, parse_adapter_word
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.target import DEFAULT_PRODUCT, OWN_PRODUCT, Target
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.speclang.load import Specs, load_specs

LIBRARIES = (
    "click",
    "hypothesis",
    "jax",
    "markdown-it-py",
    "ml_dtypes",
    "mpmath",
    "msgspec",
    "numpy",
    "packaging",
    "pytest",
    "pyyaml",
    "rich",
    "selectolax",
    "torch",
    "torch_npu",
)
"""The distribution's dependencies, and what adapters import where it is there."""


def describe_surroundings(words: Sequence[str] = ()) -> dict[str, Any]:
    """Everything as plain JSON values. What does not work here is said in it and never raised.

    `words`: adapters as `--adapter` names them; empty: those that ship. Raises UsageError for one that is no adapter.
    """
    specs, problem = _specs()
    choices = [(parse_adapter_word(word), _description(word)) for word in words]
    return {
        "aclnn_cts": __version__,
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "machine": {"system": platform.platform(), "processors": len(os.sched_getaffinity(0))},
        "libraries": {name: _version(name) for name in LIBRARIES},
        "specs": {"operators": list(specs or ()), "problem": problem},
        "adapters": [
            _adapter(choice, description, specs)
            for choice, description in choices or [(parse_adapter_word(name), _description(name)) for name in ADAPTERS]
        ],
        "torch_devices": _torch_devices(),
        "store": _store(Path.cwd()),
    }


def _description(word: str) -> str:
    entry = ADAPTERS.get(word.partition(":")[0])
    return entry.description if entry is not None else "an adapter of your own"


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


def _adapter(choice: AdapterChoice, described: str, specs: Specs | None) -> dict[str, Any]:
    """Whether an adapter opens, found out by opening it, and what it says of itself then."""
    problem: str | None = None
    found: _Open | None = None
    try:
        found = _opened(choice, OWN_PRODUCT if choice.own_product else DEFAULT_PRODUCT, specs)
    except (HarnessError, UsageError) as error:
        name = choice.word.partition(":")[0]
        problem = str(error).removeprefix(f"--adapter {choice.word}: ").removeprefix(f"--adapter {name}: ")
        found = _stated_product(choice, specs)
    return {
        "name": choice.word,
        "description": found.capabilities.description or described if found is not None and not problem else described,
        "usable": problem is None,
        "operators": _operators(found),
        "problem": problem,
        "phases_one": _first_phases(choice, found, specs) if found is not None else None,
        "environment": dict(found.environment) if found is not None else {},
    }


def _operators(found: _Open | None) -> int | None:
    """How many operators it offers; None where it does not limit them, and where it did not open."""
    offered = None if found is None else found.capabilities.operators
    return None if offered is None else len(offered)


@dataclass(frozen=True, slots=True)
class _Open:
    """What an adapter said of itself while it was open."""

    capabilities: Capabilities
    environment: Mapping[str, str]


def _opened(choice: AdapterChoice, product: str, specs: Specs | None) -> _Open:
    with open_host(choice.word, target=Target(product=product), specs=specs or {}) as host:
        return _Open(host.capabilities, dict(host.environment))


def _stated_product(choice: AdapterChoice, specs: Specs | None) -> _Open | None:
    """An adapter opened for a product that is stated, where nothing here tells one; None where it does not open."""
    if not choice.own_product:
        return None
    try:
        return _opened(choice, DEFAULT_PRODUCT, specs)
    except (HarnessError, UsageError):
        return None


def _first_phases(choice: AdapterChoice, found: _Open, specs: Specs | None) -> dict[str, Any] | None:
    """What `--phases one` can do: the operators whose statuses it judges, and the command; None where nothing."""
    capabilities = found.capabilities
    if not (capabilities.phases and capabilities.statuses):
        return None
    known = list(specs or ())
    operators = [name for name in known if capabilities.operators is None or name in capabilities.operators]
    product = "" if capabilities.executes else " --product P"
    return {
        "operators": operators,
        "missing": [name for name in known if name not in operators],
        "command": f"aclnn-cts run --adapter {shlex.quote(choice.word)} --phases one{product}",
    }


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
