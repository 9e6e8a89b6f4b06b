"""A training that is watched: each backward call is checked, and the wrong one is named."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn_cts
from aclnn_cts.core.errors import UsageError
from aclnn_cts.training.calls import read_call
from aclnn_cts.training.tally import CheckedCall
from tests.cli.conftest import Called

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
nn = torch.nn
Call = Callable[..., Called]


class Attention(nn.Module):  # type: ignore[misc, name-defined]  # torch is not checked
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.scores = nn.Linear(32, 48)
        self.softmax = nn.Softmax(-1)

    def forward(self, x: Any) -> Any:
        return self.softmax(self.scores(self.norm(x)))


class Net(nn.Module):  # type: ignore[misc, name-defined]  # torch is not checked
    def __init__(self) -> None:
        super().__init__()
        self.first, self.back, self.second = Attention(), nn.Linear(48, 32), Attention()

    def forward(self, x: Any) -> Any:
        return self.second(self.back(self.first(x)))


def train(net: Any, watched: Any, *, steps: int = 2, autocast: bool = False) -> None:
    torch.manual_seed(0)
    for _ in range(steps):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = net(torch.randn(6, 32)).float().square().sum()
        with watched:
            loss.backward()


def test_right_calls_conform() -> None:
    watched = aclnn_cts.watch(sample=1)
    train(Net(), watched)
    assert watched.tally.verdict.value == "conforms"
    assert set(watched.tally.by_operator) == {"aclnnSoftmaxBackward", "aclnnLayerNormBackward"}
    assert sum(watched.tally.checked.values()) == 8
    assert watched.first_wrong is None
    assert watched.worst is not None


@pytest.fixture(name="spoiled")
def spoil_one_layer() -> Iterator[None]:
    """The softmax of the second layer sums in half precision, from the second step on."""
    calls: list[None] = []

    def kernel(grad: Any, y: Any, dim: int, dtype: Any) -> Any:
        calls.append(None)
        # Of each step the second layer's call comes first.
        exact = torch.float16 if len(calls) > 2 and len(calls) % 2 else torch.float64
        total = (grad * y).to(exact).sum(dim, keepdim=True)
        return (y * (grad - total)).to(dtype)

    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it replaces torch's own
        library.impl("_softmax_backward_data", kernel, "CPU")
    yield
    library._destroy()


@pytest.mark.usefixtures("spoiled")
def test_a_sum_in_half_precision_is_named_with_module_and_step() -> None:
    net, seen = Net(), list[CheckedCall]()
    watched = aclnn_cts.watch(sample=1, model=net, on_wrong=seen.append)
    train(net, watched)
    assert watched.first_wrong is not None
    call = watched.first_wrong.call
    assert (call.operator, call.module, call.step) == ("aclnnSoftmaxBackward", "second.softmax", 2)
    assert seen == [watched.first_wrong]
    assert "step 2" in str(watched)
    assert "in second.softmax" in str(watched)
    watched.close()


def test_modules_name_their_calls() -> None:
    net = Net()
    watched = aclnn_cts.watch(sample=1, model=net)
    train(net, watched, steps=1)
    assert watched.worst is not None
    assert watched.worst.call.module in {"first.norm", "first.softmax", "second.norm", "second.softmax"}
    watched.close()


def test_one_step_of_a_sample_is_watched() -> None:
    watched = aclnn_cts.watch(sample=3, overhead=None)
    train(Net(), watched, steps=7)
    assert watched.step == 7
    assert sum(watched.tally.checked.values()) == 3 * 4


def test_calls_whose_checks_take_too_long_together_are_checked_in_turn() -> None:
    watched = aclnn_cts.watch(sample=2, overhead=1e-9)
    train(Net(), watched, steps=1)
    assert sum(watched.tally.checked.values()) == 4
    train(Net(), watched, steps=40)
    assert sum(watched.tally.checked.values()) < 4 + 20 * 4
    assert "Left to later steps: " in str(watched)


def test_each_call_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr("aclnn_cts.training.watch.time.perf_counter", lambda: float(next(clock)))
    # A check takes one second of this clock, and the steps between two watched ones as long.
    watched = aclnn_cts.watch(sample=2, overhead=2.0)
    train(Net(), watched, steps=9)
    by_operator = {name: sum(found.values()) for name, found in watched.tally.by_operator.items()}
    assert sum(by_operator.values()) == 4 + 4 * 2
    assert set(by_operator.values()) == {6}


def test_a_cnn_is_checked_as_a_whole() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(3)
    )
    watched = aclnn_cts.watch(sample=1, model=model)
    loss = nn.functional.binary_cross_entropy(model(torch.randn(2, 3, 8, 8)).sigmoid(), torch.rand(2, 4, 3, 3))
    with watched:
        loss.backward()
    assert {name: dict(found) for name, found in watched.tally.by_operator.items()} == {
        f"aclnn{name}Backward": {"conforms": 1}
        for name in (
            "AdaptiveAvgPool2d", "BatchNorm", "BinaryCrossEntropy", "Convolution", "MaxPool2dWithIndices", "Sigmoid",
            "Threshold",
        )
    }  # fmt: skip
    assert not watched.unknown


def test_calls_in_bf16_are_checked() -> None:
    watched = aclnn_cts.watch(sample=1)
    x = torch.randn(8, 16, dtype=torch.bfloat16, requires_grad=True)
    with watched:
        torch.tanh(x).backward(torch.randn(8, 16, dtype=torch.bfloat16))
    assert dict(watched.tally.checked) == {"conforms": 1}


def test_strided_gradients_are_checked() -> None:
    watched = aclnn_cts.watch(sample=1)
    x = torch.randn(8, 16, requires_grad=True)
    with watched:
        torch.tanh(x).t().backward(torch.randn(16, 8))
    assert dict(watched.tally.checked) == {"conforms": 1}


def test_outputs_that_a_mask_leaves_out_are_not_compared() -> None:
    watched = aclnn_cts.watch(sample=1)
    norm = nn.LayerNorm(16)
    norm.weight.requires_grad = False
    x = torch.randn(4, 16, requires_grad=True)
    with watched:
        norm(x).square().sum().backward()
    assert dict(watched.tally.checked) == {"conforms": 1}


def test_an_output_without_a_gradient_adds_no_call() -> None:
    watched = aclnn_cts.watch(sample=1)
    x = torch.randn(4, 16, requires_grad=True)
    with watched:
        torch.tanh(x)  # nobody needs its gradient
        torch.sigmoid(x).sum().backward()
    assert set(watched.tally.by_operator) == {"aclnnSigmoidBackward"}


def test_a_training_in_mixed_precision_is_watched() -> None:
    watched = aclnn_cts.watch(sample=1)
    train(Net(), watched, autocast=True)
    assert watched.tally.by_operator["aclnnSoftmaxBackward"] == {"conforms": 4}
    # torch rounds the sums of a FLOAT weight's gradient to BF16 where the input is BF16.
    assert watched.tally.by_operator["aclnnLayerNormBackward"] == {"conforms": 2, "fails": 2}


def test_functions_without_a_spec_are_counted() -> None:
    watched = aclnn_cts.watch(sample=1)
    with watched:
        torch.nn.functional.huber_loss(torch.randn(4, requires_grad=True), torch.zeros(4)).backward()
    assert watched.unknown["huber_loss_backward"] == 1
    assert "huber_loss_backward (1)" in str(watched)


def test_an_ignored_operator_is_not_checked() -> None:
    watched = aclnn_cts.watch(sample=1, ignore=["softmax_backward"])
    train(Net(), watched, steps=1)
    assert set(watched.tally.by_operator) == {"aclnnLayerNormBackward"}


def test_a_call_beyond_the_budget_is_kept_as_hashes(tmp_path: Path) -> None:
    watched = aclnn_cts.watch(sample=1, budget=64, out=tmp_path / "calls")
    train(Net(), watched, steps=1)
    assert dict(watched.tally.checked) == {"inconclusive": 4}
    assert "too large to be kept" in str(watched)
    made = read_call(next((tmp_path / "calls").iterdir()))
    assert not made.inputs
    assert all(len(facts.sha256) == 64 for facts in made.call.inputs.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample": 0}, "sample: 0"),
        ({"sample": "x"}, "sample: 'x'; expected a number of steps"),
        ({"sample": 1.5}, r"sample: 1\.5"),
        ({"budget": 0}, "budget: 0"),
        ({"budget": None}, "budget: None"),
        ({"overhead": 0}, "overhead: 0; expected a share"),
        ({"overhead": "a tenth"}, "overhead: 'a tenth'"),
        ({"ignore": "gelu_backward_v2"}, "expected a list of operators"),
        ({"on_wrong": 3}, "on_wrong: 3; expected a function"),
        ({"ignore": ["nothing"]}, "ignore"),
        ({"model": 3}, "model: int; expected a torch.nn.Module"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        aclnn_cts.watch(**options)


def nested() -> Any:
    rows = [torch.ones(2, 3), torch.ones(4, 3)]
    x = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
    return nn.functional.gelu(x).values().sum()


def meta() -> Any:
    return torch.ones(3, 4, device="meta", requires_grad=True).softmax(-1).square().sum()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("loss", [nested, meta])
def test_a_training_goes_on_where_tensors_have_no_elements_to_read(loss: Callable[[], Any]) -> None:
    watched = aclnn_cts.watch(sample=1)
    with watched:
        loss().backward()
    assert watched.tally.checked == {"inconclusive": 1}
    assert "expected elements that can be read" in next(iter(watched.tally.reasons))


def test_a_block_is_not_entered_within_itself() -> None:
    watched = aclnn_cts.watch(sample=1)
    with watched, pytest.raises(UsageError, match="entered within itself"), watched:
        pass
    x = torch.ones(3, requires_grad=True)
    x.tanh().sum().backward()
    assert watched.step == 1
    assert not watched.tally.checked


def test_an_embedding_without_padding_is_checked() -> None:
    model = torch.nn.Embedding(5, 4)
    watched = aclnn_cts.watch(sample=1, model=model)
    loss = model(torch.tensor([0, 2, 2])).sum()
    with watched:
        loss.backward()
    assert dict(watched.tally.checked) == {"conforms": 1}


@pytest.mark.parametrize("words", [("softmax_backward",), ("--adapter", "torch"), ("--seed", "3")])
def test_words_that_recorded_calls_do_not_use_are_refused(words: tuple[str, ...], call: Call, tmp_path: Path) -> None:
    called = call("run", *words, "--recorded", str(tmp_path))
    assert called.code == 2
    assert f"leave out {words[0] if len(words) > 1 else 'OPERATORS'}" in called.err


def test_recorded_calls_are_checked_by_run(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "calls"
    train(Net(), aclnn_cts.watch(sample=1, out=folder, check=False), steps=1)
    called = call("run", "--recorded", str(folder))
    assert called.code == 0
    assert "Verdict: conforms." in called.out
    document = json.loads(call("run", "--recorded", str(folder), "--json").out)
    assert document["calls"] == {"conforms": 4}


def test_a_recorded_call_that_is_wrong_fails(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "calls"
    train(Net(), aclnn_cts.watch(sample=1, out=folder, check=False), steps=1)
    path = min(folder.iterdir())
    with np.load(path) as file:
        arrays = dict(file)
    arrays["out/out"][:4] ^= 1 << 6
    np.savez(path, **arrays)
    called = call("run", "--recorded", str(folder))
    assert called.code == 1
    assert "First wrong call: step 1, call 1: aclnnSoftmaxBackward" in called.out


def test_files_that_are_no_calls_are_refused(call: Call, tmp_path: Path) -> None:
    (tmp_path / "000001-0001.npz").write_bytes(b"no archive")
    called = call("run", "--recorded", str(tmp_path))
    assert called.code == 2
    assert "is no recorded call" in called.err
    assert call("run", "--recorded", str(tmp_path / "nowhere")).code == 2
    assert "--adapter" in call("run").err
    assert "--json" in call("run", "--adapter", "reference", "--json").err


def test_a_folder_with_other_files_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds notes\.txt"):
        aclnn_cts.watch(out=tmp_path)
