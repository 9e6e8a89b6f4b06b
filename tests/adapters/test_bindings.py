"""The form of a bindings file, and what is said of mistakes in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aclnn_cts.adapters.bindings import BindingForm, Conversion, check_names, read_bindings, shipped_bindings
from aclnn_cts.core.errors import UsageError
from aclnn_cts.speclang.yaml_file import parse_yaml

ROOT = Path(__file__).parents[2]

DIRECT = """\
bindings:
  aclnnMineBackward:
    call: tanh_backward
    arguments: {grad_output: g, output: {cast: [y, FLOAT]}}
    outputs: [out]
    result: {like: [g, y]}
    unused: {mode: [0, 1], note: any}
"""
AUTOGRAD = """\
bindings:
  aclnnMineBackward:
    let:
      y: {call: silu, arguments: {self: x}}
    gradients: {y: g}
    outputs: {out: x}
    recomputed: [saved]
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_forms(tmp_path: Path) -> None:
    [direct] = read_bindings(written(tmp_path, DIRECT)).values()
    assert (direct.form, list(direct.outputs), direct.unused) == (
        BindingForm.DIRECT,
        ["out"],
        {"mode": (0, 1), "note": None},
    )
    [autograd] = read_bindings(written(tmp_path, AUTOGRAD)).values()
    assert (autograd.form, autograd.recomputed) == (BindingForm.AUTOGRAD, ("saved",))
    assert check_names(direct, parameters=["g", "y", "mode", "note", "out"], outputs=["out"]) == []
    assert check_names(autograd, parameters=["x", "g", "saved", "out"], outputs=["out"]) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("call: tanh", "aten: tanh", ("3:", "unknown key 'aten'", "arguments")),
        ("aclnnMine", "mine", ("mineBackward",)),
        ("grad_output: g,", "grad_output: 'a b',", ("4:", "arguments.grad_output", "a b", "name of a parameter")),
        ("cast: [y, FLOAT]", "cast: [y, FLOAT3]", ("4:", "unknown dtype 'FLOAT3'")),
        ("cast: [y, FLOAT]", "cast: [y]", ("4:", "1 operands; expected 2 to 8")),
        ("outputs: [out]", "outputs: [out, out]", ("5:", "outputs", "out is the output of several results")),
        ("cast: [y, FLOAT]", "casts: y", ("4:", "'casts'", "did you mean", "cast")),
        ("cast: [y, FLOAT]", "call: tanh, of: y", ("4:", "'call', 'of'")),
        ("cast: [y, FLOAT]", "choose: y, from: 3", ("4:", "from: 3", "expected a list")),
        ("cast: [y, FLOAT]", "choose: {format: {size: [y, 0]}}, from: [y]", ("4:", "format", "name of a parameter")),
        ("outputs: [out]", "outputs: {out: g}", ("5:", "expected a list of outputs")),
        ("outputs: [out]", "outputs: []", ("5:", "[]")),
        ("mode: [0, 1]", "mode: 3", ("7:", "unused.mode: 3", "`any`")),
        ("call: tanh_backward", "call: os.system()", ("3:", "os.system()")),
        ("    call: tanh_backward\n", "", ("call", "gradients", "function")),
        ("unused:", "function: f\n    unused:", ("3:", "call and function")),
        ("unused:", "gradients: {z: g}\n    unused:", ("gradients.z", "expected a name of `let`")),
        ("bindings:", "binding:", ("1:", "unknown key 'binding'")),
        ("[g, y]", "&a [g, y]", ("6:", "anchor")),
        ("[g, y]", "!!python/object:os.system [g]", ("6:", "tag")),
    ],
)
def test_a_mistake_has_its_line_and_its_place(tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    assert old in DIRECT
    with pytest.raises(UsageError) as caught:
        read_bindings(written(tmp_path, DIRECT.replace(old, new, 1)))
    message = str(caught.value)
    assert str(tmp_path / "mine.yaml") in message
    for word in words:
        assert word in message, message


def test_nesting_has_an_end(tmp_path: Path) -> None:
    value = "{negative: " * 14 + "g" + "}" * 14
    with pytest.raises(UsageError, match="nested deeper than"):
        read_bindings(written(tmp_path, DIRECT.replace("{cast: [y, FLOAT]}", value)))


@pytest.mark.parametrize("kind", Conversion)
def test_every_conversion_is_described(kind: Conversion) -> None:
    page = (ROOT / "docs" / "bindings.md").read_text(encoding="utf-8")
    assert f"| `{{{kind.value}: " in page


def test_names_are_held_to_the_operator(tmp_path: Path) -> None:
    [binding] = read_bindings(written(tmp_path, DIRECT)).values()
    messages = check_names(binding, parameters=["g", "yy", "mode", "note", "out", "more"], outputs=["out", "more"])
    text = "\n".join(messages)
    for word in ("'y' is no parameter", "yy has no place", "more has no place", "outputs: more is missing"):
        assert word in text
    assert all("mine.yaml:3: bindings.aclnnMineBackward" in message for message in messages)


def test_the_examples_of_the_page_are_what_ships() -> None:
    ours = shipped_bindings("torch")
    text = (ROOT / "docs" / "bindings.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(examples) > 2
    for example in examples:
        for operator in parse_yaml(example, name="bindings.md").content["bindings"]:
            written = parse_yaml(example, name="bindings.md").content["bindings"][operator]
            assert written == ours[operator].file.content["bindings"][operator]
