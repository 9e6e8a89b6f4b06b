"""aclnnNLLLoss2dBackward: at its target a place has less the gradient times the weight of the target; 0 elsewhere."""

from aclnn_cts.oracles.nll_loss_backward import FORMULA as _OF_ROWS

FORMULA = _OF_ROWS
