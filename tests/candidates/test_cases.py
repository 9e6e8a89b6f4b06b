from __future__ import annotations

import itertools
from typing import Any

import jsonschema
import pytest

import aclnn_cts
from aclnn_cts.candidates.schemas import schemas
from aclnn_cts.core.errors import UsageError
from aclnn_cts.speclang.load import load_specs


def test_equal_seeds_give_equal_calls() -> None:
    first, again = (list(aclnn_cts.cases("softmax_backward", seed=5, n=20)) for _ in range(2))
    assert [item.id for item in first] == [item.id for item in again]
    for one, other in zip(first, again, strict=True):
        assert one.inputs["output"].tobytes() == other.inputs["output"].tobytes()
    assert len({item.id for item in first}) > 15


def test_calls_without_a_seed_differ() -> None:
    first, other = (next(aclnn_cts.cases("tanh_backward")) for _ in range(2))
    assert first.id != other.id


def test_regimes_narrow_the_calls() -> None:
    every = list(aclnn_cts.cases("softmax_backward", seed=1))
    odd = list(aclnn_cts.cases("softmax_backward", seed=1, regimes=["odd"]))
    assert 0 < len(odd) < len(every)
    with pytest.raises(UsageError, match="regimes"):
        aclnn_cts.cases("softmax_backward", regimes=["huge"])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("profile", "huge"), ("profile", 3), ("n", -1), ("n", "a"), ("seed", 1.5), ("seed", -1), ("regimes", "tiny")],
)
def test_wrong_parameter_is_named_at_once(parameter: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"^{parameter}") as raised:
        aclnn_cts.cases("softmax_backward", **{parameter: value})
    assert "--" not in str(raised.value)


@pytest.mark.mechanism
@pytest.mark.parametrize("op", sorted(spec.stem for spec in load_specs().values()))
def test_arrays_alone_say_what_is_expected_of_a_call(op: str) -> None:
    """Arrays have no format, and a document may list every format but ND."""
    for case in itertools.islice(aclnn_cts.cases(op, seed=3), 8):
        # A mask, or flags, may exclude every output.
        flags = [case.arguments.get(name, True) for name in ("inputG", "weightG", "biasG")]
        is_masked = not any(case.arguments.get("outputMask") or flags)
        assert bool(aclnn_cts.expected(op, case.arguments).outputs) != is_masked


@pytest.mark.parametrize("op", ["softmax_backward", "layer_norm_backward", "gru_backward", "embedding_dense_backward"])
def test_calls_keep_every_rule_and_their_expected_values_conform(op: str) -> None:
    schema = schemas()["case_arrays"]
    for case in itertools.islice(aclnn_cts.cases(op, seed=3), 12):
        jsonschema.validate(case.to_json(), schema)
        outputs = case.outputs()
        expected = aclnn_cts.expected(op, case.arguments)
        assert set(expected.outputs) <= set(outputs)
