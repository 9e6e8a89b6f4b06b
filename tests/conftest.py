"""For all tests: examples are not timed, since the machine does other things too, and text is held by snapshots.

A snapshot is a file `__snapshots__/<module>/<test>.txt`. `pytest --snapshot-update` writes those that changed.
"""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

from tests.support.ran import make_key, ran

__all__ = ["make_key", "ran"]
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    """Thousands of collected tests live to the end: the cyclic collector need not look through them each time."""
    gc.collect()
    gc.freeze()


class TextSnapshot(SingleFileSnapshotExtension):
    """The text of whatever is compared, one file a test."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@pytest.fixture(name="snapshot")
def text_snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Compares with the test's own file: `assert text == snapshot`."""
    return snapshot.use_extension(TextSnapshot)
