"""Sizes that are a multiple of what is drawn, that a choice of no argument decides, and those of what may be null."""

from __future__ import annotations

from pathlib import Path

from aclnn_cts.core.case import Case
from aclnn_cts.core.regime import Regime
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.proof import prove_spec
from aclnn_cts.generate.recover import recover_drawing
from aclnn_cts.generate.regime_cells import planned_cells, reachable_regimes
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import QUICK
from aclnn_cts.speclang.build import build_interface, build_spec
from aclnn_cts.speclang.load import lint_files
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import package_folder
from aclnn_cts.speclang.yaml_file import parse_yaml, read_yaml

AXES = '  - {id: angle.axes, that: "p == a and q == 1 or p == 1 and q == b", breaks: [{P: X + 1}, {Q: Y + 1}]}\n'
TURN = f"""\
operator: aclnnTurnGrad
document: {{title: aclnnTurnGrad, language: en}}
products: [atlas-a2]
let: {{a: "dim(x, 0)", b: "dim(x, 1)", p: "dim(angle, 0)", q: "dim(angle, 1)"}}
defaults:
  null: ACLNN_ERR_PARAM_NULLPTR
  dtypes: {{is: [FLOAT, FLOAT16], status: ACLNN_ERR_PARAM_INVALID, group: dtype}}
  rank: {{is: 3, group: rank}}
  empty: {{breaks: [{{H: 0}}]}}
parameters:
  - {{name: x, type: const aclTensor *, shape: "[X, Y, 2*H]"}}
  - {{name: angle, type: const aclTensor *, shape: "[P, Q, 2*H]", same_dtype_as: x}}
  - {{name: y, type: const aclTensor *, optional: true, same_shape_as: x, same_dtype_as: x}}
  - {{name: out, type: aclTensor *, same_shape_as: x, same_dtype_as: x}}
  - {{name: sums, type: aclTensor *, shape: "[*angle] if given(y) else [1, 1, 0]", empty: none, same_dtype_as: x}}
draws:
  - {{name: own, one_of: [0, 1]}}
  - {{name: X, in: [1, null]}}
  - {{name: Y, in: [1, null]}}
  - {{name: H, in: [1, null]}}
  - {{name: P, is: X if own == 0 else 1}}
  - {{name: Q, is: Y if own == 1 else 1}}
constraints:
  - {{id: x.even, that: "dim(x, 2) % 2 == 0", breaks: [{{"x[2]": "dim(x, 2) + 1", "angle[2]": "dim(x, 2) + 1"}}]}}
  - {{id: angle.last, kind: size, of: angle, axis: 2, is: "dim(x, 2)"}}
{AXES}\
  - {{id: sums.shape, kind: shape, is: "[*angle]", when: given(y)}}
  - {{id: sums.none, that: numel(sums) == 0, when: not given(y), breaks: [{{"sums[2]": "2"}}]}}
clauses:
  function: [{{say: [x.even, angle.last, angle.axes, sums.shape, sums.none], en: Rules., zh: 规则。}}]
"""


def built(text: str = TURN) -> Spec:
    interface, _ = build_interface(read_yaml(package_folder() / "interface.yaml"))
    spec, problems = build_spec(parse_yaml(text, name="turn.yaml"), stem="turn", interface=interface)
    assert not problems.messages
    assert spec is not None
    return spec


SPEC = built()
SAMPLER = Sampler(SPEC, Target())


def valid(count: int = 80, *, budget: int | None = None) -> list[Case]:
    return [SAMPLER.case(SAMPLER.draw(choices, budget=budget)) for choices in stream_block(0, "turn", 0, count)]


def doubts(text: str, folder: Path) -> list[str]:
    path = folder / "turn_grad.yaml"
    path.write_text(text, encoding="utf-8")
    [found], messages = lint_files([path])
    assert messages == []
    return prove_spec(found.spec, found.problems, drawings=120)


def test_a_multiple_counts_in_full() -> None:
    sizes = [tensor.numel for case in valid(budget=48) for _, tensor in case.tensors()]
    assert max(sizes) in range(40, 49)


def test_an_even_last_dimension_is_never_odd() -> None:
    assert set(QUICK).difference(reachable_regimes(SPEC, QUICK)) == {Regime.ODD}
    assert not any(cell.startswith("odd ") for cell in planned_cells(SAMPLER, QUICK))
    odd = built(TURN.replace('shape: "[P, Q, 2*H]"', 'shape: "[P, Q, H]"'))
    assert reachable_regimes(odd, QUICK) == QUICK


def test_a_multiple_is_recovered_from_a_case() -> None:
    for case in valid():
        drawing = recover_drawing(SAMPLER, case)
        assert drawing is not None
        assert [2 * drawing.names["H"]] == [tensor.shape[2] for name, tensor in case.tensors() if name == "x"]


def test_a_condition_of_a_shape_sees_a_null_pointer() -> None:
    met = set()
    for case in valid():
        tensors = dict(case.tensors())
        assert tensors["sums"].shape == (tensors["angle"].shape if "y" in tensors else (1, 1, 0))
        met.add("y" in tensors)
    assert met == {False, True}


def test_a_size_that_another_choice_gives_is_free(tmp_path: Path) -> None:
    assert doubts(TURN, tmp_path) == []


def test_a_size_that_no_choice_gives_is_not(tmp_path: Path) -> None:
    found = doubts(TURN.replace(AXES, "").replace("angle.axes, ", ""), tmp_path)
    assert any("angle[0]: one more" in line for line in found), found
