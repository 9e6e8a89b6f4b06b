from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import Expected, OracleInput
from aclnn_cts.core.target import Target
from aclnn_cts.oracles import registry
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.adapters.loopback.support import compile_program, needs_compiler, run_program
from tests.oracles.support import Array, bound

DOCUMENTS = Path(__file__).resolve().parents[4] / "shared" / "docs"
SPECS = load_specs()
BROKEN = "aclnnUpsampleNearestExact1dBackward"
RUNNABLE = [
    (spec.operator, product)
    for spec in SPECS.values()
    if spec.operator != BROKEN and (DOCUMENTS / f"{spec.operator}.txt").is_file()
    for product in spec.products
]
LINE = re.compile(r"(\w+)\[(\d+)\] is: (\S+)")

# The operand's unit roundoff of the mode that the example chooses, or 0.
OPERAND = {("aclnnConvTbcBackward", "atlas-a2"): 2.0**-11, ("aclnnConvTbcBackward", "atlas-training"): 2.0**-11}

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(not DOCUMENTS.is_dir(), reason=f"the documents are not here: {DOCUMENTS}"),
]


def example_of(operator: str) -> str:
    """The program at the end of a document: from its first #include on."""
    text = (DOCUMENTS / f"{operator}.txt").read_text(encoding="utf-8")
    return text[text.index("#include") :] + "\n"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


def compiled_example(operator: str, folder: Path) -> Path:
    program = folder / operator
    if not program.exists():
        source = folder / f"{operator}.cpp"
        source.write_text(example_of(operator), encoding="utf-8")
        done = compile_program(source, program)
        assert done.returncode == 0, done.stderr
    return program


def printed(output: str) -> list[tuple[int, float]]:
    lines = [LINE.fullmatch(line) for line in output.splitlines()]
    assert lines
    assert all(lines), output
    return [(int(line[2]), float(line[3])) for line in lines if line]


def question(spec: Spec, product: str) -> OracleInput:
    """What the oracle is asked: the example as the spec file keeps it."""
    [example] = spec.examples
    tensors = {}
    for name in spec.inputs:
        tensor = example.arguments[name]
        assert isinstance(tensor, Tensor)
        assert tensor.data is not None
        assert tensor.data.values is not None
        array: Array = np.array(tensor.data.values, dtype=np.float64).reshape(tensor.shape)
        tensors[name] = array.astype(np.int64) if tensor.dtype.startswith("INT") else array
    return OracleInput(tensors=tensors, arguments=example.arguments, target=Target(product=product))


def expected_values(spec: Spec, product: str) -> tuple[Expected, list[str]]:
    return registry.load(spec.stem)(question(spec, product)), list(spec.outputs)


@pytest.mark.parametrize(("operator", "product"), RUNNABLE)
def test_the_example_of_the_document_prints_what_the_oracle_says(operator: str, product: str, programs: Path) -> None:
    done = run_program(compiled_example(operator, programs), product=product)
    assert done.returncode == 0, done.stdout
    lines = printed(done.stdout)
    expected, outputs = expected_values(SPECS[operator], product)
    for name in outputs:
        output = expected[name]
        numbers, lines = lines[: output.value.size], lines[output.value.size :]
        assert [index for index, _ in numbers] == list(range(output.value.size))
        got = np.array([value for _, value in numbers]).reshape(output.value.shape)
        # The result is a FLOAT number, printed with six places.
        limit = bound(output, operand_unit=OPERAND.get((operator, product), 0.0))
        limit = limit + 2.0**-24 * np.abs(output.value) + 0.5e-6 * (1 + 2.0**-10)
        assert (np.abs(got - output.value) <= limit).all(), (name, got, output.value)
    assert lines == []


def test_a_wrong_number_would_be_found(programs: Path) -> None:
    operator, product = RUNNABLE[0]
    done = run_program(compiled_example(operator, programs), product=product)
    expected, [first, *_] = expected_values(SPECS[operator], product)
    index, value = printed(done.stdout)[0]
    assert abs(value - expected[first].value.reshape(-1)[index]) < 0.01
    assert abs(value + 1 - expected[first].value.reshape(-1)[index]) > 0.5


def test_the_example_of_upsample_does_not_compile(tmp_path: Path) -> None:
    source = tmp_path / "example.cpp"
    text = example_of(BROKEN)
    source.write_text(text, encoding="utf-8")
    done = compile_program(source, tmp_path / "example")
    assert done.returncode != 0
    assert "aclnn_upsample_Nearest_Exact2d_Backward.h: No such file" in done.stderr
    # Nor would it with that header: it names variables and a function that it does not define.
    included = tmp_path / "aclnnop" / "aclnn_upsample_Nearest_Exact2d_Backward.h"
    included.parent.mkdir()
    included.write_text('#include "aclnnop/aclnn_upsample_nearest_exact1d_backward.h"\n')
    done = compile_program(source, tmp_path / "example", include=(tmp_path,))
    assert done.returncode != 0
    for name in ("CreateAclNchTensor", "inputHostData", "outputSize", "selfDeviceAddr"):
        assert re.search(rf".{name}. was not declared in this scope", done.stderr), name
