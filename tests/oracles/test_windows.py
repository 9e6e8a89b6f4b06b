"""Cells of windows: positions within planes of two and of three dimensions, and which places name a cell."""

from __future__ import annotations

import numpy as np

from aclnn_cts.oracles._windows import naming, within_planes


def test_positions_count_within_the_last_dimensions() -> None:
    positions = np.array([0, 3, 5])
    assert within_planes(positions.reshape(3, 1, 1), (3, 2, 3)).reshape(-1).tolist() == [0, 9, 17]
    assert within_planes(positions.reshape(3, 1, 1, 1), (3, 1, 2, 3), 3).reshape(-1).tolist() == [0, 9, 17]
    assert within_planes(positions.reshape(1, 3, 1), (3, 2, 3), 3).reshape(-1).tolist() == [0, 3, 5]


def test_the_places_that_name_a_cell_are_in_their_order() -> None:
    cells = np.array([[2, 0], [2, 3], [2, 0]])
    assert naming(cells, 5).tolist() == [[1, 5, -1], [-1, -1, -1], [0, 2, 4], [3, -1, -1], [-1, -1, -1]]


def test_no_place_names_a_cell_of_nothing() -> None:
    assert naming(np.zeros((0, 1), np.int64), 2).tolist() == [[-1], [-1]]
