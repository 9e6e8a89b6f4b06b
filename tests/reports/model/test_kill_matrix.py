from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from aclnn_cts.reports.model import kill_matrix
from aclnn_cts.reports.model.kill_matrix import power_of, shipped_power
from aclnn_cts.selftest.kill_matrix import KillMatrix
from aclnn_cts.store.harness_parts import harness_parts, judging_hash
from aclnn_cts.store.provenance import Beginning

EMPTY = KillMatrix(profile="standard", seeds=(0,), faults=(), decoys=())


def test_without_a_matrix_there_is_nothing_to_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kill_matrix, "shipped_matrix", lambda: tmp_path / "matrix.json")
    assert shipped_power() is None


def test_a_report_is_told_in_what_the_harness_is_another_one() -> None:
    unknown = power_of(EMPTY)
    assert (unknown.another, unknown.judging_sha256) == (None, "")
    made = Beginning(["faults"]).made_by()
    same = power_of(msgspec.structs.replace(EMPTY, made_by=made))
    assert (same.another, same.judging_sha256) == ((), judging_hash())
    parts = {name: "0" if name in ("judgement", "specs") else sha for name, sha in harness_parts().items()}
    other = power_of(msgspec.structs.replace(EMPTY, made_by=msgspec.structs.replace(made, parts=parts)))
    assert other.another == ("judgement", "specs")
