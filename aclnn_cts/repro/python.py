"""A reproduction as one Python script: for a library, with numpy and ctypes, or for a function of the user's."""

from __future__ import annotations

import ast
import base64
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aclnn_cts.checks.life_cycle import ALLOWED_GROWTH
from aclnn_cts.core.case import Argument, BoolArray, FloatArray, Scalar, Tensor, TensorList, host_bytes
from aclnn_cts.core.dtypes import DTYPES, FLOAT8, itemsize, numpy_dtype
from aclnn_cts.core.rounding import widen
from aclnn_cts.repro.facts import Program, Reproduction, Step, TensorFacts
from aclnn_cts.repro.relations import Relation, Side, Slot

_WIDTH = 110


def numpy_program(program: Program) -> str:
    """The text of a script that calls a function of NumPy arrays."""
    return _function_program(program, tensors="NumPy arrays", library="", code="numpy_tensors")


def torch_program(program: Program) -> str:
    """The text of a script that calls a function of torch tensors."""
    return _function_program(program, tensors="torch tensors", library=", torch", code="torch_tensors")


def _function_program(program: Program, *, tensors: str, library: str, code: str) -> str:
    first = program.calls[0]
    # Calls that are made first are neither judged nor compared, and are made all the same.
    order = [step.call for step in program.steps if step.verb in ("judge", "refused")]
    document = {
        "calls": [_call(facts) for facts in program.calls],
        "order": order or list(range(len(program.calls))),
        "outputs": list(program.outputs),
        **_related(program),
    }
    fields = {
        "@LIBRARY@": library,
        "@INPUTS@": ", ".join(item.name for item in first.parameters if item.role != "output"),
        "@TENSORS@": tensors,
        "@OUTPUTS@": ", ".join(program.outputs),
    }
    return _filled(_script("opening", code, "related", "function_program"), fields, program, document)


class _Template(NamedTuple):
    """A file of `templates`: shebang and docstring, the modules that it imports, and the rest."""

    head: str
    modules: frozenset[str]
    body: str


@cache
def _template(name: str) -> _Template:
    text = (Path(__file__).parent / "templates" / f"{name}.py").read_text(encoding="utf-8")
    lines = text.splitlines()
    docstring, *nodes = ast.parse(text).body
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    first = next(node for node in nodes if node not in imports)
    # `from` names another template, which the script holds too.
    modules = frozenset(ast.unparse(node) for node in imports if isinstance(node, ast.Import))
    return _Template("\n".join(lines[: docstring.end_lineno]), modules, "\n".join(lines[first.lineno - 1 :]))


def _script(*names: str) -> str:
    """One script of several templates, of which the last tells what it is."""
    templates = [_template(name) for name in names]
    imports = "\n".join(sorted(frozenset().union(*(template.modules for template in templates))))
    bodies = "\n\n\n".join(template.body for template in templates)
    return f"{templates[-1].head}\n\n{imports}\n\n{bodies}\n"


def _filled(text: str, fields: dict[str, str], program: Program, document: dict[str, Any]) -> str:
    first = program.calls[0]
    common = {
        "@OPERATOR@": first.case.operator,
        "@SENTENCE@": _plain(first.sentence),
        "@CASE@": first.case_id,
        "@PRODUCT@": first.case.product,
        "@ABOUT@": "".join(f"\n{_plain(line)}" for line in program.about),
        "@JSON@": _written(document),
    }
    for mark, value in {**fields, **common}.items():
        text = text.replace(mark, value)
    return text


def python_program(program: Program) -> str:
    """The text of a script that calls a library through ctypes."""
    document = {
        "calls": [_call(facts) for facts in program.calls],
        "steps": _steps(program.steps),
        "number": program.number,
        "runtime": program.needs_runtime,
        "streams": program.streams,
        "growth": ALLOWED_GROWTH,
        **_related(program),
    }
    return _filled(_script("opening", "related", "library_program"), {}, program, document)


def _steps(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """The steps of a loop within it."""
    found: list[dict[str, Any]] = []
    inner: list[dict[str, Any]] | None = None
    for step in steps:
        if step.verb == "loop":
            inner = []
            found.append({"verb": "loop", "times": step.times, "steps": inner})
        elif step.verb == "end":
            inner = None
        else:
            (found if inner is None else inner).append(
                {
                    "verb": step.verb,
                    "call": step.call,
                    "number": step.number,
                    "stream": step.stream,
                    "way": step.way,
                    "times": step.times,
                }
            )
    return found


def _written(value: Any, indent: str = "") -> str:  # noqa: ANN401 - a JSON value
    """JSON, an entry a line where one line would be too long for them all."""
    line = json.dumps(value)
    if len(indent) + len(line) <= _WIDTH or not isinstance(value, dict | list):
        return line
    inner = indent + " "
    if isinstance(value, dict):
        entries = [f"{json.dumps(key)}: {_written(entry, inner)}" for key, entry in value.items()]
    else:
        entries = [_written(entry, inner) for entry in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    joined = ",\n".join(inner + entry for entry in entries)
    return f"{opening}\n{joined}\n{indent}{closing}"


def _related(program: Program) -> dict[str, Any]:
    """What the outputs of the calls have to do with one another."""
    slots = {slot: place for place, slot in enumerate(program.kept)}
    relations = [_relation(relation, slots) for relation in program.relations]
    return {"kept": len(slots), "relations": relations, "beyond": program.beyond}


def _relation(relation: Relation, slots: dict[Slot, int]) -> dict[str, Any]:
    return {
        "output": relation.output,
        "said": relation.said,
        "place": relation.place,
        "shape": list(relation.shape),
        "bounds": _encoded(relation.bounds.astype("<f8").tobytes()),
        "runs": [
            {"rows": run.rows, "left": _side(run.left, slots), "right": _side(run.right, slots)}
            for run in relation.runs
        ],
    }


def _side(side: Side, slots: dict[Slot, int]) -> list[Any]:
    terms = [[slots[term.slot], term.first, term.step, term.factor.hex()] for term in side.terms]
    return [side.constant.hex(), terms]


def _plain(text: str) -> str:
    """On one line, with nothing that ends a docstring."""
    return " ".join(text.split()).replace("\\", "/").replace('"', "'")


def _call(facts: Reproduction) -> dict[str, Any]:
    return {
        "operator": facts.case.operator,
        "phases": facts.phases,
        "null": list(facts.case.call.null),
        "statuses": [value for _, value in facts.statuses],
        "any_error": facts.any_error,
        "refused_in_phase_one": facts.refused_in_phase_one,
        "parameters": [
            {
                "name": item.name,
                "kind": item.kind,
                "type": item.type.strip(),
                "role": item.role,
                "value": _value(facts, item.name),
            }
            for item in facts.parameters
        ],
    }


def _value(facts: Reproduction, name: str) -> Any:  # noqa: ANN401 - a JSON value
    value: Argument = facts.case.arguments[name]
    match value:
        case Tensor():
            return _tensor(facts.tensors[name])
        case TensorList():
            return [_tensor(facts.tensors[f"{name}[{place}]"]) for place in range(len(value))]
        case Scalar():
            stated = value.value.hex() if isinstance(value.value, float) else value.value
            return {"dtype": DTYPES[value.dtype].value, "bytes": _encoded(host_bytes(value)), "value": stated}
        case BoolArray() | FloatArray():
            return [item.hex() if isinstance(item, float) else item for item in value.items]
        case tuple():
            return list(value)
        case float():
            return value.hex()
    return value


def _tensor(tensor: TensorFacts) -> dict[str, Any]:
    expected = None
    if tensor.expected is not None:
        expected = {
            "lower": _encoded(tensor.expected.lower.astype("<f8").tobytes()),
            "upper": _encoded(tensor.expected.upper.astype("<f8").tobytes()),
            "judged": _encoded(tensor.expected.judged.tobytes()),
            "finite_alone": _encoded(tensor.expected.finite_alone.tobytes()),
        }
    return {
        "shape": list(tensor.tensor.shape),
        "dtype": tensor.dtype,
        "format": tensor.format,
        "strides": list(tensor.strides),
        "offset": tensor.tensor.offset,
        "storage_shape": list(tensor.storage_shape),
        "bytes": tensor.nbytes,
        "itemsize": itemsize(tensor.tensor.dtype),
        "data": _encoded(tensor.storage.tobytes()) if tensor.storage is not None else None,
        "expected": expected,
        **_numbers(tensor.tensor.dtype),
    }


def _numbers(dtype: str) -> dict[str, str]:
    """What each byte of an 8-bit float stands for: the NumPy that runs the script may have no such dtype."""
    if dtype not in FLOAT8:
        return {}
    every = np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype))
    return {"numbers": _encoded(widen(every).astype("<f8").tobytes())}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
