"""What a spec says once for several places: roles, repeated rules, chains, sentences with names in braces."""

from __future__ import annotations

import pytest

from aclnn_cts.speclang.kinds_number import PredicateRule
from aclnn_cts.speclang.kinds_size import DimensionsRule, SizeRule
from aclnn_cts.speclang.model import Clause
from tests.speclang.small_spec import built, junk_is_a_message, messages, stated
from tests.speclang.test_properties import changed, clause, clauses

ROLES = """\
operator: aclnnFew
document: {language: en}
products: [atlas-training, atlas-a2]
inputs: {dtypes: [FLOAT, BF16], strided: true, dims: {is: [1, 9]}}
outputs:
  same_shape_as: {is: "{like}", group: "{name}.shape", requires: "{like}.dtype"}
  same_dtype_as: {is: "{like}", strength: open}
parameters:
  - {name: x, type: const aclTensor *, dtypes: [FLOAT, BF16], shape: "[*A]"}
  - {name: y, type: const aclTensor *, shape: "[B]", dims: {breaks: [{B: 0}]}}
  - {name: dx, type: aclTensor *, like: x}
  - {name: dy, type: aclTensor *, like: y, same_shape_as: {requires: [y.dims, dy.dims]}, dims: [0, 7]}
draws:
  - {run: A, length: [1, 8]}
  - {name: B, in: [1, 9]}
"""


def section(*entries: str, name: str = "params.x", more: str = "") -> dict[str, str]:
    lines = "".join(f"    - {item}\n" for item in entries)
    return clauses(built(with_section(lines, name, more)), name)


def with_section(lines: str, name: str, more: str = "") -> str:
    text = changed("clauses:\n", f"{more}clauses:\n") if more else changed("clauses:\n", "clauses:\n")
    return f"{text}  {name}:\n{lines}"


def made(text: str, name: str = "params.x", more: str = "") -> Clause:
    return clause(built(with_section(f"    - {text}\n", name, more)), f"{name}.1")


# Parameters


def test_a_spec_gives_properties_by_role() -> None:
    spec = built(ROLES)
    assert [item.strided for item in spec.parameters] == [False, True, False, False]
    assert [(item.shape and item.shape.text, item.dtype_as) for item in spec.parameters] == [
        ("[*A]", None), ("[B]", None), ("[*x]", "x"), ("[*y]", "y"),
    ]  # fmt: skip


def test_a_property_without_a_value_adds_to_that_of_the_role() -> None:
    spec = built(ROLES)
    assert spec.constraint("y.dims").rule == DimensionsRule("y", 1, 9, None)
    assert stated(spec, "y.dims")["breaks"] == ({"B": 0},)
    assert spec.constraint("dy.dims").rule == DimensionsRule("dy", 0, 7, None)
    shapes = [(item.group, item.requires) for item in map(spec.constraint, ("dx.shape", "dy.shape"))]
    assert shapes == [("dx.shape", ("x.dtype",)), ("dy.shape", ("y.dims", "dy.dims"))]


def test_the_operator_names_its_document() -> None:
    assert built(ROLES).document == "aclnnFew"


def test_a_recipe_that_is_a_word_has_the_shared_keys() -> None:
    data = "data: {with: {low: 0, high: 5}, exact: [indices, {recipe: normal}], hostile: [ramp]}"
    (x, _) = built(changed("strided: true", f"strided: true, {data}")).parameters
    assert x.data == {
        "exact": ({"recipe": "indices", "low": 0, "high": 5}, {"recipe": "normal"}),
        "hostile": ({"recipe": "ramp", "low": 0, "high": 5},),
    }


def test_parameters_of_one_column_have_the_same_dtype_in_each_row() -> None:
    text = changed("clauses:\n", "rows: {parameters: [[out, x]], atlas-a2: [[FLOAT], [[BF16, FLOAT]]]}\nclauses:\n")
    spec = built(text)
    assert spec.row_parameters == ("x", "out")
    assert spec.rows == {"atlas-a2": (("FLOAT", "FLOAT"), ("BF16", "BF16"), ("FLOAT", "FLOAT"))}


def test_columns_are_in_the_order_of_the_prototype() -> None:
    rows = "rows: {parameters: [[x, dx], y, dy], atlas-a2: [[FLOAT, BF16, FLOAT16]]}\n"
    spec = built(ROLES + rows)
    assert spec.row_parameters == ("x", "y", "dx", "dy")
    assert spec.rows == {"atlas-a2": (("FLOAT", "BF16", "FLOAT", "FLOAT16"),)}


def test_one_dtype_stands_for_every_mode() -> None:
    modes = (
        "modes: {attribute: m, by: x, names: {0: A, 1: B}, operand: {atlas-a2: {FLOAT: FLOAT, BF16: [BF16, null]}}}\n"
    )
    spec = built(
        changed("draws:\n", f"{modes}draws:\n").replace("  - {name: out", "  - {name: m, type: int8_t}\n  - {name: out")
    )
    assert spec.modes is not None
    assert spec.modes.operand == {"atlas-a2": {"FLOAT": ("FLOAT", "FLOAT"), "BF16": ("BF16", None)}}


# Rules


def test_a_rule_follows_another_and_what_it_requires() -> None:
    text = changed(
        "clauses:\n",
        "constraints:\n"
        "  - {id: a, that: rank(x) > 1, requires: [x.rank, x.dtype]}\n"
        "  - {id: b, that: rank(x) > 2, follows: a, requires: [x.rank, out.dtype]}\n"
        "  - {id: c, that: rank(x) > 3, follows: b}\n"
        "clauses:\n",
    )
    spec = built(text)
    assert spec.constraint("b").requires == ("x.rank", "x.dtype", "a", "out.dtype")
    assert spec.constraint("c").requires == ("x.rank", "x.dtype", "a", "out.dtype", "b")


def test_a_rule_follows_none_below_it() -> None:
    text = changed(
        "clauses:\n",
        "constraints:\n  - {id: a, that: rank(x) > 1, follows: b}\n  - {id: b, that: rank(x) > 2}\nclauses:\n",
    )
    assert any(message.startswith("small.yaml:15: 'b' is no rule above this one") for message in messages(text))


REPEATED = """\
constraints:
  - for: {name: [x, out], least: [2, 3]}
    rules:
      - {id: "{name}.more", that: "dim({name}, 0) >= {least}", requires: "{name}.null"}
      - {id: "{name}.first", axis: 0, is: "{least}"}
  - {id: last, that: rank(x) > 1}
clauses:
"""


def test_rules_are_written_once_for_several_values() -> None:
    text = changed("clauses:\n", REPEATED)
    spec = built(text)
    assert {item.id for item in spec.constraints if item.id.endswith(("more", "first", "last"))} == {
        "x.more", "x.first", "out.more", "out.first", "last",
    }  # fmt: skip
    assert spec.constraint("out.more").rule == PredicateRule("dim(out, 0) >= 3")
    assert spec.constraint("out.more").requires == ("out.null",)
    assert spec.constraint("x.first").rule == SizeRule("x", 0, "2")


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ("dim({name}, 0)", "dim(z, 0)", 17, "unknown name in the expression"),
        ("that: rank(x) > 1}", "that: rank(z) > 1}", 19, "unknown name in the expression"),
        ("least: [2, 3]", "least: [2]", 15, "unknown key 'for'"),
        ("least: [2, 3]", "least: 3", 15, "unknown key 'for'"),
    ],
)
def test_a_mistake_in_repeated_rules_names_its_line(old: str, new: str, line: int, expected: str) -> None:
    text = changed("clauses:\n", REPEATED.replace(old, new))
    found = messages(text + "  limits:\n    - {say: [x.more, x.first, out.more, out.first, last], en: O., zh: 自。}\n")
    assert any(message.startswith(f"small.yaml:{line}:") and expected in message for message in found), found


def test_one_entry_for_one_value_is_its_rule() -> None:
    text = changed(
        "clauses:\n",
        'constraints:\n  - for: {name: [x]}\n    rules: [{id: "{name}.odd", that: rank(x) > 1}]\nclauses:\n',
    )
    assert built(text).constraint("x.odd").rule == PredicateRule("rank(x) > 1")


SHARED = """\
operator: aclnnFew
document: {language: en}
products: [atlas-a2]
parameters:
  - {name: [x, y], type: const aclTensor *, dtypes: [FLOAT], shape: "[*A, *B, H, W]"}
  - {name: out, type: aclTensor *, dtypes: [FLOAT], same_shape_as: x}
draws:
  - {run: [A, B], length: [0, 3]}
  - {name: [H, W], in: [1, 9]}
"""


def test_several_names_of_one_entry_are_parameters_and_draws_in_that_order() -> None:
    spec = built(SHARED)
    apart = SHARED.replace("{run: [A, B], length: [0, 3]}", "{run: A, length: [0, 3]}\n  - {run: B, length: [0, 3]}")
    assert [item.name for item in spec.parameters] == ["x", "y", "out"]
    assert [item.name for item in spec.draws] == ["A", "B", "H", "W"]
    assert spec.draws == built(apart).draws


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ("[*A, *B, H, W]", "[*A, Z]", 5, "'Z'"),
        ("in: [1, 9]", "in: [1, Z]", 9, "'Z'"),
        ("[H, W]", "[H, H]", 9, "H"),
        ("[H, W]", "[]", 9, "name"),
    ],
)
def test_a_mistake_in_an_entry_of_several_names_gives_its_line(old: str, new: str, line: int, expected: str) -> None:
    found = messages(SHARED.replace(old, new))
    assert any(message.startswith(f"small.yaml:{line}:") and expected in message for message in found), found


def test_a_key_takes_the_value_too() -> None:
    text = changed(
        "clauses:\n",
        "constraints:\n  - for: {name: [x, out]}\n"
        '    rules: [{id: "{name}.odd", that: "dim({name}, 0) == 3", breaks: [{"{name}[0]": 4}]}]\nclauses:\n',
    )
    assert stated(built(text), "out.odd")["breaks"] == ({"out[0]": 4},)


def test_a_size_requires_the_ranks_of_what_it_reads_and_rows_the_dtypes() -> None:
    text = changed(
        "clauses:\n",
        "rows: {parameters: [x, out], atlas-a2: [[FLOAT, BF16]]}\n"
        "constraints:\n  - {id: out.last, axis: -1, is: 'dim(x, 0) + dim(out, 0) - dim(x, 1)'}\n"
        "  - {id: out.none, axis: 0, is: 'dim(x, 0)', requires: []}\n"
        "  - {id: dtypes.rows, kind: dtype_rows}\nclauses:\n",
    )
    spec = built(text)
    assert spec.constraint("out.last").requires == ("x.rank", "out.rank")
    assert spec.constraint("out.none").requires == ()
    assert spec.constraint("dtypes.rows").requires == ("x.dtype", "out.dtype")


# Clauses


@pytest.mark.parametrize(
    ("written", "name", "check", "faults"),
    [
        ("{en: O., zh: 自。, when: rank(x) == 1}", "params.x", "values", ()),
        ("{en: O., zh: 自。, check: reads}", "params.x", "values", ("crash", "hang", "stray-read", "input-changed")),
        ("{en: O., zh: 自。, faults: [hang]}", "limits", "values", ("hang",)),
        ("{en: O., zh: 自。, check: call}", "params.out", "values", ("crash", "hang")),
    ],
)
def test_the_check_of_a_clause_follows_where_it_names_none(
    written: str, name: str, check: str, faults: tuple[str, ...]
) -> None:
    found = made(written, name)
    assert (found.check, found.faults) == (check, faults)


@pytest.mark.parametrize("name", ["params.x", "params.out", "limits"])
def test_a_clause_says_how_it_is_encoded(name: str) -> None:
    found = messages(with_section("    - {en: O., zh: 自。}\n", name))
    assert any(f"clause {name}.1: nothing given" in message for message in found)


def test_each_says_the_rule_of_every_parameter() -> None:
    assert list(section("each.null", "each.dtype", name="returns").values()) == [
        "A null pointer for x gives ACLNN_ERR_PARAM_NULLPTR.",
        "A null pointer for out gives ACLNN_ERR_PARAM_NULLPTR.",
        "An unsupported dtype of x gives ACLNN_ERR_PARAM_INVALID.",
        "An unsupported dtype of out gives ACLNN_ERR_PARAM_INVALID.",
    ]


def test_each_names_codes_alone_among_the_codes() -> None:
    found = messages(with_section("    - each.rank\n", "returns"))
    assert any("unknown word of the section returns: 'each.rank'" in message for message in found)


def test_a_series_stands_for_its_words() -> None:
    found = section("phases", name="prototype")
    assert list(found)[:5] == [f"prototype.{number}" for number in range(1, 6)]
    own = section("both", "rank", more="sentences: {both: [dtype, format]}\n")
    assert [text.partition(" ")[0] for text in own.values()] == ["Dtypes", "Formats", "Number"]


SENTENCES = """\
sentences:
  at_most: {say: rank, en: "{name} of {what}: {en}.", zh: "{name}（{what}）：{zh}。"}
  computes: {en: "On {product} it is {as}.", zh: "{product}：{as}。", when: "rank(x) == {is_rank}"}
"""


def test_a_sentence_takes_the_words_of_the_entry() -> None:
    found = made("{say: at_most, what: calls, en: few, zh: 少}", more=SENTENCES)
    assert (found.constraints, found.en, found.zh) == (("x.rank",), "x of calls: few.", "x（calls）：少。")
    found = made("{say: computes, as: BF16, is_rank: 2, products: atlas-training}", more=SENTENCES)
    assert (found.en, found.zh) == ("On Atlas training series it is BF16.", "Atlas 训练系列产品：BF16。")
    assert (found.when_text, found.products, found.check) == ("rank(x) == 2", ("atlas-training",), "values")


def test_a_key_that_a_sentence_does_not_have_is_a_mistake() -> None:
    found = messages(with_section("    - {say: at_most, what: c, en: few, zh: 少, why: no}\n", "params.x", SENTENCES))
    assert any("unknown key 'why'" in message for message in found)


def test_a_stock_sentence_takes_the_words_of_the_entry() -> None:
    assert made("{say: input_of, en: the gradient, zh: 梯度}").en == "x, an input, is the gradient."
    lost = "    - {say: lost_formula, output: out, formula: out = x + 1}\n"
    found = clause(built(changed('    - {en: "It computes.", zh: "计算。", check: values}\n', lost)), "function.1")
    assert found.en == "The formula of out is a lost picture; read as out = x + 1."
    assert (found.output, found.certainty) == ("out", "missing")


def test_a_stock_sentence_without_its_word_is_a_mistake() -> None:
    text = changed('    - {en: "It computes.", zh: "计算。", check: values}\n', "    - {say: lost_formula, of: out}\n")
    assert any("'lost_formula': no formula; add `formula`" in message for message in messages(text))


def test_rules_of_a_stock_sentence_say_where_it_holds() -> None:
    more = "constraints:\n  - {id: x.odd, that: rank(x) > 1, strength: open, products: atlas-a2}\n"
    assert made("{say: repeated, rules: odd, en: ranks, zh: 维数}", more=more) == Clause(
        at="params.x.1",
        en="The list of parameters repeats the entry of x: ranks.",
        zh="参数列表重复了 x 条目：维数。",
        constraints=("x.odd",),
        products=("atlas-a2",),
        certainty="ambiguous",
    )
    found = messages(with_section("    - {say: repeated, rules: [even], en: ranks, zh: 维数}\n", "params.x"))
    assert any("unknown word of the section params.x: 'even'" in message for message in found)


def test_the_sentence_on_an_example_has_its_arguments() -> None:
    more = "examples:\n  - arguments: {x: 'FLOAT [2] = 1, 2', out: 'FLOAT [2]'}\n"
    found = made("calls", "example", more)
    assert found.en == "The example succeeds with x FLOAT [2] = 1, 2; out FLOAT [2]."
    assert found.example == "document"


def test_the_sentence_on_a_shape_speaks_of_the_rank_too() -> None:
    text = changed("same_shape_as: x, dtypes", "same_shape_as: x, rank: [1, 8], dtypes")
    found = clauses(built(text + "  limits: [[out.rank, out.shape]]\n"), "limits")
    assert found == {"limits.1": "out: the same shape as x."}


def test_junk_anywhere_is_a_message_and_no_exception() -> None:
    text = ROLES.replace('shape: "[*A]"}', 'shape: "[*A]", data: {with: {low: 0}, exact: [ramp, {recipe: normal}]}}')
    text += "rows: {parameters: [[x, dx], y, dy], atlas-a2: [[FLOAT, [BF16], FLOAT]]}\n"
    text += REPEATED.replace("out", "dx").replace("clauses:\n", SENTENCES + "  all: [dtype, rank]\nclauses:\n")
    text += "  params.x: [all, {say: at_most, what: c, en: f, zh: f}, {say: repeated, rules: [dtype], en: f, zh: f}]\n"
    text += "  returns: [each.null]\nmodes: {attribute: m, by: x, names: {0: A}, operand: {atlas-a2: {FLOAT: FLOAT}}}\n"
    junk_is_a_message(text)
