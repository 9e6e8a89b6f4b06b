from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.formula import slices
from aclnn_cts.formula.expectation import FormulaOracle
from aclnn_cts.oracles import registry
from aclnn_cts.speclang.load import load_specs
from tests.oracles.support import make_call

OURS = {spec.stem for spec in load_specs().values()}
TWICE = """
from __future__ import annotations
from dataclasses import dataclass

@dataclass(frozen=True)
class Factor:
    value: float = 2.0

def backward(f, x):
    return {"out": Factor().value * x}
"""


def write(folder: Path, stem: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{stem}.yaml").write_text("operator: aclnnTwice\n")
    file = folder / f"{stem}.py"
    file.write_text(text)
    return file


def test_every_spec_has_an_oracle_that_loads() -> None:
    assert set(registry.available()) == OURS
    for stem in OURS:
        assert registry.load(stem) == FormulaOracle(registry.load_formula(stem))


def test_an_oracle_beside_a_spec_is_found_by_path(tmp_path: Path) -> None:
    file = write(tmp_path, "twice", TWICE)
    (tmp_path / "helper.py").write_text("raise RuntimeError")
    assert set(registry.available([tmp_path, tmp_path])) == OURS | {"twice"}
    assert registry.available([tmp_path])["twice"] == str(file)
    oracle = registry.load("twice", folders=[tmp_path])
    assert oracle(make_call({"x": np.arange(3.0)}, out=(3,)))["out"].value.tolist() == [0.0, 2.0, 4.0]


def test_a_formula_with_leading_axes_answers_a_large_call_in_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'def backward(f, x, dim):\n    return {"out": x.sum(dim, keepdims=True) - x}\n\n\nLEADING = "dim"\n'
    write(tmp_path, "rows", text)
    in_slices = registry.load_blocks("rows", elementwise=False, folders=[tmp_path])
    assert in_slices is not None
    monkeypatch.setattr(slices, "_SLICE", 4)
    call = make_call({"x": np.arange(6.0).reshape(3, 2)}, {"dim": -1, "out": Tensor(shape=(3, 2), dtype="FLOAT")})
    parts = [(block.place, block.outputs["out"].value.tolist()) for block in in_slices(call) if block is not None]
    assert parts == [(slice(0, 4), [[1.0, 0.0], [3.0, 2.0]]), (slice(4, 6), [[5.0, 4.0]])]


def test_listing_runs_nothing(tmp_path: Path) -> None:
    write(tmp_path, "loud", "raise RuntimeError")
    assert "loud" in registry.available([tmp_path])


def test_equal_stems_in_different_folders_of_two_runs_do_not_meet(tmp_path: Path) -> None:
    write(tmp_path / "a", "twice", TWICE)
    write(tmp_path / "b", "twice", TWICE.replace("2.0", "3.0"))
    x = make_call({"x": np.ones(())}, out=())
    assert registry.load("twice", folders=[tmp_path / "a"])(x)["out"].value == 2
    assert registry.load("twice", folders=[tmp_path / "b"])(x)["out"].value == 3


@pytest.mark.parametrize("stem", ["softmax_backward", "twice"])
def test_a_stem_claimed_twice_is_an_error(tmp_path: Path, stem: str) -> None:
    write(tmp_path / "a", "twice", TWICE)
    file = write(tmp_path / "b", stem, TWICE)
    with pytest.raises(UsageError, match=f"{file}.*{stem}.*already"):
        registry.available([tmp_path / "a", tmp_path / "b"])


def test_a_missing_oracle_names_the_nearest_and_the_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"did you mean 'softmax_backward'.*softmax_backwards\.py"):
        registry.load("softmax_backwards", folders=[tmp_path])
    for stem in ("registry", "_windows", "../softmax_backward"):
        with pytest.raises(UsageError, match="no oracle"):
            registry.load(stem)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 +", "cannot be imported .SyntaxError"),
        ("raise ValueError('why')", "cannot be imported .ValueError: why"),
        ("expected = 3", "the oracle states no formula"),
        ("", "the oracle states no formula"),
    ],
)
def test_a_file_that_is_no_oracle_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path, "broken", text)
    with pytest.raises(UsageError, match=f"{file}.*{message}"):
        registry.load("broken", folders=[tmp_path])
