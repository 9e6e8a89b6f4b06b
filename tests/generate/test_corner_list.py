"""The recorded corners: of the shipped specs as they are, and what walks along them find."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from aclnn_cts.core.errors import UsageError
from aclnn_cts.generate.corner_list import (
    corner_list_text,
    corners_path,
    read_corner_list,
    recorded_corners,
)
from aclnn_cts.generate.corner_recording import listed_corners, listed_groups
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import package_folder

SPECS = load_specs()
QUICK_TO_WALK = ("softmax_backward",)
each = pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.stem) for spec in SPECS.values()])


@each
def test_every_product_of_an_operator_has_recorded_corners(spec: Spec) -> None:
    for product in spec.products:
        found = recorded_corners(spec, product)
        assert found is not None, f"run `aclnn-cts spec corners {spec.stem} --record`"
        assert set(found.reachable_corners(heavy=True)) - set(found.reachable_corners(heavy=False)) <= {"regime: heavy"}
        assert len(list(found.reachable_corners(heavy=True))) == len(set(found.reachable_corners(heavy=True)))


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(spec, id=spec.stem, marks=() if spec.stem in QUICK_TO_WALK else pytest.mark.slow)
        for spec in SPECS.values()
    ],
)
def test_the_recorded_corners_are_those_of_a_walk(spec: Spec) -> None:
    """On the first products alone: those of all are recorded at once."""
    recorded = read_corner_list(spec, package_folder())
    assert recorded is not None
    assert recorded.groups[0] == next(listed_groups(spec)), f"run `aclnn-cts spec corners {spec.stem} --record`"


def test_the_recorded_file_is_written_from_its_list() -> None:
    spec = SPECS["aclnnMoeTokenPermuteGrad"]  # two of its products have the same corners
    assert corners_path(package_folder(), spec.stem).read_bytes() == corner_list_text(listed_corners(spec))


def test_a_list_of_another_spec_says_nothing(tmp_path: Path) -> None:
    spec = SPECS["aclnnSoftmaxBackward"]
    path = corners_path(tmp_path, spec.stem)
    assert read_corner_list(spec, tmp_path) is None
    path.parent.mkdir()
    shutil.copy(corners_path(package_folder(), "glu_backward"), path)
    assert read_corner_list(spec, tmp_path) is None
    path.write_text('{"format": "aclnn-cts/corners/1"}')
    with pytest.raises(UsageError, match=r"softmax_backward\.json.*spec corners --record"):
        read_corner_list(spec, tmp_path)
