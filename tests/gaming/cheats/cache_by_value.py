"""cache by value"""

from right import softmax_backward

_known = {}


def of_gradient(grad_output, output, dim):
    """It keeps results by shape and contents of the gradient alone."""
    key = grad_output.shape, grad_output.tobytes(), dim
    if key not in _known:
        _known[key] = softmax_backward(grad_output, output, dim)
    return _known[key]


def of_output(grad_output, output, dim):
    """It keeps results by shape and contents of the forward pass's output alone."""
    key = output.shape, output.tobytes(), dim
    if key not in _known:
        _known[key] = softmax_backward(grad_output, output, dim)
    return _known[key]


def of_all_inputs(grad_output, output, dim):
    """It keeps results by the contents of all inputs: a memory that is right."""
    key = grad_output.shape, grad_output.tobytes(), str(grad_output.dtype), output.tobytes(), dim
    if key not in _known:
        _known[key] = softmax_backward(grad_output, output, dim)
    return _known[key]
