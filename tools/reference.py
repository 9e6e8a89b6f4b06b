"""The pages of commands and of JSON Schemas, made from what parses the one and writes the other."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from aclnn_cts.bundle.records import record_schema
from aclnn_cts.candidates.schemas import schemas
from aclnn_cts.cli.main import COMMANDS, LazyGroup
from aclnn_cts.cli.options import Command
from aclnn_cts.core.case_schema import case_schema
from tools.markdown import head, table


def commands_page() -> Iterator[str]:
    """Every command with its words and options."""
    yield from head("aclnn_cts/cli")
    yield "# Commands"
    yield ""
    yield "What `--help` of each command prints. [Exit codes and files](exit-codes.md) are the same for all of them."
    with click.Context(LazyGroup(entries=COMMANDS), info_name="aclnn-cts") as root:
        yield from _commands(root)


def _commands(context: click.Context) -> Iterator[str]:
    """The commands of a group, those of groups in it too."""
    group = context.command
    if not isinstance(group, click.Group):
        yield from _command(context, group)
        return
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is not None:
            with click.Context(found, info_name=name, parent=context, max_content_width=1000) as inner:
                yield from _commands(inner)


def _command(context: click.Context, command: click.Command) -> Iterator[str]:
    path = context.command_path
    yield ""
    yield f"## {path.removeprefix('aclnn-cts ')}"
    yield ""
    yield "```text"
    yield " ".join((path, *command.collect_usage_pieces(context)))
    yield "```"
    yield ""
    yield re.sub(r"[ \t]*\x08[ \t]*\n", "", inspect.cleandoc(command.help or ""))
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [(f"`{names}`", text) for names, text in filter(None, records) if text and "--help" not in names]
    if rows:
        yield ""
        yield from table(("option", "what it does"), rows)
    if isinstance(command, Command):
        yield ""
        yield "```console"
        yield command.example
        yield "```"


_OF_BUNDLES = "record"


def json_schemas() -> Mapping[str, Mapping[str, Any]]:
    """Those that are files in `specs/`, by the first part of their name."""
    return {"case": case_schema(), **schemas()}


_WHAT = {
    "case": "a [case or trial](case-files.md)",
    "check": "what [`check`](judging-kernels.md#check-values) gives",
    "expected": "what [`expected`](judging-kernels.md#check-values) gives",
    "case_arrays": "one of the calls that `cases` gives",
    "judgement": "what [`judge`](judging-kernels.md#judge-a-candidate) gives, and a line of `judge --json`",
    _OF_BUNDLES: "a record of a [bundle](compare-and-bundle.md), which holds the schema",
}


def schemas_page() -> Iterator[str]:
    """Every schema, and the parts that they share."""
    made = json_schemas()
    yield from head("aclnn_cts/candidates/schemas.py")
    yield "# JSON Schemas"
    yield ""
    yield "What programs read and write, as JSON Schema 2020-12."
    yield ""
    files = [(f"[`{name}.schema.json`](../specs/{name}.schema.json)", _WHAT[name]) for name in made]
    yield from table(("file", "holds"), [*files, (f"`schemas/{_OF_BUNDLES}.schema.json`", _WHAT[_OF_BUNDLES])])
    parts: dict[str, Any] = {}
    for name, schema in {**made, _OF_BUNDLES: record_schema()}.items():
        if "properties" in schema:
            parts.setdefault(name.title().replace("_", ""), schema)
        for part, definition in schema["$defs"].items():
            parts.setdefault(part, definition)
    for name in sorted(parts, key=str.lower):
        yield from _part(name, parts[name])


def _part(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"## {name}"
    if "description" in schema:
        yield ""
        yield str(schema["description"])
    yield ""
    if properties := schema.get("properties"):
        required = schema.get("required", ())
        rows = [(f"`{key}`", _type(item), "" if key in required else "optional") for key, item in properties.items()]
        yield from table(("key", "holds", ""), rows)
    else:
        yield from (f"- {_type(choice)}" for choice in schema.get("oneOf", (schema,)))


_LISTED = 8
"""Words of a closed set that a cell names; dtypes and formats are more."""


def _type(schema: Mapping[str, Any]) -> str:
    """What may stand in one place, in words."""
    if reference := schema.get("$ref"):
        part = reference.rpartition("/")[2]
        return f"[{part}](#{part.lower()})"
    for choices in ("anyOf", "oneOf"):
        if choices in schema and "properties" not in schema:
            return " or ".join(dict.fromkeys(map(_type, schema[choices])))
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        words = [f"`{json.dumps(word)}`" for word in schema["enum"][:_LISTED]]
        return ", ".join(words) + (", ..." if len(schema["enum"]) > _LISTED else "")
    kinds = schema.get("type", "any value")
    if kinds == "array":
        items = schema.get("prefixItems")
        held = ", ".join(map(_type, items)) if items else _type(schema.get("items") or {})
        return f"list of {held}"
    if kinds == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {_type(schema['additionalProperties'])}"
    if kinds == "object" and "properties" in schema:
        return "{" + "; ".join(f"`{key}`: {_type(item)}" for key, item in schema["properties"].items()) + "}"
    return " or ".join([kinds] if isinstance(kinds, str) else kinds)
