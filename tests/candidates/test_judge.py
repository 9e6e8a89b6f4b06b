from __future__ import annotations

import functools
import json
import math
import subprocess
import time
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import aclnn_cts
from aclnn_cts.candidates.judge import seconds_of
from aclnn_cts.candidates.schemas import schemas
from aclnn_cts.candidates.verdict import CandidateFinding, Judgement
from aclnn_cts.core.errors import UsageError
from tests.candidates import kernels

OPERATOR = "softmax_backward"
_OPERATOR_THAT_WRITES_NOTHING = """
#include <cstdint>
extern "C" int aclnnTanhBackwardGetWorkspaceSize(
    const void*, const void*, const void*, uint64_t* size, void** executor) {
  static int mark;
  *size = 0;
  *executor = &mark;
  return 0;
}
extern "C" int aclnnTanhBackward(void*, uint64_t, void*, void*) { return 0; }
"""
FILE = Path(kernels.__file__)


@functools.cache
def judged(name: str, **options: Any) -> Judgement:
    """Of calls with equal words, one is made."""
    return aclnn_cts.judge(f"{FILE}:{name}", OPERATOR, **{"budget": "60s", "seed": 11, **options})


_SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("by_name", "into_given_memory", "all_arguments")]


@pytest.mark.parametrize("name", ["right", *_SLOW])
def test_right_function_conforms(name: str) -> None:
    found = judged(name)
    assert found.verdict == "conforms", found.reason
    assert found.complete
    assert found.failed == 0
    assert aclnn_cts.reward(found) == 1.0
    jsonschema.validate(found.to_json(), schemas()["judgement"])


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("wrong", "value"),
        ("other_shape", "shape"),
        ("two_results", "rejected"),
        ("raises", "rejected"),
        ("crashes", "crash"),
    ],
)
def test_wrong_function_fails_with_its_fault(name: str, fault: str) -> None:
    found = judged(name)
    assert (found.verdict, found.findings[0].fault) == ("fails", fault)
    assert found.reason == found.findings[0].sentence
    assert aclnn_cts.reward(found) < 0.9
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    jsonschema.validate(document, schemas()["judgement"])


def test_finding_has_its_call_as_arrays() -> None:
    found = judged("wrong").findings[0]
    assert found.case is not None
    arguments = found.case.arguments
    out = kernels.wrong(arguments["gradOutput"], arguments["output"], arguments["dim"])
    again = aclnn_cts.check(OPERATOR, arguments, np.asarray(out).astype(found.case.outputs()["out"].dtype))
    assert again.verdict == "fails"


def test_hanging_function_costs_its_limit() -> None:
    start = time.monotonic()
    found = judged("hangs", budget="1s")
    assert (found.verdict, found.findings[0].fault) == ("fails", "hang")
    assert time.monotonic() - start < 20


def test_equal_seeds_make_equal_judgements() -> None:
    first, again = judged("wrong"), judged.__wrapped__("wrong")
    assert first.findings[0].trial == again.findings[0].trial
    assert (first.seed, first.passed, first.failed) == (again.seed, again.passed, again.failed)


def test_seed_comes_from_entropy_and_is_recorded() -> None:
    first, other = (judged.__wrapped__("raises", seed=None) for _ in range(2))
    assert first.seed != other.seed


def test_function_of_a_module_runs_in_a_fresh_process() -> None:
    found = aclnn_cts.judge(kernels.raises, OPERATOR, seed=1)
    assert found.isolation == "confined"
    assert found.findings[0].fault == "rejected"


def test_closure_needs_no_sandbox_and_the_verdict_says_so() -> None:
    factor = 1.0

    def scaled(grad_output: Any, output: Any, dim: int) -> Any:
        return factor * kernels.right(grad_output, output, dim)

    with pytest.raises(UsageError, match=r"FILE\.py:FUNCTION, or pass sandbox=False"):
        aclnn_cts.judge(scaled, OPERATOR)
    found = aclnn_cts.judge(scaled, OPERATOR, sandbox=False, seed=1, budget="60s")
    assert (found.verdict, found.isolation) == ("conforms", "none")


@pytest.mark.slow
def test_adapter_is_judged_by_its_word() -> None:
    found = aclnn_cts.judge("reference", "tanh_backward", seed=1, budget="60s")
    assert found.verdict == "conforms"


@pytest.mark.slow
def test_library_with_the_c_interface_is_judged_with_its_statuses(tmp_path: Path) -> None:
    source, library = tmp_path / "op.cpp", tmp_path / "libop.so"
    source.write_text(_OPERATOR_THAT_WRITES_NOTHING, encoding="utf-8")
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    found = aclnn_cts.judge(str(library), "tanh_backward", seed=1, budget="60s")
    assert (found.verdict, found.candidate, found.isolation) == ("fails", str(library), "process")
    assert found.findings[0].fault == "unwritten"


@pytest.mark.slow
def test_library_without_the_operator_is_refused(tmp_path: Path) -> None:
    source, library = tmp_path / "op.cpp", tmp_path / "libop.so"
    source.write_text(_OPERATOR_THAT_WRITES_NOTHING, encoding="utf-8")
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    with pytest.raises(UsageError, match="exports aclnnSoftmaxBackwardGetWorkspaceSize and aclnnSoftmaxBackward"):
        aclnn_cts.judge(str(library), "softmax_backward", seed=1)


@pytest.mark.parametrize("word", ["nothing.py:f", f"{FILE}", f"{FILE}:two words", "nothing.so", "no_adapter"])
def test_candidate_that_cannot_be_understood_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        aclnn_cts.judge(word, OPERATOR)


@pytest.mark.parametrize(("text", "seconds"), [("10s", 10.0), ("500ms", 0.5), ("2m", 120.0), (3, 3.0)])
def test_budget_is_read(text: str | float, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "0s", "-1s", "ten", "2 days", "nan"])
def test_wrong_budget_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="budget"):
        seconds_of(text)


def failing(*, passed_first: int, ratio: float | str) -> Judgement:
    finding = CandidateFinding(fault="value", sentence="")
    return Judgement(
        verdict="fails",
        candidate="",
        operator="",
        product="",
        seed=0,
        findings=(finding,),
        error_ratio=ratio,
        planned=100,
        passed_first=passed_first,
    )


def test_reward_grows_with_passed_trials_and_falls_with_the_error_ratio() -> None:
    by_passed = [aclnn_cts.reward(failing(passed_first=number, ratio=2.0)) for number in (0, 10, 50, 99)]
    by_ratio = [aclnn_cts.reward(failing(passed_first=5, ratio=ratio)) for ratio in (1.5, 4.0, 1e6, "inf")]
    assert by_passed == sorted(by_passed)
    assert by_ratio == sorted(by_ratio, reverse=True)
    assert len({*by_passed}) == len({*by_ratio}) == 4
    assert max(*by_passed, *by_ratio) < 1.0


def test_reward_depends_on_no_number_of_shown_findings() -> None:
    found = [judged("wrong", reveal=0), judged("wrong"), judged("wrong", reveal=3)]
    assert [len(item.findings) for item in found[:2]] == [0, 1]
    assert len({aclnn_cts.reward(item) for item in found}) == 1
    assert float(found[0].error_ratio) > 1.0


def test_reward_tells_small_errors_of_exact_values_from_large_ones() -> None:
    near, far = judged("nearly_right", seed=3), judged("zeros", seed=3)
    assert 1.0 < float(near.error_ratio) < float(far.error_ratio) < math.inf
    assert near.passed_first == far.passed_first == 0
    assert aclnn_cts.reward(near) > aclnn_cts.reward(far) > 0.0


def test_slow_function_is_not_called_behind_the_budget() -> None:
    start = time.monotonic()
    found = judged("slower", budget="2s")
    assert (found.verdict, found.unjudged) == ("inconclusive", 0)
    assert found.passed <= 2
    assert time.monotonic() - start < 10


def test_slow_closure_is_not_called_behind_the_budget() -> None:
    found = aclnn_cts.judge(kernels.slower, OPERATOR, sandbox=False, budget="1s")
    assert (found.verdict, found.passed) == ("inconclusive", 1)


def test_results_in_the_order_of_the_prototype_conform_where_a_mask_leaves_some_out() -> None:
    found = aclnn_cts.judge(f"{FILE}:tuple_of_all_or_asked", "layer_norm_backward", budget="60s", seed=3)
    assert found.verdict == "conforms", found.reason


def test_complex_results_for_a_real_output_fail() -> None:
    assert judged("complex_result").findings[0].fault == "dtype"


def test_candidate_that_imports_the_judge_is_told_so(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("import aclnn_cts\n\n\ndef f(**arguments):\n    return None\n", encoding="utf-8")
    found = aclnn_cts.judge(f"{file}:f", OPERATOR, budget="60s", seed=1)
    assert (found.verdict, found.findings[0].fault) == ("fails", "rejected")
    assert "put the function into a file that does not import aclnn_cts" in found.reason


def test_inconclusive_counts_as_wrong() -> None:
    assert aclnn_cts.reward(Judgement(verdict="inconclusive", candidate="", operator="", product="", seed=0)) == 0.0


def test_repeated_trials_count_apart_from_those_of_the_plan() -> None:
    judgement = judged("right")
    made = judgement.passed + judgement.failed + judgement.unjudged
    assert judgement.complete
    assert judgement.repeated > 0
    assert made - judgement.repeated == judgement.planned
    assert judgement.passed_first <= judgement.planned


def test_right_function_that_is_too_slow_for_the_budget_is_inconclusive() -> None:
    # In this time it answers the first batch and its repeats, and not 48 trials of the plan.
    found = judged("slow", budget="2500ms")
    assert (found.verdict, found.complete, found.failed) == ("inconclusive", False, 0)
    assert found.passed_first < 48


@pytest.mark.parametrize("contents", ["undefined symbol", "text"])
def test_a_library_that_cannot_be_loaded_is_named(contents: str, tmp_path: Path) -> None:
    library = tmp_path / "kernel.so"
    if contents == "text":
        library.write_text("no library", encoding="utf-8")
    else:
        source = tmp_path / "kernel.cpp"
        source.write_text('extern "C" int missing(); extern "C" int f() { return missing(); }', encoding="utf-8")
        subprocess.run(["g++", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    with pytest.raises(UsageError, match=r"candidate \S+kernel\.so: .*linked with all that it calls") as raised:
        aclnn_cts.judge(str(library), "tanh_backward")
    assert "cann:library" not in str(raised.value)


def test_a_method_may_come_from_another_file(tmp_path: Path) -> None:
    base = FILE.read_text(encoding="utf-8") + "\n\nclass Base:\n    run = staticmethod(raises)\n"
    (tmp_path / "base_kernels.py").write_text(base, encoding="utf-8")
    path = tmp_path / "own_kernels.py"
    path.write_text("from base_kernels import Base\n\nclass Own(Base):\n    pass\n", encoding="utf-8")
    judgement = aclnn_cts.judge(f"{path}:Own.run", OPERATOR, budget="60s", seed=11, sandbox=False)
    assert "no such kernel" in judgement.reason, "it was called"
    with pytest.raises(UsageError, match=r"has no Other\.run"):
        aclnn_cts.judge(f"{path}:Other.run", OPERATOR, budget="60s", seed=11)


@pytest.mark.parametrize(
    ("name", "said"), [("generator", "generator"), ("text", "str"), ("object_", "object"), ("later", "coroutine")]
)
def test_what_is_no_array_is_named(name: str, said: str) -> None:
    found = judged(name)
    assert (found.verdict, found.findings[0].fault) == ("fails", "rejected")
    assert f"it returned {said}; expected an array" in found.reason


def test_a_parameter_that_the_call_has_not_is_named() -> None:
    found = aclnn_cts.judge(len, OPERATOR, seed=1)
    assert "its parameter 'obj' is none of this call; expected gradOutput, output, dim" in found.reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": "x"}, r"seed: 'x'; expected an integer from 0"),
        ({"seed": 1.5}, r"seed: 1\.5; expected an integer"),
        ({"seed": -1}, r"seed: -1; expected an integer"),
        ({"reveal": "1"}, r"reveal: '1'; expected an integer, 0 or more"),
        ({"reveal": -1}, r"reveal: -1"),
        ({"workers": 0}, r"workers: 0; expected an integer, 1 or more"),
        ({"product": "x"}, "product: 'x'"),
        ({"budget": True}, "budget True"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        aclnn_cts.judge(f"{FILE}:right", OPERATOR, **options)


@pytest.mark.parametrize("word", [None, 3, "kernel", "", ".", "x:"])
def test_a_word_for_no_candidate_is_refused_in_words_of_judge(word: Any) -> None:
    with pytest.raises(UsageError, match=r"^candidate .*FILE\.py:FUNCTION names a function") as raised:
        aclnn_cts.judge(word, OPERATOR)
    assert "--adapter" not in str(raised.value)
