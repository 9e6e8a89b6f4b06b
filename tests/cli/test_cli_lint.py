"""Lint finds in a spec file what reading shows and what only drawing shows, and names the line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]
Snapshot = Callable[[str, object], None]

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
  - {at: limits.1, en: "All of it.", zh: "全部。",
     constraints: [x.dtype, out.dtype, x.rank, out.rank, x.columns, width.range, out.rows, out.columns]}
"""


def lint(call: Call, folder: Path, text: str, *options: str) -> Any:
    (folder / "take_columns.yaml").write_text(text, encoding="utf-8")
    return call("spec", "lint", "take_columns.yaml", *options)


def changed(*changes: tuple[str, str]) -> str:
    text = SOUND
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_a_sound_file(call: Call, matches_snapshot: Snapshot, tmp_path: Path) -> None:
    called = lint(call, tmp_path, SOUND)
    assert called.code == 0
    matches_snapshot("lint_sound", called)


def test_the_files_of_the_package(call: Call) -> None:
    called = call("spec", "lint")
    assert (called.code, called.out) == (0, "")


@pytest.mark.parametrize(
    ("name", "changes", "line"),
    [
        ("unknown_key", [("role: input, shape", "rolle: input, shape")], 5),
        ("unknown_dtype", [("in: [FLOAT, FLOAT16]", "in: [FLOAT32, FLOAT16]")], 13),
        ("unknown_name", [('in: [1, "dim(x, 1)"]', 'in: [1, "dim(y, 1)"]')], 18),
        ("constraint_without_clause", [(", out.columns]", "]")], 20),
        ("not_yaml", [("products: [atlas-training, atlas-a2]", "products: [atlas-training")], 4),
        ("alias", [("products: [", "products: &all [")], 3),
        ("draw_raises", [("{name: width, in: [1, M]}", '{name: width, in: [1, "M // (M - 3)"]}')], 11),
        ("draw_is_empty", [("{name: width, in: [1, M]}", '{name: width, in: [4, "M"]}')], 11),
        ("negative_size", [('shape: "[N, width]"', 'shape: "[N - 5, width]"')], 7),
        ("shape_raises", [('shape: "[N, width]"', 'shape: "[N // (M - 3), width]"')], 7),
        ("never_valid", [('is: "max(dim(x, 1), 3)"', 'is: "dim(x, 1) + 1"')], 17),
        ("sometimes_invalid", [("{name: M, in: [3, 1000]}", "{name: M, in: [2, 1000]}")], 17),
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
    call: Call, matches_snapshot: Snapshot, tmp_path: Path, name: str, changes: list[tuple[str, str]], line: int
) -> None:
    text = changed(*changes)
    called = lint(call, tmp_path, text)
    assert called.code == 1
    assert f"take_columns.yaml:{line}: " in called.out
    matches_snapshot(f"lint_{name}", called)
    assert all(entry["file"] == "take_columns.yaml" for entry in lint(call, tmp_path, text, "--json").lines)
