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
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument, BoolArray, FloatArray, Scalar, Tensor, TensorList, host_bytes
from aclnn_cts.core.dtypes import DTYPES, FLOAT8, itemsize, numpy_dtype
from aclnn_cts.core.rounding import widen
from aclnn_cts.repro.facts import CallSequence, DescriptorFacts, Reproduction, Step
from aclnn_cts.trials.checks.life_cycle import ALLOWED_GROWTH

_WIDTH = 110


def numpy_program(program: CallSequence) -> str:
    """The text of a script that calls a function of NumPy arrays."""
    return _function_program(program, tensors="NumPy arrays", library="", code="numpy_tensors")


def torch_program(program: CallSequence) -> str:
    """The text of a script that calls a function of torch tensors."""
    return _function_program(program, tensors="torch tensors", library=", torch", code="torch_tensors")


def _function_program(program: CallSequence, *, tensors: str, library: str, code: str) -> str:
    first = program.calls[0]
    # Calls that are made first are neither judged nor compared, and are made all the same.
    order = [step.call for step in program.steps if step.verb in ("judge", "refused")]
    document = {
        "calls": [_call(facts) for facts in program.calls],
        "order": order or list(range(len(program.calls))),
        "outputs": list(program.outputs),
        **_equal(program),
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


def _filled(text: str, fields: dict[str, str], program: CallSequence, document: dict[str, Any]) -> str:
    first = program.calls[0]
    common = {
        "@OPERATOR@": first.case.operator,
        "@SENTENCE@": _plain(program.title),
        "@CASE@": first.case_id,
        "@PRODUCT@": first.case.product,
        "@ABOUT@": "".join(f"\n{_plain(line)}" for line in program.about),
        "@JSON@": _written(document),
    }
    for mark, value in {**fields, **common}.items():
        text = text.replace(mark, value)
    return text


def python_program(program: CallSequence) -> str:
    """The text of a script that calls a library through ctypes."""
    document = {
        "calls": [_call(facts) for facts in program.calls],
        "steps": _steps(program.steps),
        "number": program.number,
        "runtime": program.needs_runtime,
        "streams": program.streams,
        "growth": ALLOWED_GROWTH,
        **_equal(program),
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


def _equal(program: CallSequence) -> dict[str, Any]:
    """What the calls must have in common."""
    return {"equal": list(program.equal), "beyond": program.beyond}


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


def _tensor(tensor: DescriptorFacts) -> dict[str, Any]:
    expected = None
    if tensor.expected is not None:
        expected = {
            "lower": _encoded(tensor.expected.lower.astype("<f8").tobytes(), each=8),
            "upper": _encoded(tensor.expected.upper.astype("<f8").tobytes(), each=8),
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
        "data": None if (stored := tensor.storage) is None else _encoded(stored.tobytes(), each=stored.itemsize),
        "expected": expected,
        **_numbers(tensor.tensor.dtype),
    }


def _numbers(dtype: str) -> dict[str, str]:
    """What each byte of an 8-bit float stands for: the NumPy that runs the script may have no such dtype."""
    if dtype not in FLOAT8:
        return {}
    every = np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype))
    return {"numbers": _encoded(widen(every).astype("<f8").tobytes())}


def _encoded(data: bytes, *, each: int = 1) -> str:
    """Base64 in pieces; `AACAPw==*1025` is one item of `each` bytes, so many times, where that is shorter."""
    items = np.frombuffer(data, np.uint8).reshape(-1, each)
    ends = [*(np.flatnonzero((items[1:] != items[:-1]).any(axis=1)) + 1).tolist(), len(items)]
    pieces: list[str] = []
    start = plain = 0
    for end in ends:
        repeated = f"{base64.b64encode(items[start].tobytes()).decode()}*{end - start}" if data else ""
        if 3 * len(repeated) < 4 * each * (end - start):
            pieces += _base64(items[plain:start]), repeated
            plain = end
        start = end
    return " ".join(filter(None, (*pieces, _base64(items[plain:]))))


def _base64(items: NDArray[np.uint8]) -> str:
    return base64.b64encode(items.tobytes()).decode()
