"""What building a spec says of each mistake, with its line and the nearest right name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aclnn_cts.core.errors import UsageError
from aclnn_cts.speclang.build_clauses import FAULTS
from aclnn_cts.speclang.build_parameters import kind_of_type
from aclnn_cts.speclang.load import lint_files, load_specs, package_folder
from tests.speclang.small_spec import SMALL, changed, messages, spec_with, with_constraint

MISTAKES = [
    # The form
    ("products:", "product:", 3, "unknown key 'product'; expected any of family, elementwise"),
    ("products:", "product:", 3, "did you mean 'products'?"),
    ("products: [atlas-training, atlas-a2]\n", "", 1, "products: missing; add it"),
    ("operator: aclnnSmall", "operator: Small", 1, "operator: 'Small'"),
    ("operator: aclnnSmall", "operator: [1]", 1, "operator: [1]"),
    ("language: en", "language: fr", 2, "document.language: 'fr'"),
    ("language: en", "lang: en", 2, "unknown key 'lang'; expected any of title, language, sha256, edition"),
    ("{title: aclnnSmall, language: en}", "{title: aclnnSmall, language: en, sha256: abc}", 2, "sha256: 'abc'"),
    ("role: input,", "rolle: input,", 7, "unknown key 'rolle'; expected any of name, type, role"),
    ("role: input,", "role: inputs,", 7, "parameters.0.role: 'inputs'"),
    ("strided: true", "strided: 1", 7, "strided: 1; expected true, false, a status"),
    ("{name: pad, in: [0, 7]}", "{name: pad, in: [0]}", 16, "draws.2.in"),
    ("strength: limit}", "strength: weak}", 21, "constraints.1.strength: 'weak'"),
    ("id: pad.range", "id: 'pad range'", 21, "constraints.1.id: 'pad range'"),
    ('{en: "pad."', '{at: x, en: "pad."', 25, "at: 'x'; expected a number: the section is the key above"),
    # Tables, products and dtypes
    ("[FLOAT, BF16]", "[FLOAT, BFLOAT16]", 5, "unknown dtype 'BFLOAT16'; expected any of"),
    ("[FLOAT, BF16]", "[FLOAT, FLOAT6]", 5, "did you mean 'FLOAT16'?"),
    ("atlas-a2: [FLOAT, BF16]", "atlas-a3: [FLOAT, BF16]", 5, "unknown product 'atlas-a3'"),
    ("atlas-a2: [FLOAT, BF16]", "atlas-a3: [FLOAT, BF16]", 5, "did you mean 'atlas-a2'?"),
    ("dtypes: floats", "dtypes: float", 7, "unknown table 'float'; expected any of floats; did you mean 'floats'?"),
    ("dtypes: floats", "dtypes: [FLOATS]", 7, "unknown dtype 'FLOATS'"),
    ("dtypes: floats, formats: [ND]", "dtypes: floats, formats: {is: [NB], strength: open}", 7, "unknown format 'NB'"),
    # Parameters
    ("type: int8_t", "type: int128_t", 9, "C type 'int128_t' is not known"),
    ("type: int8_t", 'type: "int8_t *"', 9, "C type 'int8_t *' is not known"),
    ('type: "const aclTensor *"', 'type: "const aclTensor"', 7, "C type 'const aclTensor' is not known"),
    ("name: flag, type: bool", "name: pad, type: bool", 10, "parameter 'pad' stands twice; keep one"),
    ('shape: "[*A, D]", ', "", 7, "x: shape missing; say how a valid one is made"),
    (', items: "[D, 2]"', "", 8, "sizes: items missing"),
    ('shape: "[*A, D]"', 'shape: "[*B, D]"', 7, "unknown name in the shape '[*B, D]': 'B'"),
    ('shape: "[*A, D]"', 'shape: "[*A D]"', 7, "expected ',' before 'D'"),
    ('shape: "[*x]"', 'shape: "[*out]"', 12, "unknown name in the shape '[*out]': 'out'"),
    ('dtype: "as x"', 'dtype: "as y"', 12, "'as y'; expected 'as NAME' with an earlier tensor"),
    ('dtype: "as x"', 'dtype: "x"', 12, "'x'; expected 'as NAME'"),
    (', dtype: "as x"', "", 12, "out: neither `dtypes` nor `dtype`; add one"),
    ("strided: true}", "strided: true, data: {exact: [{recipe: ramp, high: E}]}}", 7, "in the expression 'E'"),
    ("strided: true}", "strided: true, data: {exactly: []}}", 7, "parameters.0.data.exactly"),
    ("type: bool, role: attribute", "type: bool, role: inout", 10, "flag: 'inout'; only a tensor is input and output"),
    (
        "formats: [ND]}\n",
        "formats: [ND], data: {exact: [{recipe: ramp}]}}\n",
        12,
        "out: an output has no contents before the call; expected `role: inout`",
    ),
    # Draws
    ("{name: pad, in: [0, 7]}", "{in: [0, 7]}", 16, "a draw has either `name` or `run`; give one"),
    ("{name: pad, in: [0, 7]}", "{name: pad, run: pad, in: [0, 7]}", 16, "a draw has either `name` or `run`"),
    ("{name: pad, in: [0, 7]}", "{name: D, in: [0, 7]}", 16, "draw 'D' stands twice; keep one"),
    ("  - {name: pad, in: [0, 7]}\n", "", 9, "pad: no draw of that name; add one to `draws`"),
    ("{name: pad, in: [0, 7]}", "{name: pad, in: [0, 7], is: 3}", 16, "expected exactly one of in, is, one_of"),
    ("{name: pad, in: [0, 7]}", "{name: pad, is: 3, large: true}", 16, "draw pad: only one with `in` is large"),
    ("{name: pad, in: [0, 7]}", "{name: pad, in: [0, 7], large: 65}", 16, "large: 65; expected true, or elements"),
    ("{name: pad, in: [0, 7]}", "{name: pad}", 16, "expected exactly one of in, is, one_of"),
    ("one_of: [false, true]", "one_of: []", 17, "draw flag: one_of is empty"),
    ("{name: pad, in: [0, 7]}", '{name: pad, in: [0, "scale"]}', 16, "in the expression 'scale': 'scale'"),
    ("{name: pad, in: [0, 7]}", '{name: pad, in: [0, "dims(A)"]}', 16, "no function 'dims'; expected one of"),
    ("length: [0, 3], ", "", 14, "run A: length missing; give [least, most]"),
    ("constraints:\n", "large_calls: [{E: 4096}]\nconstraints:\n", 19, "unknown draw of a number 'E'"),
    (
        "constraints:\n",
        f"large_calls: [{{pad: {list(range(9))}, D: {list(range(9))}}}]\nconstraints:\n",
        19,
        "81 calls; list sizes of at most 64",
    ),
    ("constraints:\n", "large_calls: [{pad: [x]}]\nconstraints:\n", 19, "large_calls.0.pad.0"),
    # Constraints and clauses
    ("kind: range", "kind: rang", 21, "unknown kind of constraint 'rang'; expected any of present, dtype"),
    ("kind: range", "kind: rang", 21, "did you mean 'range'?"),
    ("of: pad, in", "of: pat, in", 21, "in the expression 'pat': 'pat'; expected any of x, sizes, pad"),
    ("of: pad, in", "of: pat, in", 21, "did you mean 'pad'?"),
    ("of: x, strength", "of: y, strength", 20, "unknown parameter 'y'"),
    ("id: out.shape", "id: x.null", 22, "constraint 'x.null' stands twice; ids are unique"),
    ("status: ACLNN_ERR_PARAM_NULLPTR", "status: ACLNN_ERR_PARAM_NULPTR", 20, "mean 'ACLNN_ERR_PARAM_NULLPTR'?"),
    (", status: ACLNN_ERR_PARAM_NULLPTR", "", 20, "status: missing; a listed constraint names the code"),
    ("strength: limit}", "strength: limit, status: ACLNN_ERR_INNER}", 21, "limit names no code"),
    ("strength: open}", 'strength: open, status: "ACLNN_ERR_*"}', 22, "an open constraint promises none"),
    (
        "strength: open}",
        'strength: accuracy, status: "ACLNN_ERR_*"}',
        22,
        "where accuracy alone is withdrawn, success is promised: leave it out",
    ),
    ("strength: limit}", "strength: limit, products: [atlas-inference]}", 21, "unknown product 'atlas-inference'"),
    ("strength: limit}", "strength: limit, requires: [x.nul]}", 21, "unknown constraint 'x.nul'"),
    ("strength: limit}", "strength: limit, requires: [x.nul]}", 21, "did you mean 'x.null'?"),
    ("strength: limit}", 'strength: limit, when: "rank(y) > 1"}', 21, "in the expression 'rank(y) > 1': 'y'"),
    ("strength: limit}", "strength: limit, breaks: [{padd: 9}]}", 21, "unknown draw or parameter 'padd'"),
    ("strength: limit}", 'strength: limit, breaks: [{pad: "E + 1"}]}', 21, "in the expression 'E + 1': 'E'"),
    ("strength: limit}", 'strength: limit, limits: [{pad: "1 +"}]}', 21, "'1 +': ends too early"),
    ("constraints: [pad.range]}", "constraints: [pad.rang]}", 25, "unknown constraint 'pad.rang'"),
    ("constraints: [pad.range]}", "check: values}", 21, "constraint 'pad.range' encodes no clause"),
    ("}, dtype]", "}, {at: 1, say: dtype}]", 24, "clause 'params.x.1' stands twice; an address is never reused"),
    (", constraints: [pad.range]}", "}", 25, "clause params.pad.1: nothing given; expected exactly one of"),
    ("constraints: [pad.range]}", "constraints: [pad.range], check: values}", 25, "and check given"),
    ("constraints: [pad.range]}", "constraints: [pad.range], contradicts: [params.y]}", 25, "clause 'params.y'"),
    ("constraints: [out.shape]}", 'check: values, when: "E"}', 26, "unknown name in the expression 'E': 'E'"),
    ("constraints: [out.shape]}", "check: values, output: outt}", 26, "unknown output 'outt'; expected any of out;"),
    ("constraints: [out.shape]}", "check: values, output: x}", 26, "unknown output 'x'; expected any of out"),
    ("constraints: [out.shape]}", "constraints: [out.shape], output: out}", 26, "`output` goes with a check"),
    ("constraints: [out.shape]}", "check: values, faults: [crsh]}", 26, "unknown kind of fault 'crsh'; expected"),
    ("constraints: [out.shape]}", "check: values, faults: [crsh]}", 26, "did you mean 'crash'?"),
    ("constraints: [out.shape]}", "check: values, faults: [crash, crash]}", 26, "kind of fault 'crash' stands twice"),
    ("constraints: [out.shape]}", "check: values, faults: []}", 26, "where all of them contradict it, leave"),
    ("constraints: [out.shape]}", "constraints: [out.shape], faults: [crash]}", 26, "`faults` goes with a check"),
    ("constraints: [out.shape]}", f"check: values, faults: [{', '.join(FAULTS)}]}}", 26, "every kind of fault"),
    ("constraints: [out.shape]}", "interface: phases.99}", 26, "unknown clause of the interface 'phases.99'"),
    ("constraints: [out.shape]}", "example: one}", 26, "unknown example 'one'"),
    ("constraints: [out.shape]}", "untestable: {en: why}}", 26, "clauses.params.out.0.untestable.zh: missing"),
]  # fmt: skip


def test_the_small_spec_is_right() -> None:
    assert messages(SMALL) == []


@pytest.mark.parametrize(("old", "new", "line", "message"), MISTAKES)
def test_a_mistake_is_told_with_its_line(old: str, new: str, line: int, message: str) -> None:
    assert SMALL.count(old) >= 1
    found = messages(SMALL.replace(old, new, 1))
    assert any(text.startswith(f"small.yaml:{line}: ") and message in text for text in found), found


CONSTRAINTS = [
    ("kind: present, of: pad, strength: open", "pad is of kind int; present takes tensor, scalar, string, int_array"),
    ("kind: dtype, of: sizes, in: floats, strength: open", "sizes is of kind int_array; dtype takes tensor"),
    ("kind: dtype, of: x, in: {atlas-a2: FLOAT}, strength: open", "constraints.3.in"),
    ("kind: dtype, of: x, in: {atlas-a5: [FLOAT]}, strength: open", "unknown product 'atlas-a5'"),
    ("kind: dtype, of: [x], in: floats, strength: open", "of: ['x']; expected the name of a parameter"),
    ("kind: same_dtype, of: x, strength: open", "as: missing; same_dtype compares with another parameter"),
    ("kind: same_dtype, of: x, as: outs, strength: open", "unknown parameter 'outs'"),
    ("kind: same_format, of: x, strength: open", "as: missing; same_format compares with another parameter"),
    ("kind: dtype_rows, strength: open", "dtype_rows needs the top-level table `rows`; add it"),
    ("kind: mode, strength: open", "mode needs the top-level table `modes`; add it"),
    ("kind: format, of: x, in: [NDD], strength: open", "unknown format 'NDD'"),
    ("kind: rank, of: x, in: [3, 1], strength: open", "[3, 1]; expected two integers in ascending order"),
    ("kind: rank, of: x, in: [1, null], strength: open", "expected two integers in ascending order"),
    ("kind: rank, of: x, in: 3, strength: open", "constraints.3.in: 3"),
    ("kind: rank, of: x, strength: open", "in: None; expected [low, high]"),
    ("kind: length, of: sizes, is: two, strength: open", "is: 'two'; expected a number of items, at most 1024"),
    ("kind: length, of: sizes, is: 1000000000, strength: open", "is: 1000000000; expected a number of items"),
    ("kind: length, of: x, is: 2, strength: open", "x is of kind tensor; length takes int_array"),
    ("kind: dims, of: x, in: [1, D], strength: open", "unknown name in the expression 'D'"),
    ('kind: dims, of: x, in: [1, "pad"], strength: open', "'pad'; expected an integer or null"),
    ("kind: shape, of: x, is: 3, strength: open", "is: 3; expected a shape expression such as '[*input]'"),
    ('kind: shape, of: x, is: "[*y]", strength: open', "unknown name in the shape '[*y]': 'y'"),
    ('kind: shape, of: x, is: "[D]", strength: open', "unknown name in the shape '[D]': 'D'"),
    ("kind: size, of: x, is: 3, strength: open", "size needs `axis` and `is`; add them"),
    ("kind: size, of: x, axis: 0, strength: open", "size needs `axis` and `is`; add them"),
    ("kind: range, of: pad, in: [0, 1, 2], strength: open", "in: [0, 1, 2]; expected [low, high]"),
    ('kind: range, of: "pad + 1", in: [0, 1], strength: open', "'pad + 1' is no attribute; name the `draw`"),
    ('kind: range, of: "pad + 1", in: [0, 1], draw: padd, strength: open', "unknown draw 'padd'"),
    ("kind: holds, strength: open, breaks: [{pad: 9}]", "holds needs `that`: a predicate over the arguments"),
    ('kind: holds, that: "pad < 9", strength: open', "holds needs `breaks`: assignments to draws that break it"),
    ('kind: holds, that: "padd < 9", strength: open, breaks: [{pad: 9}]', "did you mean 'pad'?"),
    ("kind: contiguous, of: pad, strength: open", "pad is of kind int; contiguous takes tensor"),
    ("kind: not_empty, of: sizes, strength: open", "sizes is of kind int_array; not_empty takes tensor"),
    ("kind: finite, of: 3, strength: open", "of: 3; expected a list of parameters"),
    ("kind: finite, of: [y], strength: open", "unknown parameter 'y'"),
    ("kind: elements, of: x, strength: open", "in: None; expected [low, high]"),
    ("kind: elements, of: pad, in: [0, 1], strength: open", "pad is of kind int; elements takes tensor"),
    ("kind: rank, of: x, in: [1, 8], strength: open, requires: [it]", "require one another in a circle; break it"),
    ("kind: rank, of: x, in: [1, 8], strength: limit, that: true", "constraints.3.that"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "message"), CONSTRAINTS)
def test_a_constraint_that_cannot_be_built(fields: str, message: str) -> None:
    found = messages(with_constraint(fields))
    assert any(message in text for text in found), found
    assert all(re.match(r"small\.yaml:(20|23): ", text) for text in found), found


def test_mistakes_are_told_all_at_once_in_the_order_of_the_file() -> None:
    text = changed("of: pad, in", "of: pat, in", text=changed("of: x, strength", "of: y, strength"))
    text = changed("dtypes: floats", "dtypes: float", text=text)
    lines = [int(message.split(":")[1]) for message in messages(text)]
    assert lines == [7, 20, 21]


def test_a_circle_of_requirements() -> None:
    text = changed("strength: open}", "strength: open, requires: [pad.range]}")
    text = changed("strength: limit}", "strength: limit, requires: [out.shape]}", text=text)
    assert messages(text) == ["small.yaml:20: constraints require one another in a circle; break it"]


def test_a_group_shares_one_check() -> None:
    text = changed("strength: open}", "strength: open, group: both}")
    text = changed("strength: limit}", "strength: limit, group: both}", text=text)
    (message,) = messages(text)
    assert message.startswith("small.yaml:22: constraint 'out.shape' checks ('open', None), its group 'both'")


def test_modes_and_rows_are_checked() -> None:
    modes = (
        "modes: {attribute: padd, by: xx, names: {0: A, one: B}, operand: {atlas-a2: {FLOAT: [FLOAT, null], F: [X]},"
        " atlas-x: {}}}\n"
        "rows: {parameters: [x, outt], atlas-a2: [[FLOAT], [FLOAT, FLOA]], atlas-y: []}\n"
    )
    found = "\n".join(messages(changed("constraints:\n  -", f"{modes}constraints:\n  -")))
    for part in (
        "unknown parameter 'padd'",
        "unknown parameter 'xx'",
        "'one'; expected an integer value of the attribute",
        "unknown dtype 'F'",
        "unknown operand format 'X'",
        "2 entries; expected 1, one a mode",
        "unknown product 'atlas-x'",
        "unknown parameter 'outt'",
        "1 dtypes; expected 2, one a parameter",
        "unknown dtype 'FLOA'",
        "unknown product 'atlas-y'",
    ):
        assert part in found


def test_examples_are_checked() -> None:
    example = (
        "examples:\n"
        "  - name: one\n"
        "    at: example.1\n"
        "    product: atlas-a9\n"
        "    arguments:\n"
        "      x: {tensor: {shape: [1], dtype: FLOAT, format: ND, data: {values: [1, 2]}}}\n"
        "      sizes: {int_aray: [1]}\n"
        "      padd: {int: 1}\n"
    )
    found = "\n".join(messages(changed("clauses:\n", f"{example}clauses:\n")))
    assert "small.yaml:26: unknown product 'atlas-a9'" in found
    assert "small.yaml:28: x.tensor.data.values: 2 numbers; expected 1 for the shape [1]" in found
    assert "small.yaml:29: sizes: unknown kind of argument 'int_aray'" in found
    assert "did you mean 'int_array'?" in found
    assert "small.yaml:30: unknown parameter 'padd'" in found
    assert "small.yaml:28: argument 'flag' is missing" in found


@pytest.mark.parametrize(
    ("c_type", "kind"),
    [
        ("const aclTensor *", "tensor"),
        ("aclTensor*", "tensor"),
        ("const aclIntArray *", "int_array"),
        ("int8_t", "int"),
        ("const int64_t", "int"),
        ("uint16_t", "int"),
        ("uint64_t", "int"),
        ("bool", "bool"),
        ("double", "double"),
        ("float", "double"),
        ("aclTensor", None),
        ("aclTensor **", None),
        ("int64_t *", None),
        ("bool *", None),
        ("long long", None),
        ("const aclScalar *", "scalar"),
        ("aclScalar **", None),
        ("char *", "string"),
        ("const char*", "string"),
        ("char", None),
        ("const aclBoolArray *", "bool_array"),
        ("const aclFloatArray *", "float_array"),
        ("aclTensorList *", "tensor_list"),
        ("aclScalarList *", None),
        ("", None),
    ],
)
def test_c_types(c_type: str, kind: str | None) -> None:
    assert kind_of_type(c_type) == kind


def test_what_requires_comes_after_what_it_requires() -> None:
    spec = spec_with("kind: dims, of: x, in: [1, 9], strength: open, requires: [out.shape]")
    names = [item.id for item in spec.constraints]
    assert names.index("it") > names.index("out.shape")


def test_rules_on_sizes_require_the_rank_of_their_tensor() -> None:
    text = with_constraint("kind: rank, of: out, in: [1, 4], strength: limit")
    spec_messages = messages(text)
    assert spec_messages == []
    spec = spec_with("kind: rank, of: out, in: [1, 4], strength: limit")
    assert spec.constraint("out.shape").requires == ("it",)


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no folder; --specs takes a folder"):
        load_specs([tmp_path / "none"])
    (tmp_path / "small.yaml").write_text(SMALL)
    specs = load_specs([tmp_path])
    assert specs["aclnnSmall"].stem == "small"
    assert specs.find("small") is specs["aclnnSmall"]
    with pytest.raises(UsageError, match="did you mean 'small'"):
        specs.find("smal")
    assert [spec.stem for spec in specs.select(["small", "aclnnSoftmaxBackward", "small"])] == [
        "softmax_backward",
        "small",
    ]
    (tmp_path / "again.yaml").write_text(SMALL)
    with pytest.raises(UsageError, match=r"small\.yaml: aclnnSmall \(small\) is already defined by .*again\.yaml"):
        load_specs([tmp_path])
    (tmp_path / "again.yaml").write_text(SMALL.replace("of: pad, in", "of: pat, in").replace("of: x, s", "of: y, s"))
    with pytest.raises(UsageError, match="the specs cannot be used; `aclnn-cts spec lint` shows all"):
        load_specs([tmp_path])
    (tmp_path / "again.yaml").write_text("a: &b 1")
    with pytest.raises(UsageError, match=r"again\.yaml:1: anchor"):
        load_specs([tmp_path])


def test_lint_gathers_the_mistakes_of_all_files(tmp_path: Path) -> None:
    good, bad, broken = (tmp_path / name for name in ("good.yaml", "bad.yaml", "broken.yaml"))
    good.write_text(SMALL)
    bad.write_text(changed("of: pad, in", "of: pat, in"))
    broken.write_text("a: [")
    specs, found = lint_files([good, bad, broken, tmp_path / "none.yaml"])
    assert len(specs) == 1
    assert [Path(text.partition(":")[0]).name for text in found] == ["bad.yaml", "broken.yaml", "none.yaml"]


def test_the_package_is_without_mistakes() -> None:
    specs, found = lint_files()
    assert found == []
    assert len(specs) == len([*package_folder().glob("*_*.yaml"), *package_folder().glob("editions/*/*.yaml")])


SPEC_FILES = [path for part in ("", "families/", "editions/*/") for path in package_folder().glob(f"{part}*.yaml")]


@pytest.mark.parametrize("path", SPEC_FILES, ids=lambda path: path.stem)
def test_lines_of_specs_have_at_most_140_characters(path: Path) -> None:
    """But those of facts, where shorter lines would be more than the 60 that a spec may have without its clauses."""
    text = path.read_text(encoding="utf-8")
    facts, *clauses = re.split(r"(?=\n(?:sentences|clauses|claims|open):)", text, maxsplit=1)
    count = facts.count("\n") + 1
    assert [line for line in "".join(clauses).splitlines() if len(line) > 140] == []
    assert count + sum(len(line) > 140 for line in facts.splitlines()) in (count, *range(61, 61 + count))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("one_of: [0.0", "one_of: [A + 1", "'A + 1': A is a run of dimensions; expected a number, such as rank(A)"),
        (
            "one_of: [0.0",
            'one_of: ["dim(A, 0)"',
            "dim(A): A is a run of dimensions; expected a tensor; write item(A, ...)",
        ),
        ('"[*A, D]"', '"[A, D]"', "'[A, D]': A is a run of dimensions; write *A for all its sizes"),
        ('"[*A, D]"', '"[*A, *D]"', "'[*A, *D]': *D: D is a number; leave the * out"),
        ('items: "[D, 2]"', 'items: "[x, 2]"', "'[x, 2]': x is a tensor; write *x for all its sizes"),
        (
            "of: pad, in: [0, 7]",
            'of: "item(x, 0)", in: [0, 7]',
            "item(x): x is a tensor; expected an int array, a bool array, a float array",
        ),
        ("of: pad, in: [0, 7]", 'of: "len(x)", in: [0, 7]', "write rank(x)"),
        ("of: pad, in: [0, 7]", 'of: "dim(sizes, 0)", in: [0, 7]', "write item(sizes, ...)"),
        ("of: pad, in: [0, 7]", 'of: pad, in: [0, "x * 2"]', "x is a tensor; expected a number, such as dim(x, 0)"),
        ("of: pad, in: [0, 7]", 'of: "rank(pad)", in: [0, 7]', "rank(pad): pad is a number; expected a tensor"),
    ],
)
def test_a_name_that_is_read_as_something_else_is_a_mistake(old: str, new: str, expected: str) -> None:
    found = messages(changed(old, new))
    assert any(expected in message for message in found), found
