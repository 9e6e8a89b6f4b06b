"""Findings of an earlier run, which a gate does not count again."""

from __future__ import annotations

from pathlib import Path

from aclnn_cts.core.errors import UsageError
from aclnn_cts.store.run_directory import FAILURES

_SUFFIX = ".json"


def known_findings(path: Path) -> frozenset[str]:
    """The names of the trial files of a run's findings, or of the folder that a gate wrote them to.

    Finding.file is a function of what fails, so that equal findings of two runs have one name. Raises UsageError where
    there is no such folder.
    """
    for folder in (path / FAILURES, path):
        try:
            return frozenset(file.name for file in folder.iterdir() if file.suffix == _SUFFIX)
        except NotADirectoryError:
            break
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(f"--baseline {path}: cannot be read: {error.strerror}") from error
    raise UsageError(f"--baseline {path}: expected the directory of a run, or the folder of a gate's --aclnn-failures")
