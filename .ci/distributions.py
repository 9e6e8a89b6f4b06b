"""Check that wheel and sdist hold every file of the package, linked folders included, as ordinary files."""

from __future__ import annotations

import os
import sys
import tarfile
import zipfile
from pathlib import Path

FOR_AUTHORS = ("aclnn_cts/specs/claims/", "aclnn_cts/specs/catalogue.json")
"""What the sdist alone holds."""
LINKED = ("adapters", "oracles", "reports", "specs", "suites", "waivers")


def expected() -> set[str]:
    """Paths of the checkout's package, links followed."""
    found = set()
    for folder, _, names in os.walk("aclnn_cts", followlinks=True):
        if Path(folder).name != "__pycache__":
            found |= {f"{folder}/{name}" for name in names}
    return found


def in_wheel(path: Path) -> set[str]:
    """Paths of the ordinary files in a wheel."""
    with zipfile.ZipFile(path) as archive:
        return {entry.filename for entry in archive.infolist() if entry.external_attr >> 28 in (0, 8)}


def in_sdist(path: Path) -> set[str]:
    """Paths, below the top folder, of the ordinary files in an sdist (a hard link is a file that stands twice)."""
    with tarfile.open(path) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isreg() or member.islnk()}


def main(folder: Path) -> int:
    """Exit code 1 where a file is missing from either, or the folder does not hold exactly one of each."""
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    files = expected()
    wrong = 0
    for name in LINKED:
        if not any(path.startswith(f"aclnn_cts/{name}/") for path in files):
            print(f"aclnn_cts/{name}: holds no file; is the link broken?", file=sys.stderr)
            wrong = 1
    authors = {name for name in files if name.startswith(FOR_AUTHORS)}
    for path, wanted, held in ((wheel, files - authors, in_wheel(wheel)), (sdist, files, in_sdist(sdist))):
        for name in sorted(wanted - held):
            print(f"{path.name}: {name} is missing or no ordinary file", file=sys.stderr)
            wrong = 1
        for name in sorted(authors & held - wanted):
            print(f"{path.name}: {name} is for authors alone", file=sys.stderr)
            wrong = 1
        print(f"{path.name}: {len(wanted & held)} of {len(wanted)} files of the package")
    return wrong


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
