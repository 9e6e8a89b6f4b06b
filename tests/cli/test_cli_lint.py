"""Lint finds in a spec file what reading shows and what only drawing shows, and names the line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.dtypes import DTYPES, FLOAT8, component, numpy_dtype
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.rounding import to_dtype
from aclnn_cts.core.target import Target
from aclnn_cts.execution.judging import as_operands
from aclnn_cts.judgement.model import load_precision
from tests.cli.conftest import named
from tests.support.spec_text import spec_from_text

Call = Callable[..., Any]

SOUND = """\
operator: aclnnTakeColumns
document: {title: aclnnTakeColumns, language: en}
products: [atlas-training, atlas-a2]
parameters:
  - {name: x, type: "const aclTensor *", role: input, shape: "[N, M]", dtypes: [FLOAT, FLOAT16]}
  - {name: width, type: int64_t, role: attribute}
  - {name: out, type: "aclTensor *", role: output, shape: "[N, width]", dtype: "as x"}
draws:
  - {name: N, in: [1, 1000]}
  - {name: M, in: [3, 1000]}
  - {name: width, in: [1, M]}
constraints:
  - {id: x.dtype, kind: dtype, of: x, in: [FLOAT, FLOAT16], strength: limit}
  - {id: out.dtype, kind: same_dtype, of: out, as: x, strength: limit, requires: [x.dtype]}
  - {id: x.rank, kind: rank, of: x, in: [2, 2], strength: limit}
  - {id: out.rank, kind: rank, of: out, in: [2, 2], strength: limit}
  - {id: x.columns, kind: size, of: x, axis: 1, is: "max(dim(x, 1), 3)", strength: limit, breaks: [{M: 2, width: 1}]}
  - {id: width.range, kind: range, of: width, in: [1, "dim(x, 1)"], strength: limit, requires: [x.rank]}
  - {id: out.rows, kind: size, of: out, axis: 0, is: "dim(x, 0)", strength: limit, requires: [x.rank]}
  - {id: out.columns, kind: size, of: out, axis: 1, is: width, strength: limit}
clauses:
  limits: [{en: "All of it.", zh: "全部。",
     constraints: [x.dtype, out.dtype, x.rank, out.rank, x.columns, width.range, out.rows, out.columns]}]
  params.out: []
defaults: {null: none, strided: none, empty: none, formats: none}
"""
COLUMNS = "is: width, strength: limit"
LISTED_CODE = "strength: listed, status: ACLNN_ERR_PARAM_INVALID"


def lint(call: Call, folder: Path, text: str, *options: str) -> Any:
    (folder / "take_columns.yaml").write_text(text, encoding="utf-8")
    return call("spec", "lint", "take_columns.yaml", *options)


def changed(*changes: tuple[str, str]) -> str:
    text = SOUND
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_a_sound_file(call: Call, snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    called = lint(call, tmp_path, SOUND)
    assert called.code == 0
    assert called == snapshot


@pytest.mark.slow
def test_the_files_of_the_package(call: Call) -> None:
    called = call("spec", "lint")
    assert (called.code, called.out) == (0, "")


@named(
    ("changes", "line"),
    [
        ("unknown_key", [("role: input, shape", "rolle: input, shape")], 5),
        ("unknown_dtype", [("in: [FLOAT, FLOAT16]", "in: [FLOAT32, FLOAT16]")], 13),
        ("unknown_name", [('in: [1, "dim(x, 1)"]', 'in: [1, "dim(y, 1)"]')], 18),
        ("constraint_without_clause", [(", out.columns]", "]")], 20),
        ("ambiguous_sentence", [('zh: "全部。",', 'zh: "全部。", certainty: ambiguous,')], 22),
        (
            "unknown_recipe",
            [("dtypes: [FLOAT, FLOAT16]}", "dtypes: [FLOAT, FLOAT16], data: {realistic: [{recipe: unifrom}]}}")],
            5,
        ),
        ("not_yaml", [("products: [atlas-training, atlas-a2]", "products: [atlas-training")], 4),
        ("alias", [("products: [", "products: &all [")], 3),
        ("draw_raises", [("{name: width, in: [1, M]}", '{name: width, in: [1, "M // (M - 3)"]}')], 11),
        ("draw_is_empty", [("{name: width, in: [1, M]}", '{name: width, in: [4, "M"]}')], 11),
        ("negative_size", [('shape: "[N, width]"', 'shape: "[N - 5, width]"')], 7),
        ("shape_raises", [('shape: "[N, width]"', 'shape: "[N // (M - 3), width]"')], 7),
        ("never_valid", [('is: "max(dim(x, 1), 3)"', 'is: "dim(x, 1) + 1"')], 17),
        ("sometimes_invalid", [("{name: M, in: [3, 1000]}", "{name: M, in: [2, 1000]}")], 17),
        ("silenced", [(COLUMNS, f"is: width, {LISTED_CODE}, requires: [width.range]")], 20),
        ("silenced_by_rank", [(COLUMNS, f"is: width, {LISTED_CODE}")], 20),
        (
            "silenced_by_accuracy",
            [
                (COLUMNS, f"is: width, {LISTED_CODE}, requires: [width.range]"),
                ('in: [1, "dim(x, 1)"], strength: limit', 'in: [1, "dim(x, 1)"], strength: accuracy'),
            ],
            20,
        ),
        ("also_of_a_limit", [(COLUMNS, f"{COLUMNS}, also: [out.rows]")], 20),
        ("also_unknown", [(COLUMNS, f"{COLUMNS}, also: [out.row]")], 20),
        ("no_c_type", [("type: int64_t", "type: int8_t"), ("in: [1, M]", "in: [1, 1000]")], 6),
        ("free_size", [('of: out, axis: 0, is: "dim(x, 0)"', 'of: out, axis: 0, is: "dim(out, 0)"')], 5),
        ("unbreakable", [('is: "max(dim(x, 1), 3)"', 'is: "dim(x, 1)"')], 17),
        (
            "inseparable",
            [('kind: size, of: out, axis: 0, is: "dim(x, 0)"', 'kind: shape, of: out, is: "[dim(x, 0), width]"')],
            20,
        ),
        (
            "empty_table",
            [
                ('shape: "[N, M]", dtypes: [FLOAT, FLOAT16]', 'shape: "[N, M]", dtypes: {atlas-a2: [FLOAT]}'),
                ("of: x, in: [FLOAT, FLOAT16]", "of: x, in: {atlas-a2: [FLOAT]}"),
            ],
            5,
        ),
    ],
)
def test_mistakes(
    call: Call, snapshot: SnapshotAssertion, tmp_path: Path, changes: list[tuple[str, str]], line: int
) -> None:
    text = changed(*changes)
    called = lint(call, tmp_path, text)
    assert called.code == 1
    assert f"take_columns.yaml:{line}: " in called.out
    assert called == snapshot
    assert all(entry["file"] == "take_columns.yaml" for entry in lint(call, tmp_path, text, "--json").lines)


ACCUMULATION = "accumulation: {format: FLOAT16, rounding: nearest, basis: document, source: section 3}"
LISTED = "[FLOAT, FLOAT16]"
X = f'role: input, shape: "[N, M]", dtypes: {LISTED}'


def with_precision(text: str) -> list[tuple[str, str]]:
    return [("draws:\n", f"precision: {text}\ndraws:\n")]


JUDGED = [
    ("product_unknown", [("[atlas-training, atlas-a2]", "[atlas-training, atlas-a7]")], (3,)),
    ("product_twice", [("[atlas-training, atlas-a2]", "[atlas-a2, atlas-a2]")], (3,)),
    ("product_none", [("[atlas-training, atlas-a2]", "[]")], (3,)),
    ("input_of_complex_halves", [(X, X.replace("FLOAT16", "COMPLEX32"))], (5, 7)),
    ("input_of_four_bits", [(X, X.replace(LISTED, "{atlas-a2: [FLOAT], atlas-training: [INT4]}"))], (5, 7)),
    ("output_of_bools", [(X, X.replace("FLOAT16", "BOOL"))], (7,)),
    (
        "table_of_complex_halves",
        [
            ("parameters:\n", "tables: {all: {atlas-a2: [FLOAT, COMPLEX32]}}\nparameters:\n"),
            (X, X.replace(LISTED, "all")),
        ],
        (4, 8),
    ),
    (
        "row_of_complex_halves",
        [
            ("parameters:\n", "rows:\n  parameters: [x]\n  atlas-a2:\n    - [FLOAT]\n    - [COMPLEX32]\nparameters:\n"),
            (X, 'role: input, shape: "[N, M]"'),
        ],
        (8, 12),
    ),
    ("precision_empty", with_precision("[]"), (8,)),
    ("precision_no_list", with_precision(f"{{models: [{{{ACCUMULATION}}}]}}"), (8,)),
    ("precision_unknown_format", with_precision(f"[{{{ACCUMULATION.replace('FLOAT16', 'FLOAT8')}}}]"), (8,)),
    ("precision_unknown_key", with_precision(f"[{{{ACCUMULATION.replace('source', 'sorce')}}}]"), (8, 8)),
    ("precision_of_another", with_precision(f"[{{operator: aclnnOther, {ACCUMULATION}}}]"), (8,)),
    ("precision_says_nothing", with_precision("[{outputs: [out]}]"), (8,)),
    ("precision_unknown_output", with_precision(f"[{{outputs: [x], {ACCUMULATION}}}]"), (8,)),
    ("precision_unknown_product", with_precision(f"[{{products: [atlas-a3], {ACCUMULATION}}}]"), (8,)),
    ("precision_unknown_dtype", with_precision(f"[{{dtypes: [BF16], {ACCUMULATION}}}]"), (8,)),
    ("precision_without_modes", with_precision(f"[{{operands: [HFLOAT32], {ACCUMULATION}}}]"), (8,)),
    ("precision_of_nothing", with_precision(f"[{{outputs: [], {ACCUMULATION}}}]"), (8,)),
]  # fmt: skip


@named(("changes", "lines"), JUDGED)
def test_what_cannot_be_judged_is_a_mistake_for_lint_and_for_a_run(
    call: Call,
    snapshot: SnapshotAssertion,
    tmp_path: Path,
    changes: list[tuple[str, str]],
    lines: tuple[int, ...],
) -> None:
    called = lint(call, tmp_path, changed(*changes))
    assert called.code == 1
    found = called.out.splitlines()
    assert [message.partition(": ")[0] for message in found] == [f"take_columns.yaml:{line}" for line in lines]
    assert called == snapshot
    run = call("run", "aclnnTakeColumns", "--adapter", "reference", "--specs", str(tmp_path), "-o", "run")
    assert (run.code, run.out) == (2, "")
    assert all(f"{tmp_path}/{message}" in run.err for message in found)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("role", ["input", "output"])
def test_lint_accepts_the_dtypes_that_the_judge_computes_with(role: str) -> None:
    """What lint lets pass is what an oracle can be given and what has compute models, and nothing else."""
    for dtype in DTYPES:
        x, out = (dtype, "FLOAT") if role == "input" else ("FLOAT", dtype)
        text = SOUND.replace(X, X.replace(LISTED, f"[{x}]")).replace('dtype: "as x"', f"dtypes: [{out}]")
        if computes(dtype, role):
            assert spec_from_text(text, stem="take_columns").parameter("out").dtypes["atlas-a2"] == (out,)
        else:
            with pytest.raises(UsageError, match=f"the judge has no arithmetic for {dtype}"):
                spec_from_text(text, stem="take_columns")


def computes(dtype: str, role: str) -> bool:
    try:
        if role == "output":
            load_precision().model(operator="aclnnTakeColumns", output="out", dtype=component(dtype))
            return True
        ones = to_dtype(np.ones(3), dtype) if dtype in FLOAT8 else np.ones(3).astype(numpy_dtype(dtype))
    except KeyError:
        return False
    case = Case("aclnnTakeColumns", {"x": Tensor((3,), dtype)}, Target())
    one = [1, 0] if ones.dtype.kind == "c" else 1
    return bool(as_operands(case, {"x": ones})["x"].tolist() == [one] * 3)


def test_a_spec_of_a_product_that_only_it_names_can_be_run(call: Call, tmp_path: Path) -> None:
    assert lint(call, tmp_path, changed(("[atlas-training, atlas-a2]", "[atlas-a3, ascend-950]"))).code == 0
    shown = call("spec", "show", "aclnnTakeColumns", "--specs", str(tmp_path), "--product", "atlas-a3")
    assert shown.code == 0
    unknown = call("spec", "show", "softmax_backward", "--product", "atlas-a3")
    assert unknown.code == 2
    assert "'atlas-a3' is not supported by aclnnSoftmaxBackward" in unknown.err
    assert "is not known; expected one of atlas-inference" in call("cases", "softmax_backward", "--product", "a2").err
