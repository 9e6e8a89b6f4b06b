"""Lint and sizes that a floor division gives: what it leaves over may vary, what it fixes has to be guarded."""

from __future__ import annotations

from pathlib import Path

import pytest

from aclnn_cts.generate.proof import prove_spec
from aclnn_cts.speclang.load import lint_files

POOL = """\
operator: aclnnPoolBackward
document: {title: aclnnPoolBackward, language: en}
products: [atlas-a2]
let:
  outputs: (dim(self, 2) + 2*pad - kernel) // stride + 1
defaults:
  null: ACLNN_ERR_PARAM_NULLPTR
  dtypes: {is: [FLOAT, FLOAT16], status: ACLNN_ERR_PARAM_INVALID}
  same_dtype_as: ACLNN_ERR_PARAM_INVALID
  range: ACLNN_ERR_PARAM_INVALID
  empty: {breaks: [{N: 0}]}
parameters:
  - {name: self, type: const aclTensor *, shape: "[N, C, H]", rank: 3}
  - {name: kernel, type: int64_t, range: [1, 255]}
  - {name: stride, type: int64_t, range: [1, 255]}
  - {name: pad, type: int64_t, range: {is: [0, (kernel - 1) // 2], requires: [kernel.range]}}
  - {name: gradOutput, type: const aclTensor *, shape: "[N, C, OL]", same_dtype_as: self, rank: 3}
  - {name: gradInput, type: aclTensor *, same_shape_as: self, same_dtype_as: self}
draws:
  - {name: N, in: [1, 9]}
  - {name: C, in: [1, 9]}
  - {name: kernel, in: [1, 255]}
  - {name: stride, in: [1, 255]}
  - {name: pad, in: [0, (kernel - 1) // 2]}
SIZES
constraints:
  - {id: gradOutput.batch, axis: 0, is: "dim(self, 0)"}
  - {id: gradOutput.channels, axis: 1, is: "dim(self, 1)"}
  - {id: gradOutput.windows, axis: 2, is: outputs, requires: [self.rank, kernel.range, stride.range, pad.range]}
"""
FORWARD = """\
  - {name: H, in: ["kernel - 2*pad", 9999]}
  - {name: OL, is: (H + 2*pad - kernel) // stride + 1}
"""
BACKWARD = """\
  - {name: OL, in: [1, 99]}
  - {name: slack, in: [0, stride - 1]}
  - {name: H, is: (OL - 1)*stride + kernel - 2*pad + slack}
"""


def doubts(text: str, folder: Path) -> list[str]:
    path = folder / "pool_backward.yaml"
    path.write_text(text, encoding="utf-8")
    [found], messages = lint_files([path])
    assert messages == []
    return prove_spec(found.spec, found.problems, drawings=60)


@pytest.mark.parametrize("sizes", [FORWARD, BACKWARD])
def test_what_a_floor_division_leaves_over_is_no_mistake(sizes: str, tmp_path: Path) -> None:
    assert doubts(POOL.replace("SIZES\n", sizes), tmp_path) == []


@pytest.mark.parametrize("sizes", [FORWARD, BACKWARD])
def test_a_size_that_nothing_guards_is_a_mistake(sizes: str, tmp_path: Path) -> None:
    text = "".join(line for line in POOL.splitlines(keepends=True) if "id: gradOutput.windows" not in line)
    found = doubts(text.replace("SIZES\n", sizes), tmp_path)
    assert any("gradOutput[2]: one more breaks no constraint" in line for line in found), found
