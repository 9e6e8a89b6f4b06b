"""The adapters `cann` and `loopback`: from options and environment to an open session."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from aclnn_cts.adapters.cann.bindings import META, RUNTIME, Functions, ships_operator
from aclnn_cts.adapters.cann.device import Device, installed_versions, open_device, recent_message
from aclnn_cts.adapters.cann.execution import RuntimeApi, available
from aclnn_cts.adapters.cann.library import RUNTIME as RUNTIME_NAMES
from aclnn_cts.adapters.cann.library import Library, find_libraries, load_library, named_libraries
from aclnn_cts.adapters.cann.session import CannSession
from aclnn_cts.adapters.protocol import SOFTWARE_DEVICE, Capabilities
from aclnn_cts.adapters.registry import read_bool, read_number
from aclnn_cts.core.env import variable_set
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.printable import quote
from aclnn_cts.core.target import DEFAULT_PRODUCT, Target
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import products
from aclnn_cts.speclang.shared_schema import ProductModel


@dataclass(frozen=True, slots=True)
class Chip:
    """A SoC, and its product in the table."""

    soc: str
    product: str
    entry: ProductModel


def chip_of(soc: str) -> Chip:
    """The SoC of this full name, as `aclrtGetSocName` gives it. Raises HarnessError for one of no series here.

    A name listed as exact decides; else the longest prefix does: `Ascend910B` by itself is of the first training
    generation, `Ascend910B3` an Atlas A2, and `Ascend910_93...` of neither.
    """
    table = products()
    exact = [name for name, product in table.items() if soc in product.soc.exact]
    if exact:
        return Chip(soc, exact[0], table[exact[0]])
    found = [
        (len(prefix), name)
        for name, product in table.items()
        for prefix in product.soc.prefixes
        if soc.startswith(prefix)
    ]
    if not found:
        raise HarnessError(
            f"the device calls itself {quote(soc)}, which is of no series in specs/products.yaml; add its prefix there"
        )
    _, name = max(found)
    return Chip(soc, name, table[name])


SOC_VARIABLE = "ACLNN_LOOPBACK_SOC"
"""Says which chip the software device stands in for; it is read once in a process."""
_SOFTWARE_LIBRARIES = frozenset({"libloopback.so", "libloopback_host.so"})
_LARGEST_INT = 2**31 - 1
"""Device numbers and milliseconds travel as int32_t; ctypes would cut a larger one silently."""
_VERSIONS = ("cann_version", "driver_version", "firmware_version")
_SET_ENV = "source the toolkit's set_env.sh"
_LOOPBACK_VARIABLES = "ACLNN_LOOPBACK_"
_LOOPBACK_SOCS = MappingProxyType(
    {"atlas-a2": "Ascend910B3", "atlas-training": "Ascend910A", "atlas-inference": "Ascend310P3"}
)
"""By product, a chip that the software device stands in for where none is named (`loopback/src/product.cpp`)."""


_FIRST = "first"
_SERIAL = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class CannAdapter:
    """A CANN installation, found by its environment or named.

    - `library`: the shared libraries themselves, with commas between them, instead of a search.
    - `device`: number of the device.
    - `deterministic`: switches deterministic computation on or off; without it the installation's own setting stays.
    - `timeout`: seconds that the device may take for a call.
    - `serial`: the device's serial number (`npu-smi info -t board`), which no function of the interface tells.
    - `operators`: `first`: those of the first library alone are offered; what else it needs comes from the others.
    """

    library: str = ""
    device: str = "0"
    deterministic: str = ""
    timeout: str = "45"
    serial: str = ""
    operators: str = ""
    name: str = "cann"

    def open(self, target: Target, specs: Mapping[str, Spec]) -> CannSession:
        """Load the libraries and set the device. An empty product stands for the device's own.

        Raises UsageError for another product than the device's, HarnessError where something is missing. Only the
        runtime may be, where the product is stated: then first phases alone can be called.
        """
        number = read_number(self.name, "device", self.device, most=_LARGEST_INT)
        limit = read_number(self.name, "timeout", self.timeout, least=1, most=_LARGEST_INT // 1000)
        if self.serial and not _SERIAL.fullmatch(self.serial):
            raise UsageError(
                f"--adapter {self.name}: serial={quote(self.serial)}: expected a serial number of at most 64 letters, "
                "digits, dots, dashes and underscores"
            )
        if self.operators not in ("", _FIRST):
            raise UsageError(f"--adapter {self.name}: operators={quote(self.operators)}: expected {_FIRST}")
        library = _loaded(self.library, runtime_is_optional=bool(target.product))
        runtime, meta = Functions(library, RUNTIME), Functions(library, META)
        if "aclCreateTensor" not in meta:
            names = ", ".join(library.handles)
            raise HarnessError(f"none of {names} has aclCreateTensor; name libnnopbase.so too (cann:library=FILE,...)")
        device = open_device(runtime, number) if "aclInit" in runtime else None
        try:
            return self._session(library, RuntimeApi(runtime, meta), device, target, specs, float(limit))
        except BaseException:
            if device is not None:
                device.close()
            raise

    def _session(
        self,
        library: Library,
        api: RuntimeApi,
        device: Device | None,
        target: Target,
        specs: Mapping[str, Spec],
        limit: float,
    ) -> CannSession:
        chip = None if device is None else chip_of(device.soc())
        if chip is not None and target.product not in ("", chip.product):
            raise UsageError(
                f"--product {target.product}: the device is {chip.soc}, which is {chip.product}; leave --product out, "
                f"or run on another device"
            )
        if device is None and not target.product:
            reasons = [reason for file, reason in library.failures.items() if Path(file).name in RUNTIME_NAMES]
            why = (
                reasons[0] if reasons else f"no library has aclInit: {', '.join(sorted(set(library.symbols.values())))}"
            )
            mend = "name libascendcl.so too (cann:library=FILE,FILE)" if self.library else _SET_ENV
            raise HarnessError(
                f"--adapter {self.name}: no CANN runtime was found ({why}), so that nothing tells the "
                f"product; state it with --phases one (--product P), or {mend}"
            )
        if device is not None and self.deterministic:
            device.set_determinism(on=read_bool(self.name, "deterministic", self.deterministic))
        software = _is_software(library)
        # All are bound at once, so that where each symbol came from is known before anything is run.
        absent = [name for name in RUNTIME if name not in api.runtime] + [name for name in META if name not in api.meta]
        shipped = [name for name in specs if ships_operator(library, name) and self._offers(library, name)]
        description = _description(chip, target, software=software)
        facts = _facts(library, device, chip, target, software=software) | {
            "description": description,
            "operators": ", ".join(shipped) or "none",
            "missing_functions": ", ".join(absent) or "none",
            **({"device_serial": self.serial} if self.serial else {}),
        }
        recent_message(api.runtime)
        return CannSession(
            api=api,
            library=library,
            specs=specs,
            capabilities=Capabilities(
                description=description,
                operators=frozenset(shipped),
                environment_zh=_chinese(chip, target, facts, software=software),
                measured=_measured(facts, software=software),
                statuses=True,
                phases=True,
                executes=device is not None,
                in_place=True,
                hardware=device is not None and not software,
                call_seconds=limit if device is not None else 0.0,
                target=_target(chip, target, facts),
                deterministic=facts["deterministic"] == "true" or None,
                call_modes=available(api.runtime, api.meta),
            ),
            environment=MappingProxyType(facts),
            device=device,
            time_limit=limit,
        )

    def _offers(self, library: Library, operator: str) -> bool:
        """Whether the library that has an operator is one whose operators are offered."""
        others = {Path(file).resolve() for file in list(library.handles)[1:]} if self.operators == _FIRST else set()
        return Path(library.symbols[operator]).resolve() not in others


@dataclass(frozen=True, slots=True)
class LoopbackAdapter:
    """The software device: the same session on a library that is built here when it is first asked for.

    - `soc`: which chip it stands in for, by its full name; without it that is `$ACLNN_LOOPBACK_SOC`, else one of the
      product's.
    - `library`: a build to use instead of our own.
    - `serial`, `operators`: as of `cann`.
    """

    soc: str = ""
    library: str = ""
    deterministic: str = ""
    timeout: str = "45"
    serial: str = ""
    operators: str = ""

    def open(self, target: Target, specs: Mapping[str, Spec]) -> CannSession:
        """Build it if need be, and open it. Raises HarnessError where it cannot be built."""
        library = self.library
        if not library:
            from aclnn_cts.adapters.loopback_build import build  # noqa: PLC0415 - not where the library is given

            library = str(build().library)
        product = target.product or DEFAULT_PRODUCT
        soc = self.soc or os.environ.get(SOC_VARIABLE) or _LOOPBACK_SOCS.get(product)
        if soc is None:
            raise UsageError(
                f"--product {product}: the software device stands in for {', '.join(_LOOPBACK_SOCS)} alone; choose one "
                "of them, or an adapter that has the product"
            )
        if soc not in [name for product in _LOOPBACK_SOCS for name in products()[product].soc.names]:
            raise UsageError(
                f"--adapter loopback: soc={soc}: expected a full SoC name such as {', '.join(_LOOPBACK_SOCS.values())}"
            )
        cann = CannAdapter(
            library=library,
            deterministic=self.deterministic,
            timeout=self.timeout,
            serial=self.serial,
            operators=self.operators,
            name="loopback",
        )
        # The software device reads its own while it is opened.
        with variable_set(SOC_VARIABLE, soc):
            return cann.open(target, specs)


def _loaded(named: str, *, runtime_is_optional: bool) -> Library:
    if named:
        return load_library(named_libraries(named.split(",")))
    chosen = find_libraries(os.environ)
    optional = {*chosen.custom, *((chosen.runtime,) if runtime_is_optional else ())}
    return load_library(chosen.files, optional=frozenset(optional))


def _target(chip: Chip | None, target: Target, facts: Mapping[str, str]) -> Target:
    if chip is None:
        return target
    return Target(
        product=chip.product,
        soc=chip.soc,
        core_count=int(facts["core_count"]) if facts["core_count"].isdigit() else None,
        deterministic={"true": True, "false": False}.get(facts["deterministic"]),
        overflow_mode=facts["overflow_mode"],
    )


def _facts(
    library: Library, device: Device | None, chip: Chip | None, target: Target, *, software: bool
) -> dict[str, str]:
    facts = {"implementation": f"{SOFTWARE_DEVICE} (loopback)" if software else "CANN", "product": target.product}
    if device is None or chip is None:
        facts |= {"soc": "unknown", "device": "none: first phases alone", "deterministic": "unknown"}
    else:
        known = chip.entry.cores.get(chip.soc)
        cores = device.core_count() or (known.ai if known is not None else None)
        deterministic = device.deterministic()
        facts |= {
            "product": chip.product,
            "soc": chip.soc,
            "device": f"{SOFTWARE_DEVICE} standing in for {chip.soc}" if software else chip.soc,
            "device_id": str(device.number),
            "core_count": str(cores) if cores is not None else "unknown",
            "runtime_version": device.runtime_version(),
            "deterministic": "unknown" if deterministic is None else str(deterministic).lower(),
            "overflow_mode": device.overflow_mode() or chip.entry.overflow.default,
        }
    versions = dict.fromkeys(_VERSIONS, f"none: {SOFTWARE_DEVICE}")
    facts |= versions if software else installed_versions(os.environ)
    if software:
        facts |= {name: f"{facts[name]} ({SOFTWARE_DEVICE})" for name in ("product", "soc") if facts[name] != "unknown"}
        # Seeded faults and injected crashes among them: a run on a device that was told to err says so.
        facts |= {name: value for name, value in os.environ.items() if name.startswith(_LOOPBACK_VARIABLES) and value}
    facts["version"] = facts["cann_version"] if not software else "loopback"
    facts |= {
        f"library {file}": digest if digest.startswith("unknown") else f"sha256 {digest}"
        for file, digest in library.hashes.items()
    }
    for file in library.hashes:
        facts[f"symbols {file}"] = ", ".join(sorted(name for name, source in library.symbols.items() if source == file))
    facts |= {f"not loaded {file}": reason for file, reason in library.failures.items()}
    return facts


def _measured(facts: Mapping[str, str], *, software: bool) -> frozenset[str]:
    """The facts that were read, hashed or looked up here; the others are answers of the runtime, and what follows."""
    names = {"device_id", "operators", "missing_functions", *(() if software else ("version", *_VERSIONS))}
    kinds = ("library ", "symbols ", "not loaded ", _LOOPBACK_VARIABLES)
    return frozenset(name for name in facts if name in names or name.startswith(kinds))


def _description(chip: Chip | None, target: Target, *, software: bool) -> str:
    if chip is None:
        what = f"the {SOFTWARE_DEVICE} (loopback)" if software else "a CANN installation"
        return f"the first phases of {what} without a runtime, as {target.product}"
    if software:
        return f"{SOFTWARE_DEVICE} (loopback) standing in for {chip.soc}, {chip.product}; no hardware"
    return f"{chip.soc} ({chip.entry.title.en})"


def _chinese(chip: Chip | None, target: Target, facts: Mapping[str, str], *, software: bool) -> dict[str, str]:
    """What of the facts is a sentence, in Chinese."""
    stand_in = "软件设备（loopback）"
    if chip is None:
        what = stand_in if software else "CANN 安装环境"
        told = {"device": "无：只调用第一段接口", "description": f"{what}的第一段接口（无运行时），按 {target.product}"}
    elif software:
        told = {
            "device": f"代替 {chip.soc} 的软件设备",
            "description": f"代替 {chip.soc}（{chip.product}）的软件设备（loopback），没有硬件",
        }
    else:
        told = {"description": f"{chip.soc}（{chip.entry.title.zh}）"}
    if facts["missing_functions"] == "none":
        told["missing_functions"] = "无"
    if software:
        told["implementation"] = stand_in
        told |= dict.fromkeys(_VERSIONS, "无：软件设备")
        marked = (name for name in ("product", "soc") if SOFTWARE_DEVICE in facts[name])
        told |= {name: facts[name].replace(f" ({SOFTWARE_DEVICE})", "（软件设备）") for name in marked}
    return told


def _is_software(library: Library) -> bool:
    """Whether what executes is our own software device, under whatever name it was found.

    The runtime decides: an operator library beside it cannot reach a device that the runtime has not.
    """
    files = {file for name, file in library.symbols.items() if name in RUNTIME} or set(library.symbols.values())
    return bool(files) and all(Path(file).name in _SOFTWARE_LIBRARIES for file in files)
