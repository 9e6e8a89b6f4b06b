"""aclnnGRUBackward: the gradients of a gated recurrent unit, from its saved gates, backwards through time.

Of each layer and direction the rows of weights and biases are those of z, then of r, then of the candidate n. With the
hidden state p before a step, the saved a = W_hn p + b_hn and the gradient g of the step's hidden state:
n' = g (1 - z) (1 - n^2), r' = n' a r (1 - r), z' = g (p - n) z (1 - z), and p' = g z + W_hh^T [z', r', n' r]. The
gradients of weights are sums over all steps of [z', r', n'] x^T and [z', r', n' r] p^T.

Directions are stacked, each in its own order of time, and what g is multiplied by is computed for all steps at once.
"""
# ruff: noqa: FBT001, PLR0913, PLR0917 - a formula takes what the operator does

from collections.abc import Sequence

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._recurrent import own_time, to_input, to_parameters


def backward(
    f: F, input: Array, params: Sequence[Array], hx: Sequence[Array], dy: Array, dh: Array, r: Sequence[Array],
    z: Sequence[Array], n: Sequence[Array], h_n: Sequence[Array], h: Sequence[Array], hasBias: bool,
    numLayers: int, bidirectional: bool, batchFirst: bool,
) -> Outputs:  # fmt: skip
    """The document's formula, step by step from the last to the first."""
    x, above = (array.transpose(1, 0, 2) if batchFirst else array for array in (input, dy))
    both, each, (steps, batch, _), hidden = 1 + bidirectional, 4 if hasBias else 2, x.shape, dh.shape[2]
    first = hx[0].reshape(dh.shape[0], batch, hidden)
    ends: list[Array] = []
    dparams: list[Array] = []
    for layer in reversed(range(numLayers)):
        cells = slice(layer * both, (layer + 1) * both)
        below = [x] * both if layer == 0 else [f.concat(h[cells.start - both : cells.start], 2)] * both
        reset, update, new, linear, after = (own_time(f, saved[cells]) for saved in (r, z, n, h_n, h))
        w_ih, w_hh = (f.stack(params[layer * both * each + kind : (layer + 1) * both * each : each]) for kind in (0, 1))
        p = f.concat([first[cells].reshape(both, 1, batch, hidden), after[:, : steps - 1]], 1)
        free = 1.0 - update
        dn = free * (1.0 - new * new)
        dr, dz = dn * linear * reset * (1.0 - reset), (p - new) * update * free
        inward, onward = f.stack([dz, dr, dn], 3), f.stack([dz, dr, dn * reset], 3)
        upper = own_time(f, [above[:, :, place * hidden : (place + 1) * hidden] for place in range(both)])
        g, at, lin_hh = dh[cells], [x] * steps, [x] * steps
        for t in reversed(range(steps)):
            g = f.evaluated(g + upper[:, t])
            at[t] = g.reshape(both, batch, 1, hidden)
            lin_hh[t] = f.evaluated(at[t] * onward[:, t]).reshape(both, batch, 3 * hidden)
            g = g * update[:, t] + f.einsum("dbg,dgh->dbh", lin_hh[t], w_hh)
        ends.insert(0, g)
        outer, inner = f.stack(lin_hh, 1), f.evaluated(f.stack(at, 1) * inward).reshape(both, steps, batch, 3 * hidden)
        dparams = to_parameters(f, inner, outer, own_time(f, below), p, bias=hasBias) + dparams
        above = to_input(f, inner, w_ih)
    dx = above.transpose(1, 0, 2) if batchFirst else above
    return {"dxOut": dx, "dhPrevOut": f.concat(ends), "dparamsOut": dparams}


def forward(
    f: F, input: Array, params: Sequence[Array], hx: Sequence[Array], hasBias: bool, numLayers: int,
    bidirectional: bool, batchFirst: bool,
) -> Outputs:  # fmt: skip
    """What it is the derivative of."""
    x = input.transpose(1, 0, 2) if batchFirst else input
    both, each, (steps, batch, _), hidden = 1 + bidirectional, 4 if hasBias else 2, x.shape, params[1].shape[1]
    gates = [slice(gate * hidden, (gate + 1) * hidden) for gate in range(3)]
    first, ends = hx[0].reshape(numLayers * both, batch, hidden), []
    saved: dict[str, list[Array]] = {name: [] for name in ("r", "z", "n", "h_n", "h")}
    for cell in range(numLayers * both):
        w_ih, w_hh, *bias = params[cell * each : (cell + 1) * each]
        inner, p, found = f.einsum("tbi,gi->tbg", x, w_ih), first[cell], []
        for t in reversed(range(steps)) if cell % both else range(steps):
            lin_ih, lin_hh = inner[t], f.einsum("bh,gh->bg", p, w_hh)
            if bias:
                lin_ih, lin_hh = lin_ih + bias[0], lin_hh + bias[1]
            update, reset = (f.sigmoid(lin_ih[:, rows] + lin_hh[:, rows]) for rows in gates[:2])
            new = f.tanh(lin_ih[:, gates[2]] + reset * lin_hh[:, gates[2]])
            p = (1.0 - update) * new + update * p
            found.append((reset, update, new, lin_hh[:, gates[2]], p))
        for name, parts in zip(saved, zip(*found, strict=True), strict=True):
            saved[name].append(f.stack(parts[:: -1 if cell % both else 1]))
        ends.append(p)
        x = x if (cell + 1) % both else f.concat(saved["h"][-both:], 2)
    return {"y": x.transpose(1, 0, 2) if batchFirst else x, "h_T": f.stack(ends), **saved}


DERIVATIVE = Derivative(
    forward=forward,
    gradients={"dy": "y", "dh": "h_T"},
    wrt={"dxOut": "input", "dhPrevOut": "hx[0]", "dparamsOut": "params"},
    saved=("r", "z", "n", "h_n", "h"),
)
FORMULA = Operator.of(backward, derivative=DERIVATIVE)
