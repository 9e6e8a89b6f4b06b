"""The settings of torch that change results: made when a session opens, recorded, and put back when it closes."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import os
import platform
from collections.abc import Callable
from typing import Any

import torch

from aclnn_cts.adapters.protocol import Rejected
from aclnn_cts.core.errors import HarnessError, UsageError

FAULTS: tuple[type[Exception], ...] = tuple(
    kind for name in ("AcceleratorError",) if isinstance(kind := getattr(torch, name, None), type)
)
"""What torch raises when the device itself failed: nothing later in this process can be trusted."""

OUT_OF_MEMORY: tuple[type[Exception], ...] = tuple(
    kind for name in ("OutOfMemoryError",) if isinstance(kind := getattr(torch, name, None), type)
)

DISPATCH_KEYS = {"cpu": "CPU", "cuda": "CUDA", "npu": "PrivateUse1", "xpu": "XPU", "mps": "MPS"}
"""By the type of a device, what torch's dispatcher calls it."""

_REJECTIONS = (IndexError, RuntimeError, TypeError, ValueError)
_NO_MEMORY = "DefaultCPUAllocator: can't allocate memory"
_NO_CLEAR_ERROR = "INTERNAL ASSERT FAILED"
"""What torch says of a mistake of its own, in an exception of the same type."""

_MEASURED = frozenset(
    (
        "device",
        "float32_matmul_precision",
        "flush_denormal",
        "reduced_precision_reduction",
        "tf32",
        "threads",
        "torch_record",
    )
)
"""What is set here, or hashed. That a computation is `deterministic` remains torch's word."""


def find_device(word: str) -> torch.device:
    """The torch device of an option's word, present and usable.

    Raises UsageError for a word that torch does not know, HarnessError for a device that is not here.
    """
    if word.partition(":")[0] == "npu":
        try:
            importlib.import_module("torch_npu")
        except ImportError as error:
            raise HarnessError(
                f"--adapter torch: device={word} needs torch_npu, which does not load here ({error}); install the "
                f"torch_npu that belongs to torch {torch.__version__} and to this CANN"
            ) from None
    try:
        device = torch.device(word)
    except RuntimeError:
        raise UsageError(
            f"--adapter torch: device={word}: torch knows no such device; expected cpu, cuda, cuda:1, npu, ..."
        ) from None
    try:
        torch.zeros(1, device=device).cpu()
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise HarnessError(f"--adapter torch: device={word} cannot be used here: {reason}") from error
    return device


def call_torch(function: Callable[..., Any], *arguments: object, **keywords: object) -> Any:  # noqa: ANN401 - torch's own
    """Call a function of torch's. A clear error of its own is raised as Rejected.

    What says that memory or the device gave out, or that torch itself is broken, is no rejection of the arguments:
    MemoryError for a lack of memory on the CPU, all else as torch raised it.
    """
    try:
        return function(*arguments, **keywords)
    except (*OUT_OF_MEMORY, *FAULTS):
        raise
    except _REJECTIONS as error:
        message = str(error)
        if _NO_MEMORY in message:
            raise MemoryError(message) from error
        if _NO_CLEAR_ERROR in message:
            raise
        raise Rejected(f"{type(error).__name__}: {message}") from error


def synchroniser(device: torch.device) -> Callable[[], object]:
    """What waits for the device's queued work; nothing on the CPU."""
    if device.type == "cpu":
        return lambda: None
    wait: Any = getattr(torch, device.type).synchronize
    return lambda: wait(device)


class Settings:
    """Makes the settings; `environment` is what the manifest records of them, `measured` what of it is no mere word."""

    def __init__(self, device: torch.device, *, threads: int, deterministic: bool, tf32: bool) -> None:
        self.device_name = _device_name(device)
        self._undo: list[Callable[[], object]] = []
        if deterministic and device.type == "cuda":
            # cuBLAS is deterministic only with a fixed workspace, and reads this once.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        self._set(torch.get_num_threads, torch.set_num_threads, threads)
        self._set(
            torch.are_deterministic_algorithms_enabled,
            lambda on: torch.use_deterministic_algorithms(bool(on)),
            deterministic,
        )
        self._set(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "high" if tf32 else "highest")
        switches: list[tuple[Any, str, bool]] = [
            (torch.backends.cuda.matmul, "allow_tf32", tf32),
            (torch.backends.cudnn, "allow_tf32", tf32),
            (torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", False),
            (torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", False),
        ]
        for owner, name, value in switches:
            self._set_attribute(owner, name, value)
        flushes = not torch.set_flush_denormal(False)
        self.environment: dict[str, str] = {
            "implementation": "torch",
            "version": str(torch.__version__),
            "torch": str(torch.__version__),
            "torch_git": str(torch.version.git_version),
            "device": str(device),
            "device_name": self.device_name,
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "threads": str(torch.get_num_threads()),
            "deterministic": str(torch.are_deterministic_algorithms_enabled()).lower(),
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "tf32": str(torch.backends.cuda.matmul.allow_tf32).lower(),
            "reduced_precision_reduction": "false",
            "flush_denormal": "unknown: this processor cannot set it" if flushes else "false",
        }
        self.environment_zh = {"flush_denormal": "未知：该处理器不支持此设置"} if flushes else {}
        if record := _record_hash("torch"):
            self.environment["torch_record"] = f"sha256 {record}"
        if device.type == "cuda":
            self.environment["cuda"] = str(torch.version.cuda)
        if device.type == "npu":
            self.environment["torch_npu"] = str(importlib.import_module("torch_npu").__version__)
        self.measured = _MEASURED | self._versions() | ({"device_name"} if device.type == "cpu" else set())

    def _versions(self) -> frozenset[str]:
        """The versions that torch tells of itself and the installed files tell too."""
        installed = {"torch": _installed("torch"), "torch_npu": _installed("torch_npu")}
        installed["version"] = installed["torch"]
        return frozenset(name for name, found in installed.items() if _same_version(found, self.environment.get(name)))

    def restore(self) -> None:
        """Put back what was there before."""
        while self._undo:
            self._undo.pop()()

    def _set(self, get: Callable[[], Any], put: Callable[[Any], Any], value: object) -> None:
        before = get()
        if before == value:
            # To say so again may take seconds: it loads torch's compiler, to tell that too.
            return
        put(value)
        self._undo.append(lambda: put(before))

    def _set_attribute(self, owner: Any, name: str, value: object) -> None:  # noqa: ANN401 - torch's own namespaces
        self._set(lambda: getattr(owner, name), lambda new: setattr(owner, name, new), value)


def _installed(name: str) -> str | None:
    """The version of a distribution by its installed files, which a module's own word is held against."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _record_hash(name: str) -> str | None:
    """SHA-256 of the list of a distribution's files and their sums, which pip leaves: the files are gigabytes."""
    try:
        record = importlib.metadata.distribution(name).read_text("RECORD")
    except importlib.metadata.PackageNotFoundError:
        return None
    return hashlib.sha256(record.encode()).hexdigest() if record else None


def _device_name(device: torch.device) -> str:
    if device.type == "cpu":
        return platform.processor() or platform.machine() or "cpu"
    namespace: Any = getattr(torch, device.type)
    get_name = getattr(namespace, "get_device_name", None)
    return str(get_name(device)) if get_name is not None else str(device)


def _same_version(installed: str | None, told: str | None) -> bool:
    """Whether the files are of the version that a package tells of itself: PyPI's have no local part (`+cu130`)."""
    if not installed or not told:
        return False
    return told in (installed, f"{installed}+{told.partition('+')[2]}")
