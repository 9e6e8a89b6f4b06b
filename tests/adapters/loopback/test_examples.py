from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from aclnn_cts.core.case import Case
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import JudgementBasis, Judges
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.judgement.bound import bound
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.adapters.loopback.support import compile_program, needs_compiler, run_program
from tests.support.emulated import GRADIENTS

DOCUMENTS = Path(__file__).resolve().parents[4] / "shared" / "docs"
SPECS = load_specs()
BROKEN = "aclnnUpsampleNearestExact1dBackward"
RUNNABLE = [(operator, product) for operator in GRADIENTS if operator != BROKEN for product in SPECS[operator].products]
LINE = re.compile(r"(\w+)\[(\d+)\] is: (\S+)")

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


def expected_values(spec: Spec, product: str) -> dict[str, JudgementBasis]:
    """What conforms of each output, in the mode that the example chooses."""
    [example] = spec.examples
    case = Case(spec.operator, example.arguments, target=Target(product=product))
    arrays = case_arrays(case, list(spec.given_inputs(case)))
    return Judges(has_statuses=True).of(spec).limits(PerformedCall(case=case, outcome=Outcome(), arrays=arrays))


@pytest.mark.parametrize(("operator", "product"), RUNNABLE)
def test_the_example_of_the_document_prints_what_the_oracle_says(operator: str, product: str, programs: Path) -> None:
    done = run_program(compiled_example(operator, programs), product=product)
    assert done.returncode == 0, done.stdout
    lines = printed(done.stdout)
    for name, known in expected_values(SPECS[operator], product).items():
        value, ends = known.expected.value, bound(known.expected, known.model, operands=known.operands).ends
        numbers, lines = lines[: value.size], lines[value.size :]
        assert [index for index, _ in numbers] == list(range(value.size))
        got = np.array([number for _, number in numbers]).reshape(value.shape)
        # The result is a FLOAT number, printed with six places.
        printing = 0.5e-6 * (1 + 2.0**-10)
        assert ((ends.lower - printing <= got) & (got <= ends.upper + printing)).all(), (name, got, value)
    assert lines == []


def test_a_wrong_number_would_be_found(programs: Path) -> None:
    operator, product = RUNNABLE[0]
    done = run_program(compiled_example(operator, programs), product=product)
    first = next(iter(expected_values(SPECS[operator], product).values())).expected
    index, value = printed(done.stdout)[0]
    assert abs(value - first.value.reshape(-1)[index]) < 0.01
    assert abs(value + 1 - first.value.reshape(-1)[index]) > 0.5


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
