"""Tokens that a map routes: gradients that are those of the forward operator, and open where the equation differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import Expected, OracleInput
from aclnn_cts.oracles import registry

TOKENS, EXPERTS, WIDTH = 5, 4, 3
OPERATOR = registry.load("moe_token_permute_with_routing_map_grad")


def gradients(routing: NDArray[np.bool_], gradient: NDArray[Any], probs: NDArray[Any]) -> Expected:
    """The gradients of a call without padding, whose indices the forward operator makes from the map."""
    outputs = {"tokensGradOut": (len(routing), WIDTH), "probsGradOutOptional": routing.shape}
    tensors = {
        "permutedTokenOutputGrad": gradient,
        "permutedProbsOutputGradOptional": probs,
        "sortedIndices": sorted_indices(routing),
        "routingMapOptional": routing,
    }
    described = {name: Tensor(array.shape, "FLOAT") for name, array in tensors.items()}
    described |= {name: Tensor(shape, "FLOAT") for name, shape in outputs.items()}
    attributes = {"numExperts": routing.shape[1], "tokensNum": len(routing), "dropAndPad": False}
    return OPERATOR(OracleInput(tensors=tensors, arguments={**described, **attributes}))


def sorted_indices(routing: NDArray[np.bool_]) -> NDArray[np.int64]:
    tokens = np.broadcast_to(np.arange(len(routing)), routing.T.shape)[routing.T]
    return np.argsort(tokens, kind="stable")


def drawn_map(chosen: int) -> NDArray[np.bool_]:
    random = np.random.default_rng(chosen)
    return np.argsort(random.random((TOKENS, EXPERTS)), axis=1) < chosen


@pytest.mark.parametrize("chosen", [2, 3])
def test_a_token_receives_the_gradients_of_the_rows_of_its_experts(chosen: int) -> None:
    routing = drawn_map(chosen)
    gradient = np.random.default_rng(1).standard_normal((TOKENS * chosen, WIDTH))
    found = gradients(routing, gradient, gradient[:, 0])["tokensGradOut"]
    wanted = np.zeros((TOKENS, WIDTH))
    for row, (_, token) in enumerate(np.argwhere(routing.T)):
        wanted[token] += gradient[row]
    np.testing.assert_allclose(found.value, wanted, rtol=1e-12)
    assert found.open is None or not found.open.any()


def test_one_row_a_token_is_open_where_equation_and_forward_operator_differ() -> None:
    experts = np.array([1, 0, 3, 2, 2])
    routing = np.arange(EXPERTS) == experts[:, None]
    gradient = np.arange(1.0, TOKENS + 1).repeat(WIDTH).reshape(TOKENS, WIDTH)
    found = gradients(routing, gradient, gradient[:, 0])
    # Rows hold the tokens 1, 0, 3, 4, 2: the first two change places, the others go round.
    opened = np.broadcast_to(np.asarray(found["tokensGradOut"].open), (TOKENS, WIDTH))
    assert opened[:, 0].tolist() == [False, False, True, True, True]
    assert np.asarray(found["tokensGradOut"].value)[:2, 0].tolist() == [2.0, 1.0]
    # By tokens the ones of the map are those of the experts 1, 0, 3, 2, 2, by experts the tokens come as above.
    probs = np.asarray(found["probsGradOutOptional"].open)
    assert np.argwhere(probs).tolist() == [[0, 1], [1, 0], [2, 3], [3, 2], [4, 2]]


def test_probabilities_are_judged_where_experts_follow_tokens() -> None:
    routing = np.arange(EXPERTS) == np.array([0, 0, 1, 3, 3])[:, None]
    gradient = np.ones((TOKENS, WIDTH))
    found = gradients(routing, gradient, np.arange(1.0, TOKENS + 1))
    assert not any(np.any(found[name].open) for name in found if found[name].open is not None)
    wanted = np.zeros((TOKENS, EXPERTS))
    wanted[routing] = np.arange(1.0, TOKENS + 1)
    assert np.asarray(found["probsGradOutOptional"].value).tolist() == wanted.tolist()
