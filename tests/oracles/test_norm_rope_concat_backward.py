"""Each type of rotation and normalisation as its formula is written, both orders, and what is open."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import ExpectedOutput, OracleInput
from aclnn_cts.oracles import registry

Numbers = NDArray[np.float64]

BATCH, HEADS, OWN, ENCODED, WIDTH = 2, 3, 4, 2, 8
POSITIONS = OWN + ENCODED
NEG_MASK = np.array([1, -1] * (WIDTH // 2))
PLACES = {1: [1, 0, 3, 2, 5, 4, 7, 6], 2: [4, 0, 5, 1, 6, 2, 7, 3]}
"""By type of rotation, the place that each element of the rearranged row comes from."""
NAMES = ("Query", "Key", "AddedQuery", "AddedKey")


def numbers(*shape: int, seed: int) -> Numbers:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float64)


def tensors(norm: int, rows: int) -> dict[str, Numbers]:
    found = {
        name: numbers(BATCH, HEADS, POSITIONS, WIDTH, seed=seed)
        for seed, name in enumerate(("gradQueryOutput", "gradKeyOutput", "gradValueOutput"))
    }
    lengths = {"query": OWN, "key": OWN, "encoderQuery": ENCODED, "encoderKey": ENCODED}
    found |= {name: numbers(BATCH, size, HEADS, WIDTH, seed=9 + size) for name, size in lengths.items()}
    found |= {name: numbers(rows, WIDTH, seed=seed) for seed, name in ((20, "ropeSin"), (21, "ropeCos"))}
    for seed, (name, size) in enumerate(zip(NAMES, lengths.values(), strict=True), 30) if norm else ():
        found[f"norm{name}Mean"] = numbers(BATCH, size, HEADS, 1, seed=seed)
        found[f"norm{name}Rstd"] = np.abs(numbers(BATCH, size, HEADS, 1, seed=seed + 10)) + 1
        if norm == 2:
            found[f"norm{name}Weight"] = numbers(WIDTH, seed=seed + 20)
    return found


def expected(given: dict[str, Numbers], norm: int, rope: int, order: int) -> dict[str, ExpectedOutput]:
    outputs: dict[str, tuple[int, ...]] = {
        f"grad{name}": (BATCH, OWN, HEADS, WIDTH) for name in ("Query", "Key", "Value")
    }
    outputs |= {f"gradEncoder{name}": (BATCH, ENCODED, HEADS, WIDTH) for name in ("Query", "Key", "Value")}
    if norm == 2:
        outputs |= {f"gradNorm{name}{which}": (WIDTH,) for name in NAMES for which in ("Weight", "Bias")}
    none = {f"norm{name}{which}": None for name in NAMES for which in ("Weight", "Mean", "Rstd")}
    shapes = {name: array.shape for name, array in given.items()} | outputs
    types = {"normType": norm, "normAddedType": norm, "ropeType": rope, "concatOrder": order}
    arguments = {**none, **{name: Tensor(shape, "FLOAT") for name, shape in shapes.items()}, **types}
    return dict(registry.load("norm_rope_concat_backward")(OracleInput(tensors=given, arguments=arguments)))


def unrotated(gradient: Numbers, given: dict[str, Numbers], rope: int) -> Numbers:
    if not rope:
        return gradient
    rearranged = (gradient * given["ropeSin"])[..., PLACES[rope]]
    found: Numbers = gradient * given["ropeCos"] + rearranged * NEG_MASK
    return found


def parts(gradient: Numbers, order: int) -> tuple[Numbers, Numbers]:
    turned = np.moveaxis(gradient, 1, 2)
    return (turned[:, ENCODED:], turned[:, :ENCODED]) if order else (turned[:, :OWN], turned[:, OWN:])


def normalised(g: Numbers, x: Numbers, name: str, given: dict[str, Numbers], norm: int) -> dict[str, Numbers]:
    if not norm:
        return {"": g}
    h = (x - given[f"norm{name}Mean"]) * given[f"norm{name}Rstd"]
    w = g * given[f"norm{name}Weight"] if norm == 2 else g
    centred = w - w.mean(-1, keepdims=True) - h * (w * h).mean(-1, keepdims=True)
    found = {"": given[f"norm{name}Rstd"] * centred}
    return found | {"Weight": (g * h).sum((0, 1, 2)), "Bias": g.sum((0, 1, 2))} if norm == 2 else found


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("rope", [0, 1, 2])
@pytest.mark.parametrize("norm", [0, 1, 2])
def test_every_type_is_as_it_is_written(norm: int, rope: int, order: int) -> None:
    given = tensors(norm, POSITIONS)
    found = expected(given, norm, rope, order)
    own, encoded = parts(given["gradValueOutput"], order)
    wanted = {"gradValue": own, "gradEncoderValue": encoded}
    for name in ("Query", "Key"):
        streams = parts(unrotated(given[f"grad{name}Output"], given, rope), order)
        sides = (("", name, name.lower()), ("Encoder", f"Added{name}", f"encoder{name}"))
        for g, (side, stem, x) in zip(streams, sides, strict=True):
            for which, value in normalised(g, given[x], stem, given, norm).items():
                wanted[f"gradNorm{stem}{which}" if which else f"grad{side}{name}"] = value
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(np.asarray(found[name].value), value, err_msg=name)
        assert found[name].open is None or not np.any(found[name].open)


@pytest.mark.parametrize("rope", [1, 2])
def test_with_fewer_rows_than_positions_all_but_the_gradients_of_values_is_open(rope: int) -> None:
    found = expected(tensors(2, POSITIONS - 1), 2, rope, 0)
    for name, output in found.items():
        is_open = output.open is not None and np.broadcast_to(output.open, np.shape(output.value)).all()
        assert is_open != name.endswith("Value"), name
