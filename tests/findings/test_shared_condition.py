"""What failing calls share: the condition is found where there is one, and none where chance alone could explain it."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from xml.etree import ElementTree as ET

import pytest
import yaml

from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Case, Data, Scalar, Tensor
from aclnn_cts.findings.shared_condition import alternative, shared_condition
from aclnn_cts.generate.predicate import FilledTensor, compile_predicate, with_contents
from tests.support.ran import Ran

SIZES = (1, 2, 3, 5, 7, 8, 9, 16, 17, 24, 25, 33, 64, 65, 100, 129)


def call(random: Random) -> Case:
    shape = tuple(random.choice(SIZES) for _ in range(random.randint(1, 4)))
    dtype = random.choice(("FLOAT", "FLOAT16", "BF16"))
    data = Data(recipe=random.choice(("normal", "integers", "special")))
    strides = tuple(range(len(shape))) if random.random() < 0.2 else None
    grad = Tensor(shape, dtype, strides=strides, offset=random.choice((0, 0, 3)), data=data)
    arguments = {"gradOutput": grad, "output": Tensor(shape, dtype, data=data)}
    axis = random.randint(-len(shape), len(shape) - 1)
    return Case("aclnnSoftmaxBackward", {**arguments, "dim": axis, "out": Tensor(shape, dtype)})


def calls(number: int, seed: int) -> list[Case]:
    random = Random(seed)  # noqa: S311 - examples, not secrets
    return [call(random) for _ in range(number)]


def out(case: Case) -> Tensor:
    tensor = case.arguments["out"]
    assert isinstance(tensor, Tensor)
    return tensor


def reduced(case: Case) -> int:
    axis = case.arguments["dim"]
    assert isinstance(axis, int)
    return out(case).shape[axis]


def filled_argument(case: Case, name: str) -> FilledTensor:
    [arguments] = with_contents([case])
    tensor = arguments[name]
    assert isinstance(tensor, FilledTensor)
    return tensor


TRIGGERS: dict[str, Callable[[Case], bool]] = {
    "residue": lambda case: reduced(case) % 8 == 1,
    "tail": lambda case: reduced(case) % 8 != 0,
    "length": lambda case: reduced(case) >= 64,
    "elements": lambda case: out(case).numel < 50,
    "rank": lambda case: len(out(case).shape) == 4,
    "dtype": lambda case: out(case).dtype == "BF16",
    "not dtype": lambda case: out(case).dtype != "BF16",
    "axis": lambda case: case.arguments["dim"] == -1,
    "layout": lambda case: not case.tensors()[0][1].is_contiguous,
    "offset": lambda case: case.tensors()[0][1].offset == 3,
    "data": lambda case: case.tensors()[0][1].data == Data(recipe="special"),
    "both": lambda case: reduced(case) % 16 == 0 and out(case).dtype == "FLOAT16",
    "either": lambda case: reduced(case) % 16 == 0 or out(case).dtype == "BF16",
    "nan": compile_predicate('holds(gradOutput, "nan")'),
    "lowest axis": lambda case: case.arguments["dim"] == -len(out(case).shape),
    "two sizes": lambda case: reduced(case) > out(case).shape[0],
}


@pytest.mark.parametrize("name", TRIGGERS)
def test_the_condition_agrees_with_the_trigger_on_fresh_calls(name: str) -> None:
    trigger = TRIGGERS[name]
    seen = calls(400, 1)
    found = shared_condition([case for case in seen if trigger(case)], [case for case in seen if not trigger(case)])
    holds = compile_predicate(alternative(found))
    fresh = calls(200, 2)
    assert sum(holds(case) == trigger(case) for case in fresh) >= 180, found


def test_a_fault_that_half_of_the_calls_hide_has_its_condition() -> None:
    random, seen = Random(3), calls(600, 4)  # noqa: S311 - as above
    failing = [case for case in seen if reduced(case) % 8 == 1 and random.random() < 0.5]
    passing = [case for case in seen if case not in failing]
    assert shared_condition(failing, passing) == ("dim(gradOutput, dim) % 8 == 1",)


@pytest.mark.parametrize(("words", "when"), [(("none", "tanh"), 'approximate == "none"'), (('no"ne', "tanh"), None)])
def test_the_words_of_a_string_argument_are_quoted(words: tuple[str, str], when: str | None) -> None:
    tensor = Tensor((4, 2), "FLOAT", data=Data(recipe="normal"))
    failing, passing = (
        [
            Case(
                "aclnnGeluBackwardV2", {"gradOutput": tensor, "self": tensor, "approximate": word, "gradInput": tensor}
            )
            for _ in range(40)
        ]
        for word in words
    )
    assert shared_condition(failing, passing) == ((when,) if when else ())


@pytest.mark.parametrize("scalar", [True, False], ids=["aclScalar", "attribute"])
def test_an_attribute_is_a_condition(*, scalar: bool) -> None:
    tensor = Tensor((4, 2), "FLOAT", data=Data(recipe="normal"))

    def leaky(slope: float) -> Case:
        given = Scalar("FLOAT", slope) if scalar else slope
        return Case("aclnnLeakyReluBackward", {"gradOutput": tensor, "negativeSlope": given, "out": tensor})

    passing = [leaky(slope) for slope in (0.25, 0.5, 1.5, -2.0) for _ in range(20)]
    [rule] = shared_condition([leaky(0.0)] * 20, passing)
    assert rule == ("value(negativeSlope) == 0.0" if scalar else "negativeSlope == 0.0")


@pytest.mark.parametrize("least", [33, 150, 301])
def test_a_threshold_among_many_sizes_is_exact(least: int) -> None:
    def sized(size: int) -> Case:
        tensor = Tensor((size, 2), "FLOAT", data=Data(recipe="normal"))
        return Case("aclnnSoftmaxBackward", {"gradOutput": tensor, "output": tensor, "dim": 1, "out": tensor})

    # Among what fails, one call in nine is hidden by its values.
    failing = [size for size in range(least, 400) if size % 9]
    passing = [size for size in range(1, 400) if size not in failing]
    [rule] = shared_condition(list(map(sized, failing)), list(map(sized, passing)))
    holds = compile_predicate(rule)
    assert [holds(sized(size)) for size in (least - 1, least)] == [False, True], rule


def test_a_fault_of_nearly_every_call_has_no_condition() -> None:
    """A few passing calls, whatever they have in common, are those whose data hide it."""
    seen = calls(400, 5)
    hidden = [case for case in seen if out(case).numel <= 2]
    assert 0 < len(hidden) < 40
    assert shared_condition([case for case in seen if case not in hidden], hidden) == ()


def test_equal_indices_are_a_condition() -> None:
    random = Random(6)  # noqa: S311 - as above
    seen = [lookup(random) for _ in range(300)]
    repeated = [case for case in seen if filled_argument(case, "indices").distinct < out_rows(case)]
    found = shared_condition(repeated, [case for case in seen if case not in repeated])
    holds = compile_predicate(alternative(found))
    assert sum(holds(case) == (case in repeated) for case in seen) >= 270, found
    assert any("indices" in rule for rule in found)


def lookup(random: Random) -> Case:
    number, rows = random.randint(1, 12), random.randint(20, 60)
    data = Data(recipe="indices", low=0, high=rows - 1, seed=random.randrange(1000))
    return Case(
        "aclnnEmbeddingDenseBackward",
        {
            "grad": Tensor((number, 4), "FLOAT", data=Data(recipe="normal")),
            "indices": Tensor((number,), "INT64", data=data),
            "numWeights": rows,
            "paddingIdx": random.randrange(rows),
            "scaleGradByFreq": random.random() < 0.5,
            "out": Tensor((rows, 4), "FLOAT"),
        },
    )


def out_rows(case: Case) -> int:
    indices = case.arguments["indices"]
    assert isinstance(indices, Tensor)
    return indices.numel


@pytest.mark.parametrize("failing", [1, 2, 5, 40])
def test_chance_has_no_condition(failing: int) -> None:
    named = 0
    for seed in range(8):
        seen = calls(200, seed)
        named += bool(shared_condition(seen[:failing], seen[failing:]))
    assert named == 0


def test_without_failing_or_passing_calls_there_is_none() -> None:
    assert shared_condition([], calls(9, 0)) == ()
    assert shared_condition(calls(9, 0), []) == ()


@pytest.mark.slow
def test_terminal_page_and_json_name_it(ran: Callable[..., Ran]) -> None:
    run = ran("run", "softmax_backward", "--adapter", "rare_adapter:Rare,fault=tail")
    assert run.code == 1
    line = " ".join(run.out.partition(": value of out, when ")[2].split()).partition(" trials)")[0]
    assert "dtype(out) == FLOAT16" in line or "dtype(gradOutput) == FLOAT16" in line
    assert "% 2 == 1" in line or "% 2 != 0" in line
    forms = run.path.parent / "forms"
    assert main(["report", str(run.path), "-o", str(forms), "--format", "html,junit,markdown"]) == 0
    text = "".join(node.text or "" for node in ET.parse(forms / "junit.xml").iter("failure"))
    [condition] = set(re.findall("what failures share: `(.*?)`", text))
    page = (forms / "report.html").read_text(encoding="utf-8")
    assert "What failures share" in page
    assert "失败用例的共同条件" in page
    assert condition in (forms / "summary.md").read_text(encoding="utf-8").replace("\\", "")


@pytest.mark.slow
def test_a_drafted_waiver_proposes_it(ran: Callable[..., Ran], capsys: pytest.CaptureFixture[str]) -> None:
    run = ran("run", "softmax_backward", "--adapter", "rare_adapter:Rare,fault=tail")
    drafts = ""
    for file in (run.path / "failures").glob("*.json"):
        assert main(["waive", "add", str(file)]) == 0
        drafts += capsys.readouterr().out
    proposed = [yaml.safe_load(text)["when"] for text in re.findall(r"^      (when: .*)", drafts, re.MULTILINE)]
    assert proposed
    cases = [record.trial.case for record in run.records]
    assert all(any(map(compile_predicate(when), cases)) for when in proposed)
