from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator

import pytest

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.sandbox.arena import Arena
from aclnn_cts.sandbox.process_tree import allocated_bytes

MIB = 1 << 20


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena()
    yield made
    made.close()


def test_nobody_changes_its_size_or_adds_a_seal(arena: Arena) -> None:
    for size in (0, 1 << 50):
        with pytest.raises(PermissionError):
            os.ftruncate(arena.descriptor, size)
    with pytest.raises(PermissionError):
        fcntl.fcntl(arena.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)


def test_it_takes_no_memory_until_it_is_written_to(arena: Arena) -> None:
    assert allocated_bytes(arena.descriptor) == 0
    arena.lend(30 * MIB)[:] = 1
    assert 30 * MIB <= allocated_bytes(arena.descriptor) <= 31 * MIB


def test_what_is_written_beyond_it_is_noticed_and_given_back(arena: Arena) -> None:
    arena.lend(2 * MIB)[:] = 1
    assert arena.stray_bytes == 0
    os.pwrite(arena.descriptor, bytes(8 * MIB), arena.size + MIB)
    assert arena.stray_bytes > 0
    arena.drop_strays()
    assert (arena.stray_bytes, allocated_bytes(arena.descriptor)) == (0, 2 * MIB)


def test_more_than_the_machine_has_is_refused(arena: Arena) -> None:
    with pytest.raises(
        HarnessError, match=r"no memory for buffers of \d+ bytes: at most \d+ fit here; lower --max-bytes"
    ):
        arena.lend(1 << 50)
    assert arena.lend(64).size == 64
