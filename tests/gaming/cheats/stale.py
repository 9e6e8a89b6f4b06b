"""stale results"""

from right import softmax_backward

_state = {"calls": 0, "last": None}


def every_seventh_call(grad_output, output, dim):
    """Every seventh call gives the result before it, where that has the shape."""
    _state["calls"] += 1
    last = _state["last"]
    if _state["calls"] % 7 or last is None or last.shape != grad_output.shape:
        _state["last"] = softmax_backward(grad_output, output, dim)
    return _state["last"]


def after_ten_calls(grad_output, output, dim):
    """It is right ten times; then it gives the last result of a shape wherever it has one."""
    _state["calls"] += 1
    known = _state.setdefault("known", {})
    if _state["calls"] <= 10 or grad_output.shape not in known:
        known[grad_output.shape] = softmax_backward(grad_output, output, dim)
    return known[grad_output.shape]
