"""An adapter of somebody's own: `--adapter own_adapter:Softmax,scale=1`."""

from collections.abc import Mapping, Sequence

from aclnn_cts.adapters.protocol import Call, Capabilities, Inexpressible
from aclnn_cts.adapters.results import outcome_of
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec


class Softmax:
    capabilities = Capabilities(description="softmax in NumPy")

    def __init__(self, scale: str = "1") -> None:
        self.environment = {"library": "mine 1.0", "scale": scale}

    def open(self, target: Target, specs: Mapping[str, Spec]) -> "Softmax":
        return self

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return [self.softmax(call) for call in calls]

    def softmax(self, call: Call) -> Outcome:
        if call.case.operator != "aclnnSoftmaxBackward" or call.buffers is None:
            raise Inexpressible(f"{call.case.operator} is not implemented")
        g, y = (call.buffers.inputs[name].view for name in ("gradOutput", "output"))
        s = (g * y).sum(axis=call.case.arguments["dim"], keepdims=True)
        return outcome_of(call, {"out": y * (g - s) * g.dtype.type(self.environment["scale"])})

    def close(self) -> None: ...
