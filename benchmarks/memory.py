"""What this process holds of memory, and what it held at most (Linux)."""

from __future__ import annotations

from pathlib import Path


def resident() -> int:
    """Bytes of resident memory."""
    return _status("VmRSS")


def peak() -> int:
    """The most bytes since `forget_peak`, or since the process began."""
    return _status("VmHWM")


def forget_peak() -> None:
    """Measure the most anew (proc(5), `clear_refs`)."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    raise LookupError(name)
