"""What the nodes of a cluster run, as a folder: the code of the head's own machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from aclnn_cts.adapters.registry import find_module, parse_adapter_word
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import quote


def ship(folder: Path, adapter: str, spec_folders: Sequence[Path]) -> None:
    """Lay out what nodes run: this package, the user's specs and oracles, and an adapter of the user's own.

    Raises UsageError where the adapter's module is not found from here.
    """
    package = Path(__file__).resolve().parents[1]
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(package, folder / "aclnn_cts", ignore=ignore)
    for number, specs in enumerate(spec_folders):
        shutil.copytree(specs, folder / "specs" / str(number), ignore=ignore)
    for path in _own_module(adapter):
        target = folder / path.name
        if path.is_dir():
            shutil.copytree(path, target, ignore=ignore)
        else:
            shutil.copy2(path, target)


def _own_module(adapter: str) -> Iterator[Path]:
    """The file or folder of the module that an adapter's word names, where it lies in no installation."""
    top = parse_adapter_word(adapter).factory.partition(":")[0].partition(".")[0]
    if top == "aclnn_cts":
        return
    found = find_module(top)
    if found is None:
        raise UsageError(
            f"--adapter {adapter}: no module {quote(top)}; expected package.module:factory that can be imported "
            f"from here "
            "(is its folder on PYTHONPATH?)"
        )
    if found.origin is None:
        # A package without __init__.py.
        yield from map(Path, found.submodule_search_locations or ())
        return
    if {"site-packages", "dist-packages"} & set(Path(found.origin).parts):
        return
    origin = Path(found.origin)
    yield origin.parent if origin.name == "__init__.py" else origin
    # What it imports from beside it, as a script would find it.
    if origin.name != "__init__.py":
        yield from (each for each in origin.parent.glob("*.py") if each != origin)
