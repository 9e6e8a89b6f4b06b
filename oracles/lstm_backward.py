"""aclnnLstmBackward: the gradients of a long short-term memory, from its saved gates, backwards through time.

Of each layer and direction the rows of weights and biases are read as those of i, f, g and o. With the states p and q
before a step, the saved t = tanh(c) and the gradients h and c of the states after it: s = h o (1 - t^2) + c,
i' = s g i (1 - i), f' = s q f (1 - f), g' = s i (1 - g^2) and o' = h t o (1 - o). The gradient of q is s f, and that
of p W_hh^T d with d = [i', f', g', o']. Those of weights are sums over all steps of d x^T and d p^T.

Directions are stacked, each in its own order of time, and what s and h are multiplied by is computed for all steps.
"""
# ruff: noqa: FBT001, PLR0913, PLR0917 - a formula takes what the operator does

from collections.abc import Sequence

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._recurrent import own_time, to_input, to_parameters

Arrays = Sequence[Array]


def backward(
    backend: F, input: Array, hx: Arrays, params: Arrays, dy: Array, dh: Array, dc: Array, i: Arrays, g: Arrays,
    f: Arrays, o: Arrays, h: Arrays, c: Arrays, tanhc: Arrays, hasBias: bool, numLayers: int, bidirectional: bool,
    batchFirst: bool,
) -> Outputs:  # fmt: skip
    """The document's formula, step by step from the last to the first."""
    steps, batch, hidden = i[0].shape
    both, each, swapped = 1 + bidirectional, 4 if hasBias else 2, batchFirst and len(input.shape) > 2
    x, above = (_in_time(array, steps, batch, swapped) for array in (input, dy))
    ends: list[tuple[Array, Array]] = []
    dparams: list[Array] = []
    for layer in reversed(range(numLayers)):
        cells = slice(layer * both, (layer + 1) * both)
        below = [x] * both if layer == 0 else [backend.concat(h[cells.start - both : cells.start], 2)] * both
        w_ih, w_hh = (backend.stack(params[cells.start * each + kind : cells.stop * each : each]) for kind in (0, 1))
        opened, new, kept, out, t = (own_time(backend, saved[cells]) for saved in (i, g, f, o, tanhc))
        p, q = (
            backend.concat(
                [first[cells].reshape(both, 1, batch, hidden), own_time(backend, states[cells])[:, : steps - 1]], 1
            )
            for first, states in zip(hx, (h, c), strict=True)
        )
        slope, last = out * (1.0 - t * t), t * out * (1.0 - out)
        inward = backend.stack([new * opened * (1.0 - opened), q * kept * (1.0 - kept), opened * (1.0 - new * new)], 3)
        upper = own_time(backend, [above[:, :, place * hidden : (place + 1) * hidden] for place in range(both)])
        of_h, of_c, gates = dh[cells], dc[cells], [x] * steps
        for step in reversed(range(steps)):
            of_h = backend.evaluated(of_h + upper[:, step])
            of_c = backend.evaluated(of_h * slope[:, step] + of_c)
            first_three = (of_c.reshape(both, batch, 1, hidden) * inward[:, step]).reshape(both, batch, 3 * hidden)
            gates[step] = backend.evaluated(backend.concat([first_three, of_h * last[:, step]], 2))
            of_h, of_c = backend.einsum("dbg,dgh->dbh", gates[step], w_hh), of_c * kept[:, step]
        ends.insert(0, (of_h, of_c))
        inner = backend.stack(gates, 1)
        dparams = to_parameters(backend, inner, inner, own_time(backend, below), p, bias=hasBias) + dparams
        above = to_input(backend, inner, w_ih)
    dx = (above.transpose(1, 0, 2) if swapped else above).reshape(*input.shape)
    first_h, first_c = (backend.concat(parts) for parts in zip(*ends, strict=True))
    return {"dxOut": dx, "dhPrevOut": first_h, "dcPrevOut": first_c, "dparamsOut": dparams}


def _in_time(array: Array, steps: int, batch: int, swapped: bool) -> Array:
    """[time, batch, size] of an array of these dimensions, the first two maybe swapped, or with both in one."""
    return array.transpose(1, 0, 2) if swapped else array.reshape(steps, batch, array.shape[-1])


def limits(
    backend: F, input: Array, hx: Arrays, params: Arrays, dy: Array, dh: Array, dc: Array, i: Arrays, g: Arrays,
    f: Arrays, o: Arrays, h: Arrays, c: Arrays, tanhc: Arrays, hasBias: bool, numLayers: int, bidirectional: bool,
    batchFirst: bool,
) -> Outputs:  # fmt: skip
    """As the document's limits have it, inf is as good as nan."""
    x, dy, dh, dc = (array + (array - array) for array in (input, dy, dh, dc))
    hx, params, i, g, f, o, h, c, tanhc = (
        [array + (array - array) for array in arrays] for arrays in (hx, params, i, g, f, o, h, c, tanhc)
    )
    return backward(
        backend, x, hx, params, dy, dh, dc, i, g, f, o, h, c, tanhc, hasBias, numLayers, bidirectional, batchFirst
    )


def forward(
    backend: F, input: Array, hx: Arrays, params: Arrays, i: Sequence[tuple[int, int, int]], hasBias: bool,
    numLayers: int, bidirectional: bool, batchFirst: bool,
) -> Outputs:  # fmt: skip
    """What it is the derivative of."""
    steps, batch, hidden = i[0]
    both, each, swapped = 1 + bidirectional, 4 if hasBias else 2, batchFirst and len(input.shape) > 2
    x = _in_time(input, steps, batch, swapped)
    saved: dict[str, list[Array]] = {name: [] for name in ("i", "g", "f", "o", "h", "c", "tanhc")}
    ends: list[tuple[Array, Array]] = []
    for cell in range(numLayers * both):
        w_ih, w_hh, *bias = params[cell * each : (cell + 1) * each]
        inner, p, q, found = backend.einsum("tbi,gi->tbg", x, w_ih), hx[0][cell], hx[1][cell], []
        for step in reversed(range(steps)) if cell % both else range(steps):
            linear = inner[step] + backend.einsum("bh,gh->bg", p, w_hh)
            linear = linear + bias[0] + bias[1] if bias else linear
            rows = [linear[:, gate * hidden : (gate + 1) * hidden] for gate in range(4)]
            opened, kept, out = (backend.sigmoid(rows[gate]) for gate in (0, 1, 3))
            new = backend.tanh(rows[2])
            q = kept * q + opened * new
            t = backend.tanh(q)
            p = out * t
            found.append((opened, new, kept, out, p, q, t))
        for name, parts in zip(saved, zip(*found, strict=True), strict=True):
            saved[name].append(backend.stack(parts[:: -1 if cell % both else 1]))
        ends.append((p, q))
        x = x if (cell + 1) % both else backend.concat(saved["h"][-both:], 2)
    last_h, last_c = (backend.stack(parts) for parts in zip(*ends, strict=True))
    y = x.transpose(1, 0, 2) if swapped else x.reshape(*input.shape[:-1], x.shape[2])
    return {"y": y, "h_T": last_h, "c_T": last_c, **saved}


DERIVATIVE = Derivative(
    forward=forward,
    gradients={"dy": "y", "dh": "h_T", "dc": "c_T"},
    wrt={"dxOut": "input", "dhPrevOut": "hx[0]", "dcPrevOut": "hx[1]", "dparamsOut": "params"},
    saved=("i", "g", "f", "o", "h", "c", "tanhc"),
)
FORMULA = Operator.of(backward, limits, derivative=DERIVATIVE)
