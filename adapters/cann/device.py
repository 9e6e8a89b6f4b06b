"""An initialised runtime with one device set, and what it says of itself."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aclnn_cts.adapters.cann.bindings import ALREADY_INITIALISED, NOT_SET, SUCCESS, Functions, error_name
from aclnn_cts.adapters.results import MESSAGE_LIMIT
from aclnn_cts.core.errors import HarnessError

_DETERMINISTIC = 0
_CUBE_CORES = 102
_AI_CORES = 101
_OLD_AI_CORES = 0
_OVERFLOW_MODES = {0: "saturation", 1: "infnan"}
_VERSION = re.compile(r"^\s*(?:package_)?version\s*[=:]\s*\[?\"?([^\s\]\":]+)", re.IGNORECASE | re.MULTILINE)

_CANN_VERSION_FILES = (
    "{machine}-linux/ascend_toolkit_install.info",
    "{machine}-linux/ascend_nnrt_install.info",
    "runtime/version.info",
    "compiler/version.info",
    "version.info",
    "version.cfg",
)


@dataclass(slots=True)
class Device:
    """The runtime's functions and the device that this thread has set."""

    runtime: Functions
    number: int
    finalise: bool
    """Whether this is who initialised the runtime."""

    def close(self) -> None:
        """Give the device back, and finalise the runtime where it was initialised here."""
        self.runtime["aclrtResetDevice"](self.number)
        if self.finalise and "aclFinalize" in self.runtime:
            self.runtime["aclFinalize"]()

    def soc(self) -> str:
        """The full SoC name. Raises HarnessError where the runtime has none."""
        name = self.runtime["aclrtGetSocName"]()
        if not name:
            raise HarnessError(
                f"aclrtGetSocName gives no name for device {self.number}: "
                f"{recent_message(self.runtime) or 'no reason given'}; see that the driver sees a device (npu-smi info)"
            )
        return os.fsdecode(name)

    def core_count(self) -> int | None:
        """AI cores (the Cube cores where those are counted apart); None where the runtime does not tell."""
        for function, attribute in (
            ("aclrtGetDeviceInfo", _CUBE_CORES),
            ("aclrtGetDeviceInfo", _AI_CORES),
            ("aclGetDeviceCapability", _OLD_AI_CORES),
        ):
            code, value = self._told(function, self.number, attribute)
            if code == SUCCESS and value > 0:
                return value
        return None

    def runtime_version(self) -> str:
        """Major, minor and patch of the runtime's interface."""
        if "aclrtGetVersion" not in self.runtime:
            return "unknown"
        parts = [ctypes.c_int32() for _ in range(3)]
        code = self.runtime["aclrtGetVersion"](*(ctypes.byref(part) for part in parts))
        return ".".join(str(part.value) for part in parts) if code == SUCCESS else "unknown"

    def set_determinism(self, *, on: bool) -> None:
        """Switch deterministic computation, for the whole process. Raises HarnessError where the release cannot."""
        code = None
        if "aclrtCtxSetSysParamOpt" in self.runtime:
            code = self.runtime["aclrtCtxSetSysParamOpt"](_DETERMINISTIC, int(on))
        if code != SUCCESS:
            reason = "this release has no such call" if code is None else error_name(code)
            raise HarnessError(f"determinism cannot be set by aclrtCtxSetSysParamOpt: {reason}")

    def deterministic(self) -> bool | None:
        """Whether the process computes deterministically (never set means no); None where the release cannot tell."""
        code, value = self._told("aclrtGetSysParamOpt", _DETERMINISTIC)
        return code == SUCCESS and value != 0 if code in (SUCCESS, NOT_SET) else None

    def overflow_mode(self) -> str | None:
        """`saturation` or `infnan`; None where the runtime does not tell."""
        code, value = self._told("aclrtGetDeviceSatMode", kind=ctypes.c_int32)
        return _OVERFLOW_MODES.get(value) if code == SUCCESS else None

    def _told(
        self, function: str, *arguments: int, kind: type[ctypes.c_int32 | ctypes.c_int64] = ctypes.c_int64
    ) -> tuple[int | None, int]:
        """The code of a function that writes a number to the address after its arguments, and the number.

        None where the release has no such function.
        """
        if function not in self.runtime:
            return None, 0
        value = kind()
        return self.runtime[function](*arguments, ctypes.byref(value)), int(value.value)


def open_device(runtime: Functions, number: int) -> Device:
    """Initialise the runtime and set the device for this thread. Raises HarnessError where there is none."""
    code = runtime["aclInit"](None)
    if code not in (SUCCESS, ALREADY_INITIALISED):
        raise HarnessError(_refused(runtime, "aclInit", code))
    finalise = code == SUCCESS
    code = runtime["aclrtSetDevice"](number)
    if code != SUCCESS:
        message = _refused(runtime, f"aclrtSetDevice({number})", code)
        if finalise and "aclFinalize" in runtime:
            runtime["aclFinalize"]()
        raise HarnessError(message)
    return Device(runtime, number, finalise)


def recent_message(runtime: Functions) -> str:
    """What the libraries last said on this thread; it is forgotten there."""
    if "aclGetRecentErrMsg" not in runtime:
        return ""
    text = runtime["aclGetRecentErrMsg"]()
    return bytes(text).decode(errors="replace").strip()[:MESSAGE_LIMIT] if text else ""


def installed_versions(
    environment: Mapping[str, str], *, install: Sequence[Path] = (Path("/usr/local/Ascend"),)
) -> dict[str, str]:
    """Versions of CANN, driver and firmware, from the files that their packages leave; `unknown` without one."""
    homes = [Path(environment[name]) for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME") if environment.get(name)]
    homes += [place / name for place in install for name in ("cann", "ascend-toolkit/latest", "latest")]
    machine = os.uname().machine
    cann = (home / name.format(machine=machine) for home in homes for name in _CANN_VERSION_FILES)
    return {
        "cann_version": _first_version(cann),
        "driver_version": _first_version(place / "driver" / "version.info" for place in install),
        "firmware_version": _first_version(place / "firmware" / "version.info" for place in install),
    }


def _first_version(files: Iterable[Path]) -> str:
    for file in files:
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if match := _VERSION.search(text):
            return match.group(1)
    return "unknown"


def _refused(runtime: Functions, what: str, code: int) -> str:
    said = recent_message(runtime)
    return (
        f"{what} returned {error_name(code)}{': ' + said if said else ''}; "
        f"see that a device is there and free (npu-smi info), and that its driver fits this CANN"
    )
