"""The short form of a spec: what it implies, what the shipped specs become, and what its mistakes say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from aclnn_cts.speclang.expand import expand
from aclnn_cts.speclang.load import lint_files, load_specs
from aclnn_cts.speclang.package import package_folder
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import OperatorModel
from aclnn_cts.speclang.yaml_file import YamlFile, parse_yaml, read_yaml
from tests.speclang.small_spec import junk_is_a_message, messages
from tests.support.spec_text import spec_from_text

LISTING = Path(__file__).parents[1] / "fixtures" / "spec_listing"
"""The five specs in the full form, as they were written out before the short form."""
STEMS = sorted(path.stem for path in LISTING.glob("*.json"))
REWORDED: dict[str, dict[str, list[str]]] = yaml.safe_load((LISTING / "reworded.yaml").read_text(encoding="utf-8"))
"""Clauses that no longer have the text of the listing, by spec and by why."""
CHARACTERS = 56_000
"""Of the five specs together in one layout, below; as they were first written they have 168,194 with comments."""

SHORT = """\
operator: aclnnShort
document: {title: aclnnShort, language: en}
products: [atlas-training, atlas-a2]
tables:
  floats: {atlas-training: [FLOAT], atlas-a2: [FLOAT, BF16]}
defaults:
  null: ACLNN_ERR_PARAM_NULLPTR
  dtypes: {status: ACLNN_ERR_PARAM_INVALID, group: dtype}
parameters:
  - {name: x, type: const aclTensor *, shape: "[*A]", dtypes: floats, formats: [ND, NCL], strided: true, rank: [1, 8]}
  - {name: out, type: aclTensor *, same_shape_as: x, dtypes: floats, same_dtype_as: x}
draws:
  - {run: A, length: [1, 8]}
clauses:
  function:
    - {en: "It computes.", zh: "计算。", check: values}
"""


def full(text: str) -> dict[str, Any]:
    """The content of the full form."""
    file = parse_yaml(text, name="short.yaml")
    problems = Problems(file)
    expanded = expand(file, problems)
    assert not problems.messages
    assert expanded is not None
    content: dict[str, Any] = expanded.content
    return content


def changed(old: str, new: str) -> str:
    assert SHORT.count(old) == 1, (old, SHORT.count(old))
    return SHORT.replace(old, new)


def entry(content: dict[str, Any], identifier: str) -> dict[str, Any]:
    (found,) = [item for item in content["constraints"] if item["id"] == identifier]
    return {key: value for key, value in found.items() if key != "id"}


# The shipped specs


def expanded_spec(stem: str) -> tuple[YamlFile, OperatorModel]:
    file = read_yaml(package_folder() / f"{stem}.yaml")
    problems = Problems(file)
    expanded = expand(file, problems)
    assert not problems.messages
    assert expanded is not None
    return expanded, OperatorModel.model_validate(expanded.content)


def listing(model: dict[str, Any]) -> dict[str, Any]:
    """A spec with the names of its tables replaced by the lists, and its constraints and clauses by id."""
    tables = model.pop("tables", {})
    for item in (*model["parameters"], *model["constraints"]):
        for key in ("dtypes", "in"):
            value = item.get(key)
            if isinstance(value, str) and value in tables:
                item[key] = tables[value]
            elif isinstance(value, list) and item.get("kind", key) in ("dtype", "dtypes"):
                item[key] = dict.fromkeys(model["products"], value)
    return {
        **model,
        "constraints": {item["id"]: item for item in model["constraints"]},
        "clauses": {item["at"]: item for item in model["clauses"]},
    }


@pytest.mark.parametrize("stem", STEMS)
def test_shipped_specs_expand_to_the_listing_but_for_explained_wording(stem: str) -> None:
    expanded, model = expanded_spec(stem)
    now = listing(model.model_dump(by_alias=True, exclude_defaults=True, mode="json"))
    before = listing(json.loads((LISTING / f"{stem}.json").read_text(encoding="utf-8")))
    assert list(now["clauses"]) == list(before["clauses"])
    shorter = set()
    for number, clause in enumerate(model.clauses):
        written: Any = expanded.source
        for step in expanded.written(("clauses", number)):
            written = written[step]
        new, old = now["clauses"][clause.at], before["clauses"][clause.at]
        is_own = isinstance(written, dict) and "en" in written
        texts = ("en", "zh", "untestable") if is_own and isinstance(written.get("untestable"), dict) else ("en", "zh")
        if is_own and any(old[key] != new[key] for key in texts):
            shorter.add(clause.at)
        for key in texts if not is_own or clause.at in shorter else ():
            old[key] = new[key]
        if isinstance(old.get("untestable"), dict) and "untestable" not in texts:
            old["untestable"] = new["untestable"]
    assert now == before
    explained = REWORDED[stem]
    assert shorter == set(explained["the same in other words"])
    assert not shorter & set(explained["a stock sentence"])
    assert set(explained["a stock sentence"]) <= set(now["clauses"])


def test_shipped_specs_are_short() -> None:
    layouts = [
        yaml.safe_dump(
            read_yaml(package_folder() / f"{stem}.yaml").content, allow_unicode=True, sort_keys=False, width=120
        )
        for stem in STEMS
    ]
    assert sum(map(len, layouts)) <= CHARACTERS


def test_every_spec_of_the_listing_ships() -> None:
    assert set(STEMS) <= {spec.stem for spec in load_specs().values()}


# What properties imply


def test_properties_make_constraints() -> None:
    content = full(SHORT)
    assert [item["id"] for item in content["constraints"]] == [
        "x.null", "out.null", "x.dtype", "out.dtype", "out.same_dtype", "x.format", "out.format", "x.rank", "out.shape",
        "out.contiguous", "x.not_empty",
    ]  # fmt: skip
    invalid = {"strength": "listed", "status": "ACLNN_ERR_PARAM_INVALID", "group": "dtype"}
    assert entry(content, "x.dtype") == {"kind": "dtype", "of": "x", "in": "floats", **invalid}
    assert entry(content, "out.same_dtype") == {
        "kind": "same_dtype", "of": "out", "as": "x", "strength": "limit", "requires": ["x.dtype", "out.dtype"],
    }  # fmt: skip
    assert entry(content, "x.rank") == {"kind": "rank", "of": "x", "in": [1, 8], "strength": "limit"}
    assert entry(content, "out.shape") == {"kind": "shape", "of": "out", "is": "[*x]", "strength": "limit"}
    assert entry(content, "out.contiguous")["strength"] == "open"
    assert entry(content, "x.not_empty")["strength"] == "open"


def test_parameters_draw_what_their_properties_allow() -> None:
    x, out = full(SHORT)["parameters"]
    assert (x["role"], x["dtypes"], x["formats"], x["strided"]) == ("input", "floats", ["ND", "NCL"], True)
    assert (out["role"], out["shape"], out["dtype"], out["formats"]) == ("output", "[*x]", "as x", ["ND"])


def test_others_are_the_products_that_a_list_does_not_name() -> None:
    products = "products: [atlas-training, atlas-a2, atlas-a3]"
    text = changed("products: [atlas-training, atlas-a2]", products).replace(
        "formats: [ND, NCL]", "formats: {is: {others: [ND]}}"
    )
    written = (
        text.replace("atlas-a2: [FLOAT, BF16]", "others: [FLOAT, BF16]")
        + "rows: {parameters: [x], others: [[FLOAT]]}\n"
    )
    content = full(written)
    assert content["tables"]["floats"] == {
        "atlas-training": ["FLOAT"],
        "atlas-a2": ["FLOAT", "BF16"],
        "atlas-a3": ["FLOAT", "BF16"],
    }
    assert content["parameters"][0]["formats"] == {"atlas-training": ["ND"], "atlas-a2": ["ND"], "atlas-a3": ["ND"]}
    row = [["FLOAT"]]
    assert content["rows"] == {"parameters": ["x"], "atlas-training": row, "atlas-a2": row, "atlas-a3": row}


def test_a_mistake_in_what_others_have_names_its_line() -> None:
    text = changed("atlas-a2: [FLOAT, BF16]", "others: [FLOAT, BF17]")
    assert any(message.startswith("small.yaml:5:") and "BF17" in message for message in messages(text))


def test_a_tier_requires_the_wider_ones_and_valid_calls_draw_from_the_last() -> None:
    content = full(changed("formats: [ND, NCL]", "formats: [{is: [ND, NCL]}, {is: [NCL], id: ncl, strength: open}]"))
    assert entry(content, "x.ncl") == {
        "kind": "format", "of": "x", "in": ["NCL"], "strength": "open", "requires": ["x.format"],
    }  # fmt: skip
    assert content["parameters"][0]["formats"] == ["NCL"]


@pytest.mark.parametrize(
    ("written", "strength"),
    [("strided: false", "limit"), ("strided: ACLNN_ERR_PARAM_INVALID", "listed"), ("strided: open", "open")],
)
def test_a_word_is_the_check_of_a_property(written: str, strength: str) -> None:
    assert entry(full(changed("strided: true", written)), "x.contiguous")["strength"] == strength


@pytest.mark.parametrize("written", ["empty: none", "empty: true"])
def test_a_property_may_imply_nothing(written: str) -> None:
    content = full(changed("strided: true", f"strided: true, {written}"))
    assert "x.not_empty" not in [item["id"] for item in content["constraints"]]


def test_what_cannot_be_broken_alone_is_one_group() -> None:
    text = changed(", group: dtype}", "}\n  same_dtype_as: ACLNN_ERR_PARAM_INVALID").replace(
        "  - {name: out,", "  - {name: y, type: const aclTensor *, shape: '[*A]', dtypes: floats}\n  - {name: out,"
    )
    content = full(text)
    groups = {item["id"]: item["group"] for item in content["constraints"] if "group" in item}
    dtypes = dict.fromkeys(("x.dtype", "out.dtype", "out.same_dtype"), "dtype")
    assert groups == {**dtypes, "x.not_empty": "empty", "y.not_empty": "empty"}
    assert "group" not in entry(full(text.replace("y, type", "y, empty: {group: null}, type")), "y.not_empty")


def test_a_check_of_its_own_replaces_the_default_one() -> None:
    content = full(
        changed("same_shape_as: x, dtypes: floats", "same_shape_as: x, dtypes: {is: floats, strength: open}")
    )
    assert entry(content, "out.dtype") == {"kind": "dtype", "of": "out", "in": "floats", "strength": "open"}


def test_a_written_constraint_replaces_the_implied_one() -> None:
    text = changed("clauses:\n", "constraints:\n  - {id: x.rank, kind: rank, of: x, in: [2, 8]}\nclauses:\n")
    assert entry(full(text), "x.rank") == {"kind": "rank", "of": "x", "in": [2, 8], "strength": "limit"}


@pytest.mark.parametrize(
    ("status", "strength"),
    [("status: ACLNN_ERR_PARAM_INVALID, ", "listed"), ("status: ACLNN_ERR_*, ", "limit"), ("", "limit")],
)
def test_the_strength_of_a_constraint_follows_from_its_status(status: str, strength: str) -> None:
    text = changed("clauses:\n", f"constraints:\n  - {{id: it, {status}kind: rank, of: x, in: [2, 8]}}\nclauses:\n")
    assert entry(full(text), "it")["strength"] == strength


# Clauses


A2 = "Atlas A2 training series / Atlas 800I A2 inference product"


def clauses(content: dict[str, Any], section: str) -> dict[str, str]:
    return {item["at"]: item["en"] for item in content["clauses"] if item["at"].rpartition(".")[0] == section}


def test_a_short_spec_is_whole_without_a_clause_on_its_parameters(tmp_path: Path) -> None:
    path = tmp_path / "short.yaml"
    path.write_text(SHORT, encoding="utf-8")
    assert lint_files([path])[1] == []
    spec = full(SHORT)
    assert {item for clause in spec["clauses"] for item in clause.get("constraints", ())} == {
        item["id"] for item in spec["constraints"]
    }
    assert list(clauses(spec, "params.x").values()) == [
        "x is a tensor that the computation reads.",
        "x may be a view that is not contiguous.",
        "On Atlas training series, x may be FLOAT.",
        f"On {A2}, x may be FLOAT.",
        f"On {A2}, x may be BF16.",
        "x may have the format ND.",
        "x may have the format NCL.",
        f"Dtypes of x: FLOAT (Atlas training series); FLOAT, BF16 ({A2}), and no others.",
        "Formats of x: ND, NCL, and no others.",
        "Number of dimensions of x: 1 to 8.",
        "Whether x may be empty is not said.",
    ]
    assert list(clauses(spec, "returns").values())[1:3] == [
        "A null pointer for x gives ACLNN_ERR_PARAM_NULLPTR.",
        "A null pointer for out gives ACLNN_ERR_PARAM_NULLPTR.",
    ]


def section(*entries: str, name: str = "params.x") -> dict[str, Any]:
    lines = "".join(f"    - {item}\n" for item in entries)
    return full(SHORT + f"  {name}:\n{lines}")


def test_a_written_section_is_numbered_by_place() -> None:
    content = section("input", "{at: 7, en: Own., zh: 自。, check: reads}", "rank")
    assert list(clauses(content, "params.x")) == ["params.x.1", "params.x.7", "params.x.8"]
    assert list(clauses(section("{at: 3, say: dtypes}", "rank"), "params.x")) == [
        f"params.x.{at}" for at in range(3, 7)
    ]
    own = next(item for item in content["clauses"] if item["at"] == "params.x.7")
    assert (own["check"], own["faults"]) == ("values", ["crash", "hang", "input-changed"])


def test_the_word_implied_stands_for_the_rest_of_a_section() -> None:
    content = section("implied", "{say: rank, en: Own., zh: 自。}")
    texts = list(clauses(content, "params.x").values())
    assert texts[0] == "x is a tensor that the computation reads."
    assert texts[-1] == "Own."
    assert not any("Number of dimensions" in text for text in texts)


def test_where_a_clause_is_stated_follows_from_its_rules() -> None:
    text = changed("clauses:\n", "constraints:\n  - {id: x.dims, kind: dims, of: x, in: [1, 9], products: [atlas-a2],"
                   " strength: open}\nclauses:\n")  # fmt: skip
    content = full(text + "  limits:\n    - {say: x.dims, en: Own., zh: 自。}\n")
    (clause,) = [item for item in content["clauses"] if item["at"] == "limits.1"]
    assert clause == {
        "at": "limits.1", "en": "Own.", "zh": "自。", "constraints": ["x.dims"], "products": ["atlas-a2"],
        "certainty": "ambiguous",
    }  # fmt: skip


def test_one_sentence_speaks_of_several_rules() -> None:
    content = section("tensors.dtype", "[x.null, out.null]", "x.rank", name="returns")
    assert list(clauses(content, "returns").values()) == [
        "An unsupported dtype of x and out gives ACLNN_ERR_PARAM_INVALID.",
        "A null pointer for x and out gives ACLNN_ERR_PARAM_NULLPTR.",
        "Number of dimensions of x: 1 to 8.",
    ]


def test_a_sentence_of_the_spec_is_said_of_each_parameter() -> None:
    text = changed("draws:\n", "sentences:\n  odd: {say: format, en: 'Odd {name} {4}.', zh: '{name} 奇。'}\ndraws:\n")
    content = full(text + "  params.x:\n    - odd\n  params.out:\n    - {say: odd, certainty: missing}\n")
    assert clauses(content, "params.x") == {"params.x.1": "Odd x {4}."}
    assert [item.get("certainty") for item in content["clauses"] if "Odd" in item["en"]] == [None, "missing"]


# Examples


def test_examples_are_written_as_tensors_and_plain_values() -> None:
    text = changed(
        "clauses:\n", "examples:\n  - arguments: {x: 'FLOAT [2, 2] NCL = 0..3', out: 'FLOAT8_E8M0 [2, 2]'}\nclauses:\n"
    )
    (example,) = full(text)["examples"]
    assert (example["name"], example["at"]) == ("document", "example.1")
    assert example["arguments"] == {
        "x": {"tensor": {"shape": [2, 2], "dtype": "FLOAT", "format": "NCL", "data": {"values": [0, 1, 2, 3]}}},
        "out": {"tensor": {"shape": [2, 2], "dtype": "FLOAT8_E8M0", "format": "ND"}},
    }


# Mistakes


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        (changed("rank: [1, 8]", "rang: [1, 8]"), 10, "unknown key 'rang'"),
        (changed("rank: [1, 8]", "rank: {is: [1, 8], brakes: []}"), 10, "unknown key 'brakes'"),
        (changed("rank: [1, 8]", "rank: {is: [8, 1]}"), 10, "expected two integers in ascending order"),
        (changed("rank: [1, 8]", "rank: [1, 8], strength: 1"), 10, "unknown key 'strength'"),
        (changed("rank: [1, 8]", "length: 3"), 10, "x is of kind tensor; length is a property of int_array"),
        (changed("strided: true", "strided: maybe"), 10, "strided: 'maybe'; expected true, false, a status"),
        (changed("same_dtype_as: x", "same_dtype_as: y"), 11, "'as y'; expected 'as NAME' with an earlier tensor"),
        (changed("same_dtype_as: x", "same_dtype_as: [x]"), 11, "expected the name of an earlier parameter"),
        (changed("  null: A", "  nul: A"), 7, "unknown property 'nul'"),
        (changed("  function:", "  functions:"), 16, "unknown section 'functions'"),
        (SHORT + "  params.x:\n    - rnk\n", 18, "unknown word of the section params.x: 'rnk'"),
        (SHORT + "  params.x:\n    - {untestable: tired, en: O., zh: 自。}\n", 18, "unknown reason 'tired'"),
        (SHORT + "  returns:\n    - [x.rank, x.null]\n", 18, "x.rank, x.null: no stock sentence; write en and zh"),
        (SHORT + "  params.x:\n    - 3\n", 18, "3; expected a word, a list of rules, or a clause"),
        (
            changed("clauses:\n", "examples:\n  - arguments: {x: FLOAT 4}\nclauses:\n"),
            15,
            "'FLOAT 4'; expected a tensor such as `FLOAT [4, 2] = 0..7`",
        ),
        (
            changed("clauses:\n", "examples:\n  - arguments: {x: 'FLOAT [4] = 1..3'}\nclauses:\n"),
            15,
            "3 values; the shape has 4",
        ),
        (
            changed("clauses:\n", "examples:\n  - arguments: {x: 'FLOAT [99999999, 99] = 1'}\nclauses:\n"),
            15,
            "expected LOW..HIGH",
        ),
    ],
)  # fmt: skip
def test_a_mistake_names_its_line_in_the_written_file(text: str, line: int, expected: str) -> None:
    found = messages(text)
    assert any(message.startswith(f"small.yaml:{line}:") and expected in message for message in found), found


def test_a_mistake_in_an_implied_constraint_names_the_property() -> None:
    found = messages(changed("rank: [1, 8]", "rank: {is: [1, 8], strength: hard}"))
    assert any("parameters.0.rank.strength: 'hard'" in message for message in found), found


def test_a_spec_in_the_full_form_implies_nothing() -> None:
    text = changed("clauses:\n  function:\n    - {en", "clauses:\n    - {at: function.1, en")
    assert any("defaults" in message for message in messages(text))
    with pytest.raises(Exception, match="unknown key 'defaults'"):
        spec_from_text(text, stem="short")


def test_junk_anywhere_is_a_message_and_no_exception() -> None:
    text = SHORT + "  params.x: [implied, {say: rank, at: 30, en: O., zh: O., of: [x], products: [atlas-a2]}]\n"
    text = text.replace("clauses:\n", "rows: {parameters: [x, out], atlas-a2: [[FLOAT, BF16]]}\nclauses:\n")
    text = text.replace("clauses:\n", "sentences: {odd: {say: x.rank, en: O., zh: O.}}\nclauses:\n")
    text = text.replace("clauses:\n", "constraints:\n  - {id: x.d, kind: dims, of: x, in: [1, 9]}\nclauses:\n")
    text = text.replace("clauses:\n", "examples:\n  - arguments: {x: 'FLOAT [2] = 1', out: 'FLOAT [2]'}\nclauses:\n")
    junk_is_a_message(text)


# Named expressions


def test_let_names_an_expression_wherever_one_is_read() -> None:
    text = changed("defaults:\n", "let: {half: 'dim(x, 0) // 2', most: half + 1}\ndefaults:\n")
    text = text.replace(
        "clauses:\n",
        "constraints:\n  - {id: x.half, that: numel(x) < 2*most, breaks: [{A: [half, 3]}], when: half > 1}\nclauses:\n",
    )
    content = full(text + "  limits:\n    - {say: x.half, en: Own half., zh: 自。}\n")
    assert entry(content, "x.half") == {
        "kind": "holds", "that": "numel(x) < 2*((dim(x, 0) // 2) + 1)", "breaks": [{"A": ["dim(x, 0) // 2", 3]}],
        "when": "(dim(x, 0) // 2) > 1", "strength": "limit",
    }  # fmt: skip
    assert clauses(content, "limits") == {"limits.1": "Own half."}
    assert "let" not in content


@pytest.mark.parametrize(
    ("named", "expected"),
    [("x: 1", "'x' means something else already"), ("A: 1", "'A' means"), ("min: 1", "'min' means"),
     ("y: 1 +", "ends too early"), ("y: z", "unknown name in the expression 'numel(x) < z': 'z'")],
)  # fmt: skip
def test_a_mistake_in_let_is_named(named: str, expected: str) -> None:
    text = changed("defaults:\n", f"let: {{{named}}}\ndefaults:\n")
    text = text.replace("clauses:\n", "constraints:\n  - {id: it, that: numel(x) < y}\nclauses:\n")
    found = messages(text + "  limits:\n    - {say: it, en: O., zh: 自。}\n")
    assert any(expected in message for message in found), found


def test_the_kind_and_the_parameter_of_a_constraint_follow() -> None:
    text = changed("clauses:\n", "constraints:\n  - {id: x.first, axis: 0, is: 3}\nclauses:\n")
    assert entry(full(text), "x.first") == {"kind": "size", "of": "x", "axis": 0, "is": 3, "strength": "limit"}


def test_a_clause_that_contradicts_others_is_contradicted() -> None:
    content = section("{contradicts: [function.1], en: Own., zh: 自。, check: values}")
    (clause,) = [item for item in content["clauses"] if item["at"] == "params.x.1"]
    assert clause["certainty"] == "contradicted"


@pytest.mark.parametrize(("rank", "is_told"), [("[1, 8]", True), ("[1, 7]", False)])
def test_one_sentence_on_several_rules_is_true_of_each(rank: str, is_told: bool) -> None:
    text = changed("same_shape_as: x, dtypes", f"same_shape_as: x, rank: {rank}, dtypes")
    told = "\n".join(messages(f"{text}  limits: [[x.rank, out.rank]]\n"))
    assert ("x.rank, out.rank: no stock sentence; write en and zh" in told) is not is_told
