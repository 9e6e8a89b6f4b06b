"""What `spec lint` says of mistakes with runs, items and sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from tests.speclang.small_spec import changed, messages, with_constraint

RUN = "{run: A, length: [0, 3], sizes: [1, 9]}"
DRAW = "{name: D, in: [1, 9]}"
SHAPE = 'shape: "[*A, D]"'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (SHAPE, 'shape: "[*A, *D]"', "*D: D is a number; leave the * out"),
        (SHAPE, 'shape: "[A, D]"', "A is a run of dimensions; write *A for all its sizes"),
        (SHAPE, 'shape: "[*A[0], D]"', "*A[...] takes a slice such as *A[0:1]; leave the * out for one size"),
        (DRAW, "{name: D, in: [1, A]}", "'A': A is a run of dimensions; expected a number, such as rank(A)"),
        (DRAW, "{name: D, is: A}", "'A': A is a run of dimensions; expected a number, such as rank(A)"),
        (DRAW, '{name: D, is: "dim(A, 0)"}', "dim(A): A is a run of dimensions; expected a tensor; write item(A, ...)"),
        (RUN, "{run: A, length: [0, 2.5]}", "2.5; expected an integer"),
        (RUN, "{run: A, length: 3}", "length: 3; expected a list of 2"),
        (RUN, "{run: A, length: [0, B]}", "unknown name in the expression 'B': 'B'; none is known here"),
        (RUN, "{run: A, length: [1, 3], numel: 7}", "numel: 7; expected a text in quotes"),
        (RUN, '{run: A, length: [1, 3], numel: "7", total: "7"}', "run A: expected at most one of numel, total"),
        ("{atlas-training: [FLOAT], atlas-a2: [FLOAT, BF16]}", "[FLOAT]", "expected a mapping, as {key: value}"),
    ],
)
def test_in_draws_and_shapes(old: str, new: str, message: str) -> None:
    found = messages(changed(old, new))
    assert any(message in text for text in found), found


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("item(x, 0) > 1", "item(x): x is a tensor; expected an int array"),
        ("x[0] > 1", "write dim(x, ...)"),
        ("sizes > 1", "sizes is an int array; expected a number, such as sizes[0]"),
        ("sizes", "sizes is an int array; expected a number, such as sizes[0]"),
        ('sizes["a"] == 1', "the place of an item is a number"),
        ("len(x) == 2", "write rank(x)"),
        ("shape(x) + 1 == 2", "shape(...) is several sizes; expected a number"),
        ("broadcast(x, out) > 2", "broadcast(...) is several sizes; expected a number"),
        ("sums(sizes) == 2", "sums(...) is several sizes; expected a number"),
        ("shape(x)", "not told"),
        ("shape(x) == shape(out)", "not told"),
        ("pad", "not told"),
        ("sum() > 2", "sum takes 1 argument, not 0"),
    ],
)
def test_in_predicates(predicate: str, message: str) -> None:
    found = messages(with_constraint(f"kind: holds, that: {predicate!r}, breaks: [{{D: 3}}], strength: limit"))
    assert any(message in text for text in found) or (message == "not told" and not found), found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            changed(SHAPE, 'shape: "[*A, 2 * D / 2]"'),
            "a size or item is no integer in every one of 240 drawings",
        ),
        (
            with_constraint('kind: holds, that: "sizes[7] == 1", breaks: [{D: 3}], strength: limit'),
            "constraint 'it': has no value in 24 valid calls",
        ),
        (
            with_constraint('kind: holds, that: "sizes[-9] == 1", breaks: [{D: 3}], strength: limit'),
            "constraint 'it': has no value in 24 valid calls",
        ),
    ],
)
def test_in_what_drawings_show(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(text, encoding="utf-8")
    assert main(("spec", "lint", str(path))) != 0
    assert message in capsys.readouterr().out
