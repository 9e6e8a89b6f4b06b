"""A test of one operator that needs nothing of this project: golden values and bounds beside a pytest module."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts import __version__
from aclnn_cts.candidates.arrays import plain_json
from aclnn_cts.candidates.cases import CaseArrays, case_of, drawn_seed, value_trials
from aclnn_cts.candidates.check import JudgedDocument, expected_of, judged_document
from aclnn_cts.core import hifloat8
from aclnn_cts.core.case import TensorList
from aclnn_cts.core.dtypes import FLOAT8, numpy_dtype
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.rounding import widen
from aclnn_cts.generate.sampler import Sampler

_TEMPLATE = "templates/operator_test.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTest:
    """The two files of a test."""

    stem: str
    module: bytes
    """The pytest module, whose name begins with `test_`."""
    data: bytes
    """The arrays beside it: inputs as bytes, and the value, ends and open elements of each output."""
    number: int
    """Calls."""


def export_pytest(
    op: str,
    *,
    seed: int = 0,
    n: int = 40,
    max_elements: int = 4096,
    product: str | None = None,
    edition: str | None = None,
    library: str = "numpy",
) -> ExportedTest:
    """A test of `n` calls whose arrays have at most so many elements each, as the profile `standard` draws them.

    Tensors are those of `library`, which is numpy or torch. The test has tables of the numbers of 8 bits that it needs.
    Calls without an element that the document determines are left out. Raises UsageError where no call is left.
    """
    known = judged_document(op, product, edition)
    arrays: dict[str, NDArray[Any]] = {}
    entries: list[dict[str, Any]] = []
    sampler = Sampler(known.spec, known.target)
    for trial in value_trials(known.spec, sampler, profile_name="standard", seed=drawn_seed(seed)):
        if len(entries) == n:
            break
        if all(tensor.numel <= max_elements for _, tensor in trial.case.tensors()):
            entries += _exported(known, case_of(known.spec, trial.case), arrays)
    if not entries:
        raise UsageError(f"--max-elements {max_elements}: no call is that small; give a larger number")
    used = {name for entry in entries for name in _dtypes(entry)}
    for dtype in map(numpy_dtype, sorted(FLOAT8)):
        if _name(dtype) in used:
            arrays[f"values/{_name(dtype)}"] = widen(np.arange(256, dtype=np.uint8).view(dtype)).astype(np.float32)
    arrays["cases"] = np.frombuffer(json.dumps(entries).encode(), np.uint8)
    spec = known.spec
    fields = {
        "OPERATOR": spec.operator,
        "PRODUCT": known.target.product,
        "NUMBER": str(len(entries)),
        "VERSION": __version__,
        "SEED": str(seed),
        "ARRAYS": library,
        "NEEDS": "numpy, torch and pytest" if library == "torch" else "numpy and pytest",
        "FILE": f"test_{spec.stem}.py",
        "DATA": f"{spec.stem}.npz",
        "ORDER": json.dumps(list(spec.outputs)),
    }
    text = (resources.files("aclnn_cts.candidates") / _TEMPLATE).read_text(encoding="utf-8")
    for name, value in fields.items():
        text = text.replace(f"@{name}@", value)
    return ExportedTest(stem=spec.stem, module=text.encode(), data=_archive(arrays), number=len(entries))


def _exported(known: JudgedDocument, case: CaseArrays, arrays: dict[str, NDArray[Any]]) -> Iterator[dict[str, Any]]:
    """One call, whose arrays are added; nothing where no element is determined."""
    found = expected_of(known, case.case, case.inputs)
    if all(item.open.all() for item in found.outputs.values()):
        return
    for name, array in case.inputs.items():
        arrays[f"{case.id}/{name}"] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    outputs = {}
    for name, item in found.outputs.items():
        tensor = case.case.tensor(name)
        if tensor is None:
            continue
        outputs[name] = {"shape": list(tensor.shape), "dtype": _name(numpy_dtype(tensor.dtype))}
        for part in ("value", "lower", "upper", "open", "overflow"):
            arrays[f"{case.id}/{name}/{part}"] = getattr(item, part)
    yield {
        "id": case.id,
        "attributes": plain_json(case.attributes),
        "inputs": dict(_inputs(case)),
        "outputs": outputs,
    }


def _inputs(case: CaseArrays) -> Iterator[tuple[str, Any]]:
    """Shape, dtype and strides in elements of each input; a list of them for a list of tensors."""

    def facts(array: NDArray[Any]) -> dict[str, Any]:
        size = max(array.itemsize, 1)
        return {
            "shape": list(array.shape),
            "dtype": _name(array.dtype),
            "strides": [stride // size for stride in array.strides],
        }

    for name, value in case.case.arguments.items():
        if name in case.inputs:
            yield name, facts(case.inputs[name])
        elif isinstance(value, TensorList) and f"{name}[0]" in case.inputs:
            yield name, [facts(case.inputs[f"{name}[{place}]"]) for place in range(len(value))]


def _name(dtype: np.dtype[Any]) -> str:
    """HIFLOAT8 has no dtype of NumPy."""
    return "hifloat8" if dtype == hifloat8.STORAGE else dtype.name


def _dtypes(entry: Mapping[str, Any]) -> Iterator[str]:
    for facts in (*entry["inputs"].values(), *entry["outputs"].values()):
        yield from (item["dtype"] for item in (facts if isinstance(facts, list) else [facts]))


def _archive(arrays: dict[str, NDArray[Any]]) -> bytes:
    """Equal arrays give equal bytes: NumPy writes entries with a fixed date."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # names are no options of it
    return file.getvalue()
