from aclnn_cts.candidates.cases import CaseArrays, cases
from aclnn_cts.candidates.check import CheckResult, Expected, check, expected
from aclnn_cts.candidates.judge import judge
from aclnn_cts.candidates.verdict import Judgement, reward
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.training.watch import watch

__version__: str
__all__ = [
    "CaseArrays",
    "CheckResult",
    "Expected",
    "HarnessError",
    "Judgement",
    "UsageError",
    "__version__",
    "cases",
    "check",
    "expected",
    "judge",
    "reward",
    "watch",
]
