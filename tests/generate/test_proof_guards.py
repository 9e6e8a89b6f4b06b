"""Lint notices shapes and dtypes that no valid call has and no rule of the spec rejects."""

from __future__ import annotations

import pytest

from aclnn_cts.generate.proof import prove_spec
from aclnn_cts.speclang.build import build_spec
from aclnn_cts.speclang.yaml_file import parse_yaml
from tests.support.spec_text import interface

MEANS = """\
operator: aclnnMeans
document: {title: aclnnMeans, language: en}
products: [atlas-a2]
parameters:
  - {name: x, type: "const aclTensor *", role: input, shape: "[N, M]", dtypes: [FLOAT, FLOAT16]}
  - {name: mean, type: "const aclTensor *", role: input, shape: "[N, 1]", dtype: as x}
  - {name: weight, type: "const aclTensor *", role: input, shape: "[M]", dtype: as x, optional: true}
  - {name: bias, type: "const aclTensor *", role: input, shape: "[M]", dtype: as weight or x}
  - {name: out, type: "aclTensor *", role: output, shape: "[N, M]", dtype: as x}
draws:
  - {name: N, in: [2, 9]}
  - {name: M, in: [2, 9]}
constraints:
  - {id: x.dtype, kind: dtype, of: x, in: [FLOAT, FLOAT16], strength: limit}
  - {id: mean.dtype, kind: same_dtype, of: mean, as: x, strength: limit, requires: [x.dtype]}
  - {id: weight.dtype, kind: same_dtype, of: weight, as: x, strength: limit, requires: [x.dtype]}
  - {id: bias.dtype, kind: same_dtype, of: bias, as: weight or x, strength: limit, requires: [x.dtype, weight.dtype]}
  - {id: out.dtype, kind: same_dtype, of: out, as: x, strength: limit, requires: [x.dtype]}
  - {id: x.rank, kind: rank, of: x, in: [2, 2], strength: limit}
  - {id: mean.shape, kind: shape, of: mean, is: "[dim(x, 0), 1]", strength: limit, requires: [x.rank]}
  - {id: weight.shape, kind: shape, of: weight, is: "[dim(x, 1)]", strength: limit, requires: [x.rank]}
  - {id: bias.shape, kind: shape, of: bias, is: "[dim(x, 1)]", strength: limit, requires: [x.rank]}
  - {id: out.shape, kind: shape, of: out, is: "[*x]", strength: limit, requires: [x.rank]}
clauses:
  limits:
    - {en: "All of it.", zh: "全部。", constraints: [x.dtype, mean.dtype, weight.dtype, bias.dtype,
       out.dtype, x.rank, mean.shape, weight.shape, bias.shape, out.shape]}
defaults: {null: none, strided: none, empty: none, formats: none}
"""
SHAPE = 'kind: shape, of: mean, is: "[dim(x, 0), 1]", strength: limit, requires: [x.rank]'
NUMBER = (
    'kind: holds, that: "numel(mean) == dim(x, 0)", strength: limit, requires: [x.rank], breaks: [{"mean[0]": N + 1}]'
)
RUN = (
    "draws:\n  - {name: N, in: [2, 9]}\n",
    "draws:\n  - {name: N, in: [2, 9]}\n  - {run: R, length: [1, 4], numel: N}\n",
)


def doubts(*changes: tuple[str, str]) -> list[str]:
    text = MEANS
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    spec, problems = build_spec(parse_yaml(text, name="means.yaml"), stem="means", interface=interface())
    assert spec is not None
    assert not problems.messages
    found = prove_spec(spec, problems, drawings=40)
    return [message.partition(" breaks no constraint")[0] for message in found]


def test_sound_spec_raises_no_doubt() -> None:
    assert doubts() == []


def test_rule_on_the_number_of_elements_does_not_guard_a_shape() -> None:
    assert doubts((SHAPE, NUMBER)) == ["means.yaml:6: mean: another shape of as many elements"]


def test_tensor_that_is_drawn_in_all_shapes_of_its_number_needs_no_rule_on_the_shape() -> None:
    assert doubts((SHAPE, NUMBER), RUN, ('shape: "[N, 1]"', 'shape: "[*R]"')) == []


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("as: weight, strength", ["means.yaml:8: bias: a dtype that valid calls never have there"]),
        ("as: x, strength", []),
    ],
)
def test_dtype_bound_to_an_optional_tensor_is_unguarded_without_it(rule: str, found: list[str]) -> None:
    assert doubts(("as: weight or x, strength", rule)) == found
