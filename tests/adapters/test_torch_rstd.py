"""The rstd of a case in the place of torch's own: whichever way it is put there, the gradients are the same bits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from aclnn_cts.adapters.protocol import Session
from aclnn_cts.core.case import Case
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import load_specs
from tests.adapters.torch_calls import rms_norm, run, tensor, values_of

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")


def cases(count: int) -> Iterator[Case]:
    """Random cases of all dtypes, layouts and recipes, of rstd too."""
    sampler = Sampler(load_specs()["aclnnRmsNormGrad"], Target())
    for number, choices in enumerate(stream_block(3, "rstd", 0, count)):
        yield sampler.random_case(choices, number)


def test_both_ways_give_the_same_bits(sessions: Mapping[str, Session], monkeypatch: pytest.MonkeyPatch) -> None:
    from aclnn_cts.adapters import torch_functions  # noqa: PLC0415 - it imports torch

    replaced: list[bool] = []
    directly = torch_functions.replace_rstd

    def watched(normal: Any, rstd: Any) -> bool:
        replaced.append(directly(normal, rstd))
        return replaced[-1]

    for case in cases(100):
        monkeypatch.setattr(torch_functions, "replace_rstd", watched)
        first, left = run(sessions["direct"], case)
        monkeypatch.setattr(torch_functions, "replace_rstd", lambda _normal, _rstd: False)
        second, right = run(sessions["direct"], case)
        assert (first.ended, first.message, first.facts) == (second.ended, second.message, second.facts)
        for name in left.outputs:
            assert left.outputs[name].view.tobytes() == right.outputs[name].view.tobytes(), (name, case)
        assert first.ended == CallEnd.RETURNED
    assert all(replaced), "this torch makes rms_norm's forward pass in a way that is not known here"


@pytest.mark.parametrize(("dtype", "gamma_dtype"), [("FLOAT", "FLOAT"), ("FLOAT16", "FLOAT"), ("BF16", "BF16")])
@pytest.mark.parametrize("rstd", [(0.5, 3), (-2, 0), (0.125, 8)])
def test_any_rstd_gives_the_gradients_of_the_formula(
    sessions: Mapping[str, Session], dtype: str, gamma_dtype: str, rstd: tuple[float, float]
) -> None:
    """dx = r (g - x r mean(g x r)) with g = dy gamma; dgamma = sum of dy x r. No value of rstd belongs to x."""
    outcome, buffers = run(sessions["direct"], rms_norm(dtype, gamma_dtype, rstd=tensor(rstd)))
    assert outcome.facts == {"rstd": "given to torch in place of its own"}
    dy, x, gamma = np.array([[1.0, 0], [0, 1]]), np.array([[1.0, 1], [1, -1]]), np.array([2.0, 3])
    r = np.array(rstd, np.float32).astype(np.float64)[:, None]
    g, normal = dy * gamma, x * r
    dx = r * (g - normal * (g * normal).mean(axis=1, keepdims=True))
    found = values_of(buffers)
    np.testing.assert_allclose(found["dxOut"], dx, rtol=1e-6 if dtype == "FLOAT" else 2.0**-8)
    np.testing.assert_allclose(found["dgammaOut"], (dy * normal).sum(axis=0), rtol=1e-6)


def test_an_unknown_forward_pass_is_left_alone() -> None:
    from aclnn_cts.adapters.torch_functions import replace_rstd  # noqa: PLC0415 - it imports torch

    x = torch.ones(2, 3, requires_grad=True)
    rstd = torch.zeros(2, 1)
    for result in (x.exp(), x * 2.0, (x * x) * x, (x * x.sum(1, keepdim=True)) * x, x):
        assert not replace_rstd(result, rstd)
    assert torch.autograd.grad((x * x).sum(), x)[0].tolist() == [[2.0] * 3] * 2


def test_a_forward_pass_that_takes_no_rstd_is_inexpressible(
    sessions: Mapping[str, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "rms_norm", lambda x, _shape, gamma: x * gamma)
    outcome, _ = run(sessions["direct"], rms_norm())
    assert outcome.ended == CallEnd.INEXPRESSIBLE
    assert "in a way that is not known here" in outcome.message
    monkeypatch.undo()
    outcome, buffers = run(sessions["direct"], rms_norm())
    assert outcome.ended == CallEnd.RETURNED
    assert values_of(buffers)["dxOut"]


def test_opening_does_not_load_torchs_compiler() -> None:
    program = (
        "import sys; from aclnn_cts.adapters.registry import load, parse_adapter_word as parse; "
        "from aclnn_cts.core.case import Target; load(parse('torch')).open(Target(), {}); "
        "print([name for name in sys.modules if name == 'torch._inductor'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", "that takes longer than importing torch"
