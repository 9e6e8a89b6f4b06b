"""The pages on the spec file against the schema: every key, kind and function is described, and examples are right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aclnn_cts.core.target import Target
from aclnn_cts.speclang import schema
from aclnn_cts.speclang.build_constraints import KINDS
from aclnn_cts.speclang.expression import FUNCTIONS
from aclnn_cts.speclang.expression_parser import parse
from aclnn_cts.speclang.package import products
from aclnn_cts.speclang.properties import PROPERTIES
from aclnn_cts.speclang.shared_schema import FileEntry, PrecisionModel
from aclnn_cts.speclang.yaml_file import parse_yaml

PAGES = [
    Path(__file__).parents[2] / "docs" / f"spec-{part}.md"
    for part in ("format", "properties", "constraints", "expressions")
]
MODELS: dict[str, type[FileEntry]] = {
    "Operator": schema.OperatorModel,
    "Document": schema.DocumentModel,
    "Parameter": schema.ParameterModel,
    "Draw": schema.DrawModel,
    "Families": schema.FamilyModel,
    "Modes": schema.ModesModel,
    "Constraint": schema.ConstraintModel,
    "Clause": schema.ClauseModel,
    "Compute model": PrecisionModel,
    "Example": schema.ExampleModel,
    "ATK": schema.AtkModel,
    "ATK argument": schema.AtkArgumentModel,
    "Interface": schema.InterfaceModel,
}


def sections() -> dict[str, str]:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(section: str) -> list[list[str]]:
    lines = [line for line in sections()[section].splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def keys(section: str) -> list[str]:
    return [
        key
        for row in rows(section)
        if len(row) == 3 or section != "Families"
        for key in re.findall(r"`([^`]+)`", row[0])
    ]


def examples(section: str) -> list[tuple[str, str]]:
    found = [(row[0].strip("`"), row[2].strip("`")) for row in rows(section) if len(row) > 2 and row[2].startswith("`")]
    return [(parse_key(key, text), text) for key, text in found]


def parse_key(key: str, text: str) -> str:
    """Of a row on several keys that of its example."""
    return text.partition(":")[0] if "`, `" in key else key


def fields(section: str) -> dict[str, Any]:
    """The form of each key; the properties of a parameter have a section of their own."""
    found = {item.encode_name: item.type for item in msgspec.structs.fields(MODELS[section])}
    return {key: form for key, form in found.items() if section != "Parameter" or key not in PROPERTIES}


@pytest.mark.parametrize("section", MODELS)
def test_every_key_is_described_once(section: str) -> None:
    described = keys(section)
    assert sorted(described) == sorted(fields(section))


@pytest.mark.parametrize("section", MODELS)
def test_every_example_of_a_key_fits_the_schema(section: str) -> None:
    for key, text in examples(section):
        content: dict[str, Any] = parse_yaml(text, name=f"{section}.{key}").content
        assert list(content) == [key]
        msgspec.convert(content[key], fields(section)[key])


def test_every_property_is_described() -> None:
    described = [(row[0].strip("`"), row[1].strip("`")) for row in rows("Properties")]
    assert described == [(key, item.suffix) for key, item in PROPERTIES.items()]
    assert set(PROPERTIES) <= set(schema.ParameterModel.__struct_fields__)
    for key, text in [(row[0].strip("`"), row[3].strip("`")) for row in rows("Properties")]:
        assert list(parse_yaml(text, name=key).content) == [key]


def test_every_product_is_described() -> None:
    described = [(row[0].strip("`"), row[1], row[2]) for row in rows("Products")]
    assert described == [(name, item.title.en, item.short_soc) for name, item in products().items()]


def test_every_kind_is_described_by_an_entry_of_it() -> None:
    found = examples("Kinds of constraint")
    assert [kind for kind, _ in found] == list(KINDS)
    for kind, text in found:
        entry = msgspec.convert(parse_yaml(text, name=kind).content, schema.ConstraintModel)
        assert entry.kind == kind


def test_every_function_is_described() -> None:
    described = [key.partition("(")[0] for key in keys("Expressions") if "(" in key]
    assert sorted(described) == sorted(FUNCTIONS)


def test_every_fact_of_the_target_is_described() -> None:
    text = sections()["Expressions"]
    assert set(re.findall(r"target\.([a-z_]+)", text)) == set(Target.__struct_fields__)


@pytest.mark.parametrize("text", ["0 <= dim < rank(x)", "dtype(x) == FLOAT16", 'target.product == "atlas-a2"', "2**31"])
def test_expressions_of_the_page_can_be_read(text: str) -> None:
    assert any(text in page.read_text(encoding="utf-8") for page in PAGES)
    parse(text)
