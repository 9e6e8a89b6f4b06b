"""What the bindings of torch compute: each is held to autograd of torch's public forward function, in DOUBLE."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from aclnn_cts.adapters.bindings import shipped_bindings
from aclnn_cts.adapters.protocol import Call, Session
from aclnn_cts.adapters.registry import load, parse_adapter_word
from aclnn_cts.core.case import BoolArray, Case, Data, Tensor
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.target import Target
from aclnn_cts.generate.buffers import prepare
from aclnn_cts.generate.recipes import case_arrays

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
F = torch.nn.functional

_ACL = {
    torch.float64: "DOUBLE",
    torch.float32: "FLOAT",
    torch.int64: "INT64",
    torch.int32: "INT32",
    torch.uint8: "UINT8",
    torch.bool: "BOOL",
}
_REDUCTIONS = ("none", "mean", "sum")


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    opened = load(parse_adapter_word("torch")).open(Target(), {})
    yield opened
    opened.close()


def draw(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> Any:
    """Numbers without ties and away from 0, where a derivative may have a step."""
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return torch.tensor(np.where(np.abs(values) < 0.05, 0.1, values), dtype=torch.float64)


def descriptor(it: Any) -> Any:
    if not isinstance(it, torch.Tensor):
        return it
    return Tensor(tuple(it.shape), _ACL[it.dtype], data=Data(values=tuple(it.reshape(-1).tolist())))


def computed(
    session: Session, operator: str, arguments: Mapping[str, Any], outputs: Mapping[str, Any]
) -> dict[str, Any]:
    """What the binding returns for a call whose outputs have the forms of the expected ones."""
    blank = {name: None if it is None else Tensor(tuple(it.shape), _ACL[it.dtype]) for name, it in outputs.items()}
    case = Case(f"aclnn{operator}", {name: descriptor(it) for name, it in arguments.items()} | blank)
    arrays = case_arrays(case, [name for name, item in case.tensors() if item.data is not None])
    buffers = prepare(case, outputs=frozenset(outputs), arrays=arrays)
    [outcome] = session.run([Call(case, buffers)])
    assert (outcome.ended, outcome.message) == (CallEnd.RETURNED, "")
    for name, state in buffers.inspect().items():
        assert (state.gap, state.guard_before, state.guard_after, state.changed, state.unwritten) == (0,) * 5, name
    assert not {key for key in outcome.facts if "." in key}, outcome.facts
    return {name: torch.tensor(np.array(buffer.view)) for name, buffer in buffers.outputs.items()}


def check(
    session: Session,
    operator: str,
    arguments: Mapping[str, Any],
    outputs: Mapping[str, Any],
    *,
    rtol: float = 1e-10,
    atol: float = 1e-12,
) -> None:
    found = computed(session, operator, arguments, outputs)
    for name, expected in outputs.items():
        if expected is not None:
            torch.testing.assert_close(found[name], expected, rtol=rtol, atol=atol, equal_nan=True)


def gradients(forward: Callable[..., Any], inputs: Sequence[Any], gradient: Any) -> list[Any]:
    """By autograd of a public function; the gradient is broadcast to its result."""
    leaves = [it.clone().requires_grad_() for it in inputs]
    result = forward(*leaves)
    return list(torch.autograd.grad(result, leaves, gradient.expand_as(result)))


G, X = draw(3, 4, seed=1), draw(3, 4, seed=2)

ELEMENTWISE: Mapping[str, tuple[Callable[..., Any], dict[str, Any], str]] = {
    "SiluBackward": (F.silu, {}, "gradInput"),
    "MishBackward": (F.mish, {}, "gradInput"),
    "GeluBackward": (F.gelu, {}, "gradInput"),
    "GeluBackwardV2": (lambda x: F.gelu(x, approximate="tanh"), {"approximate": "tanh"}, "gradInput"),
    "FastGeluBackward": (lambda x: x * torch.sigmoid(1.702 * x), {}, "gradInput"),
    "SwishBackward": (lambda x: x * torch.sigmoid(1.5 * x), {"betaOptional": 1.5}, "gradInput"),
    "HardsigmoidBackward": (F.hardsigmoid, {}, "out"),
    "HardswishBackward": (F.hardswish, {}, "out"),
    "HardswishBackwardV2": (F.hardswish, {}, "out"),
    "HardshrinkBackward": (lambda x: F.hardshrink(x, 0.7), {"lambd": 0.7}, "gradInput"),
    "SoftshrinkBackward": (lambda x: F.softshrink(x, 0.7), {"lambda": 0.7}, "gradInput"),
    "HardtanhBackward": (lambda x: F.hardtanh(x, -0.5, 1.0), {"min": -0.5, "max": 1.0}, "out"),
    "LeakyReluBackward": (lambda x: F.leaky_relu(x, 0.3), {"negativeSlope": 0.3, "selfIsResult": False}, "out"),
    "SoftplusBackward": (lambda x: F.softplus(x, 2.0, 3.0), {"beta": 2.0, "threshold": 3.0}, "gradInput"),
    "ThresholdBackward": (lambda x: F.threshold(x, 0.4, 0.0), {"threshold": 0.4}, "out"),
    "LogSigmoidBackward": (F.logsigmoid, {"buffer": torch.zeros(0, dtype=torch.float64)}, "gradInput"),
}


@pytest.mark.parametrize("operator", ELEMENTWISE)
def test_elementwise(session: Session, operator: str) -> None:
    forward, attributes, out = ELEMENTWISE[operator]
    if operator == "LogSigmoidBackward":
        attributes = {"buffer": torch.exp(-X.abs())}
    [expected] = gradients(forward, [X], G)
    check(session, operator, {"gradOutput": G, "self": X} | attributes, {out: expected})


OF_RESULTS: Mapping[str, tuple[Callable[..., Any], str, dict[str, Any]]] = {
    "TanhBackward": (torch.tanh, "output", {}),
    "SigmoidBackward": (torch.sigmoid, "output", {}),
    "SeluBackward": (F.selu, "result", {}),
    "EluBackward": (
        lambda x: F.elu(x, 0.7),
        "selfOrResult",
        {"alpha": 0.7, "scale": 1.0, "inputScale": 1.0, "isResult": True},
    ),
}


@pytest.mark.parametrize("operator", OF_RESULTS)
def test_elementwise_from_the_result(session: Session, operator: str) -> None:
    forward, name, attributes = OF_RESULTS[operator]
    [expected] = gradients(forward, [X], G)
    check(session, operator, {"gradOutput": G, name: forward(X)} | attributes, {"gradInput": expected})


def test_operands_are_broadcast(session: Session) -> None:
    column = draw(3, 1, seed=5)
    check(session, "TanhBackward", {"gradOutput": G, "output": column}, {"gradInput": G * (1 - column**2)})


def test_softmax_logit_and_glu(session: Session) -> None:
    y = torch.log_softmax(X, 1)
    [expected] = gradients(lambda x: torch.log_softmax(x, 1), [X], G)
    check(session, "LogSoftmaxBackward", {"gradOutput": G, "output": y, "dim": 1}, {"out": expected})
    probability = draw(3, 4, low=0.1, high=0.9).float()
    [expected] = gradients(lambda x: torch.logit(x, 0.2), [probability], G.float())
    arguments = {"x": probability, "dy": G.float(), "eps": 0.2}
    check(session, "LogitGrad", arguments, {"out": expected}, rtol=1e-5, atol=1e-6)
    half = draw(3, 2)
    [expected] = gradients(lambda x: F.glu(x, 1), [X], half)
    check(session, "GluBackward", {"gradOut": half, "self": X, "dim": 1}, {"out": expected})


P, T = draw(3, 4, low=0.1, high=0.9, seed=3), draw(3, 4, low=0.1, high=0.9, seed=4)
WEIGHT = draw(4, low=0.5, high=2.0, seed=6)
LOSSES: Mapping[str, tuple[Callable[..., Any], dict[str, Any], str, str, str]] = {
    "MseLossBackward": (F.mse_loss, {}, "gradOutput", "self", "out"),
    "SmoothL1LossBackward": (
        functools.partial(F.smooth_l1_loss, beta=0.3),
        {"beta": 0.3},
        "gradOut",
        "self",
        "gradInput",
    ),
    "SoftMarginLossBackward": (F.soft_margin_loss, {}, "gradOutput", "self", "out"),
    "L1LossBackward": (F.l1_loss, {}, "gradOutput", "self", "gradInput"),
    "BinaryCrossEntropyBackward": (
        lambda x, t, reduction: F.binary_cross_entropy(x, t, WEIGHT, reduction=reduction),
        {"weightOptional": WEIGHT},
        "gradOutput",
        "self",
        "out",
    ),
    "KlDivBackward": (F.kl_div, {"logTarget": False}, "gradOutput", "self", "out"),
    "KlDivTargetBackward": (F.kl_div, {"logTarget": False}, "gradOutput", "target", "gradTarget"),
    "BinaryCrossEntropyWithLogitsBackward": (
        lambda x, t, reduction: F.binary_cross_entropy_with_logits(x, t, reduction=reduction, pos_weight=WEIGHT),
        {"weightOptional": None, "posWeightOptional": WEIGHT},
        "gradOutput",
        "self",
        "out",
    ),
    "BinaryCrossEntropyWithLogitsTargetBackward": (
        lambda x, t, reduction: F.binary_cross_entropy_with_logits(x, t, reduction=reduction, pos_weight=WEIGHT),
        {"weightOptional": None, "posWeightOptional": WEIGHT},
        "gradOutput",
        "target",
        "gradTarget",
    ),
}


@pytest.mark.filterwarnings("ignore:reduction.*mean:UserWarning")
@pytest.mark.parametrize("reduction", range(3))
@pytest.mark.parametrize("operator", LOSSES)
def test_losses(session: Session, operator: str, reduction: int) -> None:
    forward, attributes, gradient, leaf, out = LOSSES[operator]
    given = G if reduction == 0 else draw(1, seed=7).reshape(())
    word = _REDUCTIONS[reduction]
    if leaf == "self":
        [expected] = gradients(lambda x: forward(x, T, reduction=word), [P], given)
    else:
        [expected] = gradients(lambda t: forward(P, t, reduction=word), [T], given)
    arguments = {gradient: given, "self": P, "target": T, "reduction": reduction} | attributes
    check(session, operator, arguments, {out: expected})


@pytest.mark.parametrize("reduction", range(3))
def test_classes(session: Session, reduction: int) -> None:
    scores, target = torch.log_softmax(draw(3, 4), 1), torch.tensor([2, 0, 3], dtype=torch.int32)
    word = _REDUCTIONS[reduction]
    given = draw(3) if reduction == 0 else draw(1).reshape(())
    [expected] = gradients(
        lambda x: F.nll_loss(x, target.long(), WEIGHT, ignore_index=3, reduction=word), [scores], given
    )
    total = WEIGHT[2] + WEIGHT[0]
    arguments = {"gradOutput": given, "self": scores, "target": target, "weight": WEIGHT, "reduction": reduction}
    arguments |= {"ignoreIndex": 3, "totalWeight": total}
    check(session, "NLLLossBackward", arguments, {"out": expected})
    deep = {
        name: it[..., None, None].expand(*it.shape, 1, 1).contiguous()
        for name, it in arguments.items()
        if name in ("self", "target")
    }
    deep |= {"gradOutput": given.reshape(3, 1, 1) if reduction == 0 else given}
    check(session, "NLLLoss2dBackward", arguments | deep, {"out": expected[..., None, None]})
    [expected] = gradients(
        lambda x: F.cross_entropy(x, target.long(), WEIGHT, ignore_index=3, reduction=word),
        [scores],
        given,
    )
    arguments = {
        "gradLoss": given,
        "logProb": scores,
        "target": target.long(),
        "weightOptional": WEIGHT,
        "gradZlossOptional": None,
        "lseForZlossOptional": None,
        "reductionOptional": word,
        "ignoreIndex": 3,
        "labelSmoothing": 0.0,  # the document supports no other
        "lseSquareScaleForZloss": 0.0,
    }
    check(session, "CrossEntropyLossGrad", arguments, {"out": expected})


def test_layer_norm_and_its_kin(session: Session) -> None:
    x, g = draw(2, 3, 4, seed=11), draw(2, 3, 4, seed=12)
    weight, bias = draw(4, seed=13), draw(4, seed=14)
    mean = x.mean(2, keepdim=True)
    rstd = 1 / torch.sqrt(((x - mean) ** 2).mean(2, keepdim=True) + 1e-5)
    dx, dw, db = gradients(lambda a, b, c: F.layer_norm(a, (4,), b, c), [x, weight, bias], g)
    other, more = draw(2, 3, 4, seed=15), draw(2, 3, 4, seed=16)
    arguments = {"dy": g, "x1": x - other, "x2": other, "rstd": rstd, "mean": mean, "gamma": weight}
    outputs = {"dxOut": dx + more, "dgammaOut": dw, "dbetaOut": db}
    check(session, "AddLayerNormGrad", arguments | {"dsumOptional": more}, outputs)
    check(session, "AddLayerNormGrad", arguments | {"dsumOptional": None}, outputs | {"dxOut": dx})
    arguments = {"dy": g, "x": other, "gx": x - 0.5 * other, "gamma": weight, "mean": mean, "rstd": rstd, "alpha": 0.5}
    outputs = {"dxOut": 0.5 * dx, "dgxOut": dx, "dbetaOut": db, "dgammaOut": dw}
    check(session, "DeepNormGrad", arguments, outputs)


def test_batch_and_group_norm(session: Session) -> None:
    x, g = draw(2, 4, 3, seed=21), draw(2, 4, 3, seed=22)
    weight, bias = draw(4, seed=23), draw(4, seed=24)
    mean, var = x.mean((0, 2)), x.var((0, 2), unbiased=False)
    outputs = ("gradInput", "gradWeight", "gradBias")
    for training in (True, False):
        found = gradients(
            lambda a, b, c, t=training: F.batch_norm(a, mean.clone(), var.clone(), b, c, training=t),
            [x, weight, bias],
            g,
        )
        arguments = {"gradOut": g, "input": x, "weight": weight, "runningMean": mean, "runningVar": var}
        arguments |= {"saveMean": mean, "saveInvstd": 1 / torch.sqrt(var + 1e-5), "training": training, "eps": 1e-5}
        arguments |= {"outputMask": (True, True, True)}
        # Statistics are given to torch in FLOAT, as those of FLOAT16 and BF16 have to be.
        arguments = {name: it.float() if isinstance(it, torch.Tensor) else it for name, it in arguments.items()}
        expected = {name: it.float() for name, it in zip(outputs, found, strict=True)}
        check(session, "BatchNormBackward", arguments, expected, rtol=1e-4, atol=1e-5)
        check(session, "FastBatchNormBackward", arguments | {"version": 0}, expected, rtol=1e-4, atol=1e-5)
    grouped = x.reshape(2, 2, 6)
    mean = grouped.mean(2)
    rstd = 1 / torch.sqrt(grouped.var(2, unbiased=False) + 1e-5)
    found = gradients(lambda a, b, c: F.group_norm(a, 2, b, c), [x, weight, bias], g)
    arguments = {"gradOut": g, "input": x, "mean": mean, "rstd": rstd, "gamma": weight, "N": 2, "C": 4, "HxW": 3}
    arguments |= {"group": 2, "outputMask": (True, True, True)}
    names = ("gradInput", "gradGammaOut", "gradBetaOut")
    check(session, "GroupNormBackward", arguments, dict(zip(names, found, strict=True)))

    def swish(a: Any, b: Any, c: Any) -> Any:
        normal = F.group_norm(a, 2, b, c)
        return normal * torch.sigmoid(1.5 * normal)

    found = gradients(swish, [x, weight, bias], g)
    arguments = {"dy": g, "mean": mean, "rstd": rstd, "x": x, "gamma": weight, "beta": bias, "numGroups": 2}
    arguments |= {"dataFormatOptional": "NCHW", "swishScale": 1.5, "dgammaIsRequire": True, "dbetaIsRequire": True}
    names = ("dxOut", "dgammaOut", "dbetaOut")
    check(session, "GroupNormSwishGrad", arguments, dict(zip(names, found, strict=True)))


@pytest.mark.parametrize("rank", [2, 3])
def test_pooling(session: Session, rank: int) -> None:
    x = draw(2, 3, *(6, 5, 7)[:rank], seed=31)
    average, most = (F.avg_pool2d, F.max_pool2d) if rank == 2 else (F.avg_pool3d, F.max_pool3d)
    window = {"kernelSize": (3,) * rank, "stride": (2,) * rank, "padding": (1,) * rank}
    for divisor in (0, 5):
        y = average(x, 3, 2, 1, ceil_mode=True, count_include_pad=False, divisor_override=divisor or None)
        g = draw(*y.shape, seed=32)
        [expected] = gradients(
            lambda a, d=divisor: average(
                a, 3, 2, 1, ceil_mode=True, count_include_pad=False, divisor_override=d or None
            ),
            [x],
            g,
        )
        arguments = {"gradOutput": g, "self": x, **window, "ceilMode": True, "countIncludePad": False}
        arguments |= {"divisorOverride": divisor} | ({"cubeMathType": 0} if rank == 2 else {})
        # That of volumes is computed in FLOAT.
        close = {} if rank == 2 else {"rtol": 1e-5, "atol": 1e-6}
        check(
            session, f"AvgPool{rank}dBackward", arguments, {"gradInput" if rank == 2 else "output": expected}, **close
        )
    y, index = most(x, 3, 2, 1, return_indices=True)
    g = draw(*y.shape, seed=33)
    [expected] = gradients(lambda a: most(a, 3, 2, 1), [x], g)
    arguments = {
        "gradOutput": g,
        "self": x,
        "indices": index.int(),
        **window,
        "dilation": (1,) * rank,
        "ceilMode": False,
    }
    name = "MaxPool2dWithIndicesBackward" if rank == 2 else "MaxPool3dWithArgmaxBackward"
    check(session, name, arguments, {"gradInput": expected})
    if rank == 2:
        masks = {"indices": torch.zeros(2, 3, 9, 32, dtype=torch.uint8)}
        check(session, "MaxPool2dWithMaskBackward", arguments | masks, {"gradInput": expected})
    sizes = (2, 3, 4)[:rank]
    adaptive = getattr(F, f"adaptive_avg_pool{rank}d")
    g = draw(2, 3, *sizes)
    [expected] = gradients(lambda a: adaptive(a, sizes), [x], g)
    check(
        session,
        f"AdaptiveAvgPool{rank}dBackward",
        {"gradOutput": g, "self": x},
        {"out": expected},
        rtol=1e-5,
        atol=1e-6,
    )
    adaptive = getattr(F, f"adaptive_max_pool{rank}d")
    _, index = adaptive(x, sizes, return_indices=True)
    [expected] = gradients(lambda a: adaptive(a, sizes), [x], g)
    arguments = {"gradOutput": g, "self": x, "indices": index}
    check(session, f"AdaptiveMaxPool{rank}dBackward", arguments, {"gradInput": expected}, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rank", [2, 3])
def test_unpooling(session: Session, rank: int) -> None:
    most, least = (F.max_pool2d, F.max_unpool2d) if rank == 2 else (F.max_pool3d, F.max_unpool3d)
    y, index = most(draw(2, 3, *(4,) * rank), 2, 2, return_indices=True)
    g = draw(2, 3, *(4,) * rank, seed=35)
    [expected] = gradients(lambda a: least(a, index, 2, 2), [y], g)
    arguments = {"gradOutput": g, "self": y, "indices": index, "outputSize": (4,) * rank}
    arguments |= {"stride": (2,) * rank, "padding": (0,) * rank} if rank == 3 else {}
    check(session, f"MaxUnpool{rank}dBackward", arguments, {"out": expected})


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("name", "mode"), [("Reflection", "reflect"), ("Replication", "replicate"), ("Circular", "circular")]
)
def test_padding(session: Session, name: str, mode: str, rank: int) -> None:
    if name == "Circular" and rank == 1:
        return
    x, padding = draw(2, 3, *(4, 5, 6)[:rank]), (1, 2, 2, 1, 1, 0)[: 2 * rank]
    y = F.pad(x, padding, mode=mode)
    g = draw(*y.shape, seed=41)
    [expected] = gradients(lambda a: F.pad(a, padding, mode=mode), [x], g)
    check(
        session, f"{name}Pad{rank}dBackward", {"gradOutput": g, "self": x, "padding": padding}, {"gradInput": expected}
    )


RESIZED: Mapping[str, tuple[str, str, str, bool]] = {
    "UpsampleLinear1dBackward": ("linear", "gradOut", "out", False),
    "UpsampleBilinear2dBackward": ("bilinear", "gradOut", "out", False),
    "UpsampleBilinear2dBackwardV2": ("bilinear", "gradOut", "out", False),
    "UpsampleBilinear2dAABackward": ("bilinear", "gradOutput", "out", True),
    "UpsampleBicubic2dBackward": ("bicubic", "gradOut", "gradInput", False),
    "UpsampleBicubic2dAAGrad": ("bicubic", "gradOutput", "out", True),
    "UpsampleTrilinear3dBackward": ("trilinear", "gradOut", "gradInput", False),
    "UpsampleNearest1dBackward": ("nearest", "gradOut", "out", False),
    "UpsampleNearest2dBackward": ("nearest", "gradOut", "gradInput", False),
    "UpsampleNearest3dBackward": ("nearest", "gradOut", "gradInput", False),
    "UpsampleNearestExact2dBackward": ("nearest-exact", "gradOutput", "out", False),
    "UpsampleNearestExact3dBackward": ("nearest-exact", "gradOut", "gradInput", False),
}


@pytest.mark.parametrize("operator", RESIZED)
def test_resizing(session: Session, operator: str) -> None:
    mode, gradient, out, antialias = RESIZED[operator]
    rank = next(int(word) for word in "123" if f"{word}d" in operator)
    x, sizes = draw(2, 3, *(4, 5, 6)[:rank]), (7, 3, 5)[:rank]
    corners = None if mode.startswith("nearest") else False
    g = draw(2, 3, *sizes, seed=51)

    def forward(a: Any) -> Any:
        return F.interpolate(a, sizes, mode=mode, align_corners=corners, antialias=antialias)

    [expected] = gradients(forward, [x], g)
    laid_out = msgspec.structs.replace(descriptor(g), format=("NCL", "NCHW", "NCDHW")[rank - 1])
    arguments = {gradient: laid_out, "outputSize": sizes, "inputSize": tuple(x.shape)}
    arguments |= {} if corners is None else {"alignCorners": corners}
    arguments |= {f"scales{axis}": 0.0 for axis in ({1: ("",), 2: "HW", 3: "DHW"}[rank])}
    # torch's binding of the antialiased one computes in FLOAT.
    close = {"rtol": 1e-5, "atol": 1e-6} if antialias else {}
    check(session, operator, arguments, {out: expected}, **close)


def test_convolution_and_columns(session: Session) -> None:
    x, weight, bias = draw(2, 4, 5, 6), draw(6, 2, 3, 3, seed=61), draw(6, seed=62)
    y = F.conv2d(x, weight, bias, 2, 1, 1, 2)
    g = draw(*y.shape, seed=63)
    found = gradients(lambda a, b, c: F.conv2d(a, b, c, 2, 1, 1, 2), [x, weight, bias], g)
    arguments = {"gradOutput": g, "input": x, "weight": weight, "biasSizes": (6,), "stride": (2, 2), "padding": (1, 1)}
    arguments |= {"dilation": (1, 1), "transposed": False, "outputPadding": (0, 0), "groups": 2}
    arguments |= {"outputMask": BoolArray((True, True, True)), "cubeMathType": 0}
    outputs = dict(zip(("gradInput", "gradWeight", "gradBias"), found, strict=True))
    check(session, "ConvolutionBackward", arguments, outputs)
    y = F.unfold(x, 3, 1, 1, 2)
    g = draw(*y.shape, seed=64)
    [expected] = gradients(lambda a: F.unfold(a, 3, 1, 1, 2), [x], g)
    arguments = {"gradOutput": g, "inputSize": (5, 6), "kernelSize": (3, 3), "dilation": (1, 1), "padding": (1, 1)}
    check(session, "Im2colBackward", arguments | {"stride": (2, 2)}, {"out": expected})
    g = draw(2, 4, 2, 6, 3, seed=65)
    [expected] = gradients(lambda a: a.unfold(2, 3, 2), [x], g)
    arguments = {"gradOut": g, "inputSizes": (2, 4, 5, 6), "dim": 2, "size": 3, "step": 2}
    check(session, "UnfoldGrad", arguments, {"gradIn": expected})


@pytest.mark.parametrize("rank", [2, 3])
def test_grid_sampler(session: Session, rank: int) -> None:
    x, grid = draw(2, 3, *(4, 5, 6)[:rank]), draw(2, *(3, 2, 4)[:rank], rank, low=-0.9, high=0.9, seed=71)
    g = draw(2, 3, *(3, 2, 4)[:rank], seed=72)
    found = gradients(lambda a, b: F.grid_sample(a, b, align_corners=True), [x, grid], g)
    arguments = {"gradOutput": g, "input": x, "grid": grid, "interpolationMode": 0, "paddingMode": 0}
    arguments |= {"alignCorners": True, "outputMask": (True, True)}
    check(session, f"GridSampler{rank}DBackward", arguments, dict(zip(("inputGrad", "gridGrad"), found, strict=True)))


def test_distances(session: Session) -> None:
    a, b, g = draw(2, 3, 4, seed=81), draw(2, 5, 4, seed=82), draw(2, 3, 5, seed=83)
    [expected, _] = gradients(lambda x, y: torch.cdist(x, y, 3.0), [a, b], g)
    arguments = {"grad": g, "x1": a, "x2": b, "cdist": torch.cdist(a, b, 3.0), "p": 3.0}
    check(session, "CdistBackward", arguments, {"out": expected})
    one, two = draw(2, 3, 2, seed=84), draw(2, 5, 2, seed=85)
    first, second = draw(2, 3, seed=86), draw(2, 5, seed=87)
    apart = ((one[:, :, None] - two[:, None]) ** 2).sum(-1)
    index1, index2 = apart.min(2).indices, apart.min(1).indices
    leaves = [one.clone().requires_grad_(), two.clone().requires_grad_()]
    apart = ((leaves[0][:, :, None] - leaves[1][:, None]) ** 2).sum(-1)
    total = (apart.min(2).values * first).sum() + (apart.min(1).values * second).sum()
    found = torch.autograd.grad(total, leaves)
    arguments = {"xyz1": one, "xyz2": two, "idx1": index1.int(), "idx2": index2.int()}
    arguments |= {"gradDist1": first, "gradDist2": second}
    check(session, "ChamferDistanceBackward", arguments, dict(zip(("gradXyz1", "gradXyz2"), found, strict=True)))


def test_ctc(session: Session) -> None:
    scores, targets = torch.log_softmax(draw(6, 2, 4), 2), torch.tensor([[1, 2], [3, 1]])
    loss, alpha = torch.ops.aten._ctc_loss(scores, targets, [6, 5], [2, 1], blank=0)
    g = draw(2, low=0.5)
    [expected] = gradients(
        lambda x: F.ctc_loss(x, targets, torch.tensor([6, 5]), torch.tensor([2, 1]), reduction="none"), [scores], g
    )
    arguments = {"gradOut": g, "logProbs": scores, "targets": targets, "inputLengths": (6, 5), "targetLengths": (2, 1)}
    arguments |= {"negLogLikelihood": loss, "logAlpha": alpha, "blank": 0, "zeroInfinity": False}
    check(session, "CtcLossBackward", arguments, {"out": expected})


@pytest.mark.parametrize(
    ("operator", "names"), [("DropoutBackward", ("gradOutput", "out")), ("DropoutV3Grad", ("gradY", "gradX"))]
)
def test_dropout_unpacks_its_mask(session: Session, operator: str, names: tuple[str, str]) -> None:
    bits = torch.zeros(16, dtype=torch.uint8)
    bits[0], bits[1] = 0b10000001, 0b00001010
    keep = torch.tensor([1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1], dtype=torch.float64).reshape(3, 4)
    check(session, operator, {names[0]: G, "mask": bits, "scale": 1.25}, {names[1]: G * keep * 1.25})


def test_gated_units(session: Session) -> None:
    x, g = draw(3, 6), draw(3, 3, seed=91)

    def halves(a: Any) -> Any:
        return a.chunk(2, 1)

    [expected] = gradients(lambda a: F.silu(halves(a)[0]) * halves(a)[1], [x], g)
    check(session, "SwiGluGrad", {"yGrad": g, "x": x, "dim": 1}, {"out": expected})
    for left in (False, True):
        for number, word in enumerate(("none", "tanh")):
            [expected] = gradients(
                lambda a, k=left, w=word: F.gelu(halves(a)[0 if k else 1], approximate=w) * halves(a)[1 if k else 0],
                [x],
                g,
            )
            saved = F.gelu(halves(x)[0 if left else 1], approximate=word)
            arguments = {"gradOutput": g, "self": x, "gelu": saved, "dim": 1, "approximate": number}
            check(session, "GeGluV3Backward", arguments | {"activateLeft": left}, {"gradInput": expected})
            if not left:
                check(session, "GeGluBackward", arguments, {"gradInput": expected})
    for interleaved in (False, True):

        def clipped(a: Any, mixed: bool = interleaved) -> Any:
            one, two = (a[:, ::2], a[:, 1::2]) if mixed else halves(a)
            gate, up = one.clamp(max=1.0), two.clamp(-1.0, 1.0)
            return gate * torch.sigmoid(1.7 * gate) * (up + 0.5)

        [expected] = gradients(clipped, [x], g)
        arguments = {"gradY": g, "x": x, "groupIndexOptional": None, "dim": 1, "alpha": 1.7, "limit": 1.0, "bias": 0.5}
        check(session, "ClippedSwigluGrad", arguments | {"interleaved": interleaved}, {"gradXOut": expected})


def test_attention(session: Session) -> None:
    q, k, v, g = (draw(2, 2, 3, 4, seed=seed) for seed in range(95, 99))
    found = gradients(lambda a, b, c: torch.softmax(a @ b.transpose(-1, -2) * 0.3, -1) @ c, [q, k, v], g)
    scores = (q @ k.transpose(-1, -2) * 0.3).detach()
    top, y = scores.amax(-1, keepdim=True), (torch.softmax(scores, -1) @ v).detach()
    total = torch.exp(scores - top).sum(-1, keepdim=True)
    saved = {"softmaxMaxOptional": top.expand(2, 2, 3, 8), "softmaxSumOptional": total.expand(2, 2, 3, 8)}
    arguments = {"query": q, "keyIn": k, "value": v, "dy": g, **saved, "attentionInOptional": y}
    arguments |= dict.fromkeys(
        ("softmaxInOptional", "pseShiftOptional", "dropMaskOptional", "paddingMaskOptional", "attenMaskOptional")
    )
    arguments |= {"prefixOptional": None, "scaleValue": 0.3, "keepProb": 1.0, "preTokens": 0, "nextTokens": 0}
    arguments |= {"headNum": 2, "inputLayout": "BNSD", "innerPrecise": 0, "sparseMode": 0, "dpseOut": None}
    outputs = dict(zip(("dqOut", "dkOut", "dvOut"), found, strict=True))
    check(session, "FlashAttentionScoreGrad", arguments, outputs)
    more = {"qStartIdxOptional": None, "kvStartIdxOptional": None, "pseType": 1}
    check(session, "FlashAttentionScoreGradV2", arguments | more, outputs)


@pytest.mark.parametrize("mode", range(4))
def test_rotary_embedding(session: Session, mode: int) -> None:
    x, g = draw(2, 3, 8), draw(2, 3, 8, seed=101)
    cos, sin = draw(1, 3, 8, seed=102), draw(1, 3, 8, seed=103)

    def turned(a: Any) -> Any:
        if mode == 0:
            return torch.cat((-a[..., 4:], a[..., :4]), -1)
        if mode == 1:
            return torch.stack((-a[..., 1::2], a[..., ::2]), -1).reshape(a.shape)
        if mode == 2:
            return torch.cat((-a[..., 2:4], a[..., :2], -a[..., 6:], a[..., 4:6]), -1)
        return torch.cat((-a[..., 1::2], a[..., ::2]), -1)

    def straight(a: Any) -> Any:
        return torch.cat((a[..., ::2], a[..., 1::2]), -1) if mode == 3 else a

    found = gradients(lambda a, b, c: straight(a) * b + turned(a) * c, [x, cos, sin], g)
    arguments = {"dy": g, "cos": cos, "sin": sin, "xOptional": x, "mode": mode}
    outputs = dict(zip(("dxOut", "dcosOut", "dsinOut"), found, strict=True))
    check(session, "RotaryPositionEmbeddingGrad", arguments, outputs)
    # Without x the gradients of cos and sin are not computed: their outputs are empty.
    none = {"dxOut": found[0], "dcosOut": found[1][..., :0], "dsinOut": found[2][..., :0]}
    check(session, "RotaryPositionEmbeddingGrad", {**arguments, "xOptional": None}, none)


def test_rows_and_neighbours(session: Session) -> None:
    x = draw(3, 4)
    repeats = torch.tensor([2, 0, 1, 3])
    g = draw(3, 6, seed=111)
    [expected] = gradients(lambda a: torch.repeat_interleave(a, repeats, 1), [x], g)
    arguments = {"yGrad": g, "repeats": repeats, "axis": 1}
    # The binding computes in FLOAT, which is the widest dtype of the document.
    check(session, "RepeatInterleaveGrad", arguments, {"out": expected}, rtol=1e-6, atol=1e-6)
    features, index = draw(2, 3, 5), torch.tensor(np.random.default_rng(0).integers(0, 5, (2, 4, 3)))
    weight, g = draw(2, 4, 3, seed=112), draw(2, 3, 4, seed=113)

    def interpolated(y: Any) -> Any:
        return torch.stack([(y[b][:, index[b]] * weight[b]).sum(-1) for b in range(2)])

    [expected] = gradients(interpolated, [features], g)
    arguments = {"grad_x": g, "idx": index.int(), "weight": weight, "m": 5}
    check(session, "ThreeInterpolateBackward", arguments, {"grad_y": expected}, rtol=1e-6, atol=1e-6)


def test_grouped_bias(session: Session) -> None:
    deep, rows = draw(2, 3, 4).float(), draw(6, 4).float()
    sums = torch.stack([rows[:1].sum(0), rows[1:4].sum(0), rows[4:].sum(0)])
    near = {"rtol": 1e-5, "atol": 1e-6}
    check(session, "GroupedBiasAddGrad", {"gradY": deep, "groupIdxOptional": None}, {"out": deep.sum(1)}, **near)
    ends = {"gradY": rows, "groupIdxOptional": torch.tensor([1, 4, 6])}
    check(session, "GroupedBiasAddGrad", ends, {"out": sums}, **near)
    check(session, "GroupedBiasAddGradV2", ends | {"groupIdxType": 0}, {"out": sums}, **near)
    sizes = {"gradY": rows, "groupIdxOptional": torch.tensor([1, 3, 2]), "groupIdxType": 1}
    check(session, "GroupedBiasAddGradV2", sizes, {"out": sums}, **near)


def test_others(session: Session) -> None:
    x, g = draw(2, 3, 4), draw(2, 3, 4, seed=121)
    scale, shift = draw(2, 4, seed=122), draw(2, 4, seed=123)
    found = gradients(lambda a, b, c: a * b[:, None] + c[:, None], [x, scale, shift], g)
    arguments = {"grad_output": g, "input": x, "scale": scale, "shift": shift}
    outputs = dict(zip(("grad_input", "grad_scale", "grad_shift"), found, strict=True))
    check(session, "ModulateBackward", arguments, outputs)
    weight = draw(3, seed=124)
    found = gradients(F.prelu, [x, weight], g)
    arguments = {"gradOutput": g, "self": x, "weight": weight}
    check(session, "PreluBackward", arguments, dict(zip(("gradInput", "gradWeight"), found, strict=True)))
    mask = draw(2, 3, 4, seed=126) < 0
    y = torch.softmax((0.3 * x).masked_fill(mask, -1e9), -1)
    [expected] = gradients(lambda a: torch.softmax((0.3 * a).masked_fill(mask, -1e9), -1), [x], g)
    arguments = {"gradOutput": g, "y": y, "mask": mask, "scale": 0.3, "fixTriuMask": False}
    check(session, "ScaledMaskedSoftmaxBackward", arguments, {"out": expected})

    def segments(a: Any) -> Any:
        size = a.shape[-1]
        lower = torch.ones(size, size, dtype=torch.bool).tril(-1)
        sums = a[..., None].expand(*a.shape, size).masked_fill(~lower, 0).cumsum(-2)
        return torch.exp(sums.masked_fill(~torch.ones_like(lower).tril(), -torch.inf))

    short = draw(2, 3, 2, 4)
    saved = segments(short)
    g = draw(*saved.shape, seed=125)
    [expected] = gradients(segments, [short], g)
    check(session, "ExpSegsumBackward", {"gradOutput": g, "gradSelf": saved}, {"gradInput": expected})


def _lstm_steps(x: Any, params: list[Any], starts: Any, cells: Any) -> dict[str, Any]:
    """What an LSTM of one cell saves, with the rows of i, f, g and o in its parameters."""
    w_ih, w_hh, *biases = params
    hidden, cell, steps = starts[0], cells[0], []
    for t in range(len(x)):
        i, f, g, o = (x[t] @ w_ih.T + hidden @ w_hh.T + sum(biases)).chunk(4, 1)
        i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
        cell = f * cell + i * g
        hidden = o * torch.tanh(cell)
        steps.append((i, f, g, o, hidden, cell, torch.tanh(cell)))
    names = ("i", "f", "g", "o", "h", "c", "tanhc")
    return {f"{name}[0]": torch.stack(parts) for name, parts in zip(names, zip(*steps, strict=True), strict=True)}


@pytest.mark.parametrize("has_bias", [False, True])
def test_recurrent_layers_take_lists_of_tensors(has_bias: bool) -> None:
    """The buffers of a list are `name[0]`, `name[1]`, ...; gradients of lists are lists."""
    from aclnn_cts.adapters.torch_bindings import TorchBinding  # noqa: PLC0415 - needs torch
    from aclnn_cts.adapters.torch_tensors import BoundTensors  # noqa: PLC0415 - needs torch

    x, g = draw(5, 2, 3), draw(5, 2, 4, seed=131)
    attributes: dict[str, Any] = {
        "hasBias": has_bias,
        "numLayers": 1,
        "bidirectional": False,
        "batchFirst": False,
        "train": True,
    }
    attributes |= {"batchSizesOptional": None, "dropout": 0.0, "outputMask": None}
    gates, states = 4, ("dh", "dc")
    shapes = [(4 * gates, 3), (4 * gates, 4), *[(4 * gates,)] * (2 * has_bias)]
    params = [draw(*shape, low=-0.5, high=0.5, seed=number) for number, shape in enumerate(shapes)]
    start = [draw(1, 2, 4, seed=140 + number) for number in range(len(states))]
    given = {state: draw(1, 2, 4, seed=150 + number) for number, state in enumerate(states)}
    leaves = [it.clone().requires_grad_() for it in (x, *start, *params)]
    options = {"num_layers": 1, "dropout": 0.0, "train": True, "bidirectional": False, "batch_first": False}
    results = torch.lstm(leaves[0], leaves[1:3], leaves[3:], has_biases=has_bias, **options)
    expected = list(torch.autograd.grad(results, leaves, [g, *given.values()]))
    tensors = {"input": x, "dy": g, **given}
    tensors |= {f"hx[{place}]": it for place, it in enumerate(start)}
    tensors |= {f"params[{place}]": it for place, it in enumerate(params)}
    tensors |= _lstm_steps(x, params, *start)
    outputs = ["dxOut", "dhPrevOut", "dcPrevOut", "dparamsOut"]
    case = Case("aclnnLstmBackward", attributes | dict.fromkeys(outputs, 0))
    bound = BoundTensors(case=case, inputs=tensors, outputs={}, direct=True, staged={})
    binding = TorchBinding(shipped_bindings("torch")[case.operator], device=torch.device("cpu"))
    found, facts = binding.run(bound)
    flat = [found[output] for output in outputs[:-1]] + found["dparamsOut"]
    torch.testing.assert_close(flat, expected, rtol=1e-5, atol=1e-6)
    assert facts["gates"] == "given to torch"


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("given", [("hy", "cy"), ("hy",), ("cy",)], ids="-".join)
def test_an_lstm_cell_is_given_its_gates(session: Session, given: Sequence[str], has_bias: bool) -> None:
    """torch's own cell, whose gates before their activations are its input by an identity matrix."""
    shapes = [(3, 8), (3, 2), (8,)]
    gates, cx, bias = (draw(*shape, seed=160 + number).requires_grad_() for number, shape in enumerate(shapes))
    none = torch.zeros(3, 2, dtype=torch.float64)
    identity, nothing = torch.eye(8, dtype=torch.float64), torch.zeros(8, 2, dtype=torch.float64)
    hy, cy = torch.lstm_cell(gates, (none, cx), identity, nothing, bias, torch.zeros_like(bias))
    results = {name: result for name, result in (("hy", hy), ("cy", cy)) if name in given}
    grads = {name: draw(3, 2, seed=170 + number) for number, name in enumerate(results)}
    of_gates, of_cx, of_bias = torch.autograd.grad(list(results.values()), (gates, cx, bias), list(grads.values()))
    i, f, g, o = (gates + bias).detach().chunk(4, 1)
    arguments = {
        "gradHyOptional": grads.get("hy"),
        "gradCOptional": grads.get("cy"),
        "cx": cx.detach(),
        "cy": cy.detach(),
        "storage": torch.cat([torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)], 1),
        "hasBias": has_bias,
    }
    outputs = {"gradGatesOut": of_gates, "gradCxOut": of_cx, "gradBiasOut": of_bias if has_bias else None}
    check(session, "ThnnFusedLstmCellBackward", arguments, outputs, rtol=1e-5, atol=1e-6)


def _steps(x: Any, params: list[Any], start: Any, layers: int) -> dict[str, list[Any]]:
    """What a GRU of two directions saves, with the rows of z, r and n in its parameters."""
    saved: dict[str, list[Any]] = {name: [] for name in ("r", "z", "n", "h_n", "h")}
    for layer in range(layers):
        for direction in range(2):
            cell = 2 * layer + direction
            w_ih, w_hh, b_ih, b_hh = params[4 * cell : 4 * cell + 4]
            state, rows = start[cell], {}
            for t in range(len(x)) if direction == 0 else reversed(range(len(x))):
                iz, ir, i_n = (x[t] @ w_ih.T + b_ih).chunk(3, 1)
                hz, hr, hn = (state @ w_hh.T + b_hh).chunk(3, 1)
                r, z = torch.sigmoid(ir + hr), torch.sigmoid(iz + hz)
                n = torch.tanh(i_n + r * hn)
                state = (1 - z) * n + z * state
                rows[t] = (r, z, n, hn, state)
            for name, parts in zip(saved, zip(*(rows[t] for t in range(len(x))), strict=True), strict=True):
                saved[name].append(torch.stack(parts))
        x = torch.cat(saved["h"][-2:], 2)
    return saved


@pytest.mark.parametrize("batch_first", [False, True])
def test_a_gru_is_given_its_gates(batch_first: bool) -> None:
    """With the gates of the forward pass the gradients are those of torch.gru, whose rows are r, z and n."""
    from aclnn_cts.adapters.torch_bindings import TorchBinding  # noqa: PLC0415 - needs torch
    from aclnn_cts.adapters.torch_tensors import BoundTensors  # noqa: PLC0415 - needs torch

    def swapped(tensor: Any) -> Any:
        first, second, last = tensor.chunk(3, 0)
        return torch.cat([second, first, last])

    x, start = draw(5, 2, 3), draw(4, 2, 4, seed=141)
    widths = [3, 3, 8, 8]
    shapes = [shape for width in widths for shape in ((12, width), (12, 4), (12,), (12,))]
    params = [draw(*shape, low=-0.5, high=0.5, seed=number) for number, shape in enumerate(shapes)]
    saved = _steps(x, params, start, layers=2)
    if batch_first:
        x = x.transpose(0, 1).contiguous()
    dy, dh = draw(*x.shape[:2], 8, seed=131), draw(4, 2, 4, seed=150)
    leaves = [it.clone().requires_grad_() for it in (x, start, *map(swapped, params))]
    options = {"num_layers": 2, "dropout": 0.0, "train": True, "bidirectional": True, "batch_first": batch_first}
    results = torch.gru(leaves[0], leaves[1], leaves[2:], has_biases=True, **options)
    dx, before, *rest = torch.autograd.grad(results, leaves, [dy, dh])
    tensors = {"input": x, "dy": dy, "dh": dh, "hx[0]": start}
    tensors |= {f"params[{place}]": it for place, it in enumerate(params)}
    tensors |= {f"{name}[{place}]": it for name, items in saved.items() for place, it in enumerate(items)}
    attributes = {"hasBias": True, "numLayers": 2, "bidirectional": True, "batchFirst": batch_first}
    outputs = ("dxOut", "dhPrevOut", "dparamsOut")
    case = Case("aclnnGRUBackward", attributes | dict.fromkeys(outputs, 0))
    bound = BoundTensors(case=case, inputs=tensors, outputs={}, direct=True, staged={})
    found, facts = TorchBinding(shipped_bindings("torch")[case.operator], device=torch.device("cpu")).run(bound)
    expected = [dx, before, *map(swapped, rest)]
    got = [found["dxOut"], found["dhPrevOut"], *found["dparamsOut"]]
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    assert facts["gates"] == "given to torch"
