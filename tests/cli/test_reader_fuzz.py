"""Whatever a file holds, a reader reads it or refuses it with a documented error (longer: `make soak-hostile`)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.hostile_files import KINDS, Kind, Prepared, prepared, read_mutated

EXAMPLES = {"waiver": 40, "spec": 15, "matrix": 10, "bundle": 60, "run": 15, "evidence": 4}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepared(tmp_path_factory.mktemp("shared"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_mutated_file_is_read_or_refused(kind: Kind, shared: Prepared, tmp_path: Path) -> None:
    @settings(
        max_examples=EXAMPLES.get(kind.name, 150),
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.randoms(use_true_random=False))
    def read(random: Random) -> None:
        read_mutated(kind, random, shared, tmp_path)

    read()
