"""Where the libraries of a CANN installation lie: in which folders, under which names, and which never together.

The order is that of the toolkit's own environment: what its `set_env.sh` exports decides, then the usual places of an
installation, then whatever the loader finds. Custom operators stand before the built-in ones, since a library of theirs
that exports the same symbol takes its place.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aclnn_cts.core.errors import UsageError

RUNTIME = ("libacl_rt.so", "libascendcl.so")
"""The runtime under its new and its classic name; an installation that has both means the first."""
META = ("libnnopbase.so",)
CLASSIC = ("libopapi.so",)
SPLIT = (
    "libopapi_math.so",
    "libopapi_nn.so",
    "libopapi_cv.so",
    "libopapi_transformer.so",
    "libopapi_oam.so",
    "libopapi_legacy.so",
)
"""What replaced the classic library: one a family. The second needs the first, hence the order."""
_BETWEEN = (
    "libaclnn_math.so",
    "libaclnn_ops_infer.so",
    "libaclnn_ops_train.so",
    "libaclnn_sparse.so",
    "libaclnn_fft.so",
    "libaclnn_rand.so",
)
"""The names of the releases between the two."""
_CUSTOM = "libcust_opapi.so"

_PREFIXES = ("/usr/local/Ascend/cann", "/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/latest")
_OLD_OPERATORS = "built-in/op_impl/ai_core/tbe/op_api/lib/linux"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to load, in this order: file paths, or bare names that the loader is left to find."""

    runtime: str
    meta: str
    operators: tuple[str, ...]
    custom: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """All of them. Custom operators stand before the built-in ones, whose symbols they may replace."""
        return (self.runtime, self.meta, *self.custom, *self.operators)


def folders(environment: Mapping[str, str], *, prefixes: Sequence[str] = _PREFIXES) -> tuple[Path, ...]:
    """The folders that may hold the runtime and the built-in operators, the first that has a library decides."""
    names = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH")
    found = [Path(environment[name]) for name in names if environment.get(name)]
    if environment.get("ASCEND_OPP_PATH"):
        packages = Path(environment["ASCEND_OPP_PATH"]).parent
        # The machine's own first: a package made for several carries them side by side.
        machines = sorted(("x86_64", "aarch64"), key=lambda name: name != platform.machine())
        found += [packages / f"{machine}-linux" for machine in machines]
    found += map(Path, prefixes)
    return tuple(dict.fromkeys(folder / "lib64" for folder in found))


def custom_folders(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The folders of custom operators: those named outright, then the vendors in the order of their own list."""
    found = [Path(place) for place in environment.get("ASCEND_CUSTOM_OPP_PATH", "").split(":") if place]
    if environment.get("ASCEND_OPP_PATH"):
        vendors = Path(environment["ASCEND_OPP_PATH"]) / "vendors"
        found += [vendors / vendor for vendor in _load_priority(vendors / "config.ini")]
    return tuple(dict.fromkeys(folder / "op_api" / "lib" for folder in found))


def search(environment: Mapping[str, str], *, prefixes: Sequence[str] = _PREFIXES) -> Chosen:
    """What an installation offers. A library that is in no folder is left to the loader, by its name alone."""
    places = folders(environment, prefixes=prefixes)
    return Chosen(
        runtime=next(_present(places, RUNTIME), RUNTIME[-1]),
        meta=next(_present(places, META), META[-1]),
        operators=_operators(environment, places),
        custom=tuple(_present(custom_folders(environment), (_CUSTOM,))),
    )


def given(files: Sequence[str]) -> tuple[str, ...]:
    """The libraries that were named, in the order of their names.

    Raises UsageError where the classic library stands beside the split ones: both register the same operators, and a
    process that holds the two answers with either.
    """
    names = {Path(file).name for file in files}
    split = sorted(names.intersection(SPLIT))
    if names.intersection(CLASSIC) and split:
        raise UsageError(
            f"library={','.join(files)}: {CLASSIC[0]} and {split[0]} register the same operators and must never be "
            f"loaded together; name the one or the other"
        )
    for file in files:
        if "/" in file and not Path(file).is_file():
            raise UsageError(f"library={file}: there is no such file; expected a shared library")
    return tuple(files)


def _operators(environment: Mapping[str, str], places: Sequence[Path]) -> tuple[str, ...]:
    for place in places:
        for family in (SPLIT, CLASSIC, _BETWEEN):
            if found := tuple(_present((place,), family)):
                return found
    if environment.get("ASCEND_OPP_PATH"):
        old = Path(environment["ASCEND_OPP_PATH"]) / _OLD_OPERATORS / platform.machine()
        if found := tuple(_present((old,), CLASSIC)):
            return found
    return CLASSIC


def _present(places: Sequence[Path], names: Sequence[str]) -> Iterator[str]:
    for place in places:
        for name in names:
            if (place / name).is_file():
                yield str(place / name)


def _load_priority(file: Path) -> list[str]:
    """The vendors of `load_priority=a,b`; none where there is no such file or line."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    for line in lines:
        key, equals, value = line.partition("=")
        if equals and key.strip() == "load_priority":
            return [vendor.strip() for vendor in value.split(",") if vendor.strip()]
    return []
