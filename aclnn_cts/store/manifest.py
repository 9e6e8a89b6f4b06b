"""What was run, on what, and how each of these facts is known."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from aclnn_cts import __version__
from aclnn_cts.adapters.protocol import SOFTWARE_DEVICE, Capabilities
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outside import FEW_CONTAINERS, convert_document, sha256_of, strict_json
from aclnn_cts.core.printable import quote
from aclnn_cts.core.target import Target
from aclnn_cts.store.harness_parts import files_hash, judging_hash
from aclnn_cts.store.scope import Scope

MANIFEST_FORMAT = "aclnn-cts/manifest/2"
OWN_ADAPTER_FILE = "own_adapter.file"
OWN_ADAPTER_SHA256 = "own_adapter.sha256"
"""Names of facts: the file of an adapter that does not ship, and its contents."""
CAMPAIGN = "fuzz"
"""The command that makes campaigns."""

_LIBRARIES = (
    "numpy",
    "ml_dtypes",
    "hypothesis",
    "msgspec",
    "PyYAML",
    "pytest",
    "rich",
    "click",
    "torch",
    "torch_npu",
    "jax",
    "ray",
)

Value: TypeAlias = str | int | float | bool | None


class FactSource:
    """How a fact is known (values of `Fact.known`)."""

    MEASURED = "measured"
    """Read, hashed, counted or set by this program, by its adapters too, or asked of the system it runs on."""
    DECLARED = "declared"
    """Said by a person, or by an implementation of itself, and not checked."""
    UNKNOWN = "unknown"


class Fact(msgspec.Struct, frozen=True):
    """One row of the environment."""

    value: Value
    known: str = FactSource.MEASURED
    zh: str | msgspec.UnsetType = msgspec.UNSET
    """The value in Chinese, where it is a sentence and no name, number or word of a setting."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`manifest.json`: with it and the same harness the same trials can be made again."""

    format: str = MANIFEST_FORMAT
    harness: str = __version__
    command: str
    """`run`, `fuzz`, `replay`."""
    arguments: tuple[str, ...] = ()
    """The command line's words after the command."""
    operators: tuple[str, ...]
    adapter: str
    """As `--adapter` named it, options included."""
    profile: str = ""
    seed: int
    target: Target = Target()
    started: str
    """UTC, ISO 8601."""
    specs: Mapping[str, str] = {}
    """SHA-256 of each spec file as used, by its name in `specs/`."""
    inputs: Mapping[str, str] = {}
    """SHA-256 of each case and waiver file, by its path as given."""
    scope: Scope | None = None
    """What the adapter declared to offer before anything was planned."""
    scope_sha256: str = ""
    settings: Mapping[str, Any] = {}
    """Options of the command that change what is run (`phases`, `max_bytes`, ...), as plain JSON values."""
    environment: Mapping[str, Fact] = {}
    """By dotted name: `machine.cpu`, `library.numpy`, `adapter.driver`."""

    @property
    def spec_folders(self) -> tuple[str, ...]:
        """Folders of operators of the user's own that the run was given.

        Their Python runs only where a person names them again: whoever hands a run over writes its manifest.
        """
        return tuple(self.settings.get("spec_folders", ()))

    @property
    def edition(self) -> str:
        """Of the documents that the run was held to; empty: each spec's own."""
        return str(self.settings.get("edition") or "")

    @property
    def tolerances(self) -> tuple[str, ...]:
        """Acceptance criteria that gated."""
        return tuple(self.settings.get("tolerances", ()))

    @property
    def is_campaign(self) -> bool:
        """Whether the run keeps the counts of all trials and the records of a few."""
        return self.command == CAMPAIGN


def manifest_from_json(content: bytes, *, where: str) -> Manifest:
    """Read `manifest.json`; raises HarnessError where it is none or of a format that is not known here."""
    expected = f"a manifest of the format {quote(MANIFEST_FORMAT)}"
    document = strict_json(content, where=where, expected=expected, error=HarnessError, containers=FEW_CONTAINERS)
    manifest = convert_document(
        document, Manifest, where=where, expected=expected, form=MANIFEST_FORMAT, error=HarnessError
    )
    _check_settings(manifest.settings, where=where)
    return manifest


_SETTINGS: Mapping[str, Any] = {
    "spec_folders": list[str],
    "edition": str,
    "tolerances": list[str],
    "benchmark": str,
    "max_bytes": int,
    "phases": int,
    "call_seconds": float,
    "strict_limits": bool,
    "unsafe": bool,
    "workers": int,
    "min_judged": int,
    "generation": int,
    "chunk_trials": int,
}
"""What the settings that are read again hold."""


def _check_settings(settings: Mapping[str, Any], *, where: str) -> None:
    for name, kind in _SETTINGS.items():
        try:
            msgspec.convert(settings.get(name), kind | None)
        except msgspec.ValidationError as error:
            raise HarnessError(
                f"{where}: $.settings.{name}: {quote(settings[name])}: {error}; the file was changed, or written by"
                " another version"
            ) from None


def ran_on(manifest: Manifest, language: Literal["en", "zh"] = "en") -> str:
    """What the implementation says in a line that it ran on; empty where it says nothing in the language.

    What an adapter of the user's own says of itself is marked as declared: nothing here has measured it.
    """
    facts = (manifest.environment.get(f"adapter.{name}") for name in ("description", "device", "implementation"))
    fact = next((fact for fact in facts if fact is not None and fact.value), None)
    if fact is None:
        return ""
    is_declared = OWN_ADAPTER_FILE in manifest.environment
    if language == "en":
        return f"{fact.value} (declared by the adapter)" if is_declared else str(fact.value)
    # What an adapter of the user's own says has no translation.
    return f"{fact.zh or fact.value}（由适配器声明）" if is_declared else fact.zh or ""


def version_of(manifest: Manifest) -> str:
    """The implementation's version; empty where it is not known."""
    fact = manifest.environment.get("adapter.version")
    return "" if fact is None or fact.known == FactSource.UNKNOWN else str(fact.value)


def is_software(manifest: Manifest) -> bool:
    """Whether a software device stood in for the product: what was opened tells, whatever the adapter is called."""
    return any(
        SOFTWARE_DEVICE in str(fact.value)
        for name in ("implementation", "product", "device")
        if (fact := manifest.environment.get(f"adapter.{name}")) is not None
    )


def product_of(manifest: Manifest) -> str:
    """The product that was run for, with the words `software device` where one stood in for it."""
    product = manifest.target.product
    return f"{product} ({SOFTWARE_DEVICE})" if is_software(manifest) else product


def timestamp(moment: datetime | None = None) -> str:
    """A moment (now, if none is given) as `Manifest.started` has it, to the second."""
    return (moment or datetime.now(timezone.utc)).astimezone(timezone.utc).isoformat(timespec="seconds")


def file_hashes(paths: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of each file, by its path as given; empty for a pipe."""
    return {str(path): sha256_of(path, expected="a file") for path in paths}


def environment_facts() -> dict[str, Fact]:
    """The machine, Python and the libraries that have a part in a run; none of the libraries is imported."""
    facts: dict[str, Value] = {
        "machine.name": platform.node() or None,
        "machine.architecture": platform.machine() or None,
        "machine.cpu": _processor(),
        "machine.cores": len(os.sched_getaffinity(0)),
        "machine.memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "machine.kernel": f"{platform.system()} {platform.release()}",
        "machine.system": _distribution(),
        "python.version": platform.python_version(),
        "python.implementation": platform.python_implementation(),
        "python.executable": sys.executable or None,
        "harness.version": __version__,
        "harness.sha256": sources_hash(),
        "harness.judging_sha256": judging_hash(),
    }
    facts |= {f"library.{name}": _installed(name) for name in _LIBRARIES}
    return {name: _fact(value, FactSource.MEASURED) for name, value in facts.items()}


@functools.cache
def sources_hash() -> str:
    """SHA-256 of this package's modules, specs and waivers: what tells apart two states of one version."""
    package = Path(__file__).resolve().parent.parent
    return files_hash(
        Path(folder, name)
        for folder, _, names in os.walk(package, followlinks=True)
        for name in names
        if name.endswith((".py", ".yaml"))
    )


def adapter_facts(
    environment: Mapping[str, Value | Fact],
    *,
    capabilities: Capabilities | None = None,
) -> dict[str, Fact]:
    """What an adapter says of itself, its library and its device, under `adapter.`.

    Its capabilities tell which values it measured, and have those that are sentences in Chinese too; all others are
    declared. None, `unknown` and `unknown: why` are unknown.
    """
    measured = capabilities.measured if capabilities is not None else frozenset()
    chinese = capabilities.environment_zh if capabilities is not None else {}
    facts = {
        name: value
        if isinstance(value, Fact)
        else _fact(value, FactSource.MEASURED if name in measured else FactSource.DECLARED)
        for name, value in environment.items()
    }
    return {
        f"adapter.{name}": msgspec.structs.replace(fact, zh=chinese[name]) if name in chinese else fact
        for name, fact in facts.items()
    }


def own_adapter_facts(file: Path | None) -> dict[str, Fact]:
    """The file of an adapter of the user's own, with its SHA-256; nothing for adapters that ship.

    Raises HarnessError where it cannot be read.
    """
    if file is None:
        return {}
    try:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise HarnessError(f"{file}: the adapter's file cannot be read: {error.strerror}") from None
    return {OWN_ADAPTER_FILE: Fact(str(file)), OWN_ADAPTER_SHA256: Fact(digest)}


def _fact(value: Value, known: str) -> Fact:
    unknown = value is None or (isinstance(value, str) and value.partition(":")[0] == FactSource.UNKNOWN)
    return Fact(value, FactSource.UNKNOWN if unknown else known)


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Processor")))
    return next(names, None) or platform.processor() or None


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None
