"""torch's own backward kernels as the implementation under test, on any torch device, by bindings.

torch has no phases and no aclnn statuses. What it rejects with an error of its own counts as rejected; what it accepts
is recorded. It has no precision modes either: it computes in the dtype of its operands, which every mode's check
admits (finer than asked is a fact and no fault), so every mode is run.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from aclnn_cts.adapters.bindings import read_own_bindings, shipped_bindings
from aclnn_cts.adapters.protocol import Buffers, Call, Capabilities, Inexpressible
from aclnn_cts.adapters.registry import import_extra, read_bool, read_number
from aclnn_cts.adapters.results import MESSAGE_LIMIT, mismatch, run_each
from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import FORMATS, PRIVATE_FORMATS
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec

if TYPE_CHECKING:
    from aclnn_cts.adapters.torch_tensors import BoundTensors

_OUTPUT_WAYS = ("direct", "copy")


class TorchAdapter:
    """The options, checked; torch is imported when it is opened.

    - `device`: any torch device (`cpu`, `cuda:1`, `npu`, which imports torch_npu).
    - `threads`: of one call on the CPU. One by default: workers give more, and sums keep their order.
    - `deterministic`: torch's deterministic algorithms.
    - `tf32`: TF32 in matrix products of FLOAT on CUDA.
    - `outputs`: `direct` hands the harness' memory to kernels that take an output tensor, so that its strides reach
      them; `copy` lets torch make its own outputs and copies.
    - `bindings`: files with bindings of operators; one replaces that of ours (docs/bindings.md).
    """

    def __init__(
        self,
        *,
        device: str = "cpu",
        threads: str = "1",
        deterministic: str = "false",
        tf32: str = "false",
        outputs: str = "direct",
        bindings: str = "",
    ) -> None:
        self.device = device
        self.threads = read_number("torch", "threads", threads, least=1)
        self.deterministic = read_bool("torch", "deterministic", deterministic)
        self.tf32 = read_bool("torch", "tf32", tf32)
        if outputs not in _OUTPUT_WAYS:
            raise UsageError(f"--adapter torch: outputs={outputs}: expected one of {', '.join(_OUTPUT_WAYS)}")
        self.direct = outputs == "direct"
        self.files = tuple(Path(word) for word in bindings.split(",") if word)

    def open(self, target: Target, specs: Mapping[str, Spec]) -> TorchSession:
        """Import torch and make the settings; the same for every product."""
        return TorchSession(self, specs, torch=import_extra("torch", "torch"))


class TorchSession:
    """torch with its settings made and recorded; `close` puts them back."""

    def __init__(self, adapter: TorchAdapter, specs: Mapping[str, Spec], *, torch: Any) -> None:  # noqa: ANN401 - a module
        from aclnn_cts.adapters import (  # noqa: PLC0415 - they import torch
            torch_bindings,
            torch_functions,
            torch_settings,
            torch_tensors,
        )

        self._device = torch_settings.find_device(adapter.device)
        own, sources = read_own_bindings(adapter.files, specs)
        bindings = {**shipped_bindings("torch"), **own}
        self._bindings, missing = torch_bindings.compile_bindings(bindings, device=self._device)
        if mistakes := [missing[operator] for operator in own if operator in missing]:
            raise UsageError("\n".join(mistakes))
        self._settings = torch_settings.Settings(
            self._device, threads=adapter.threads, deterministic=adapter.deterministic, tf32=adapter.tf32
        )
        self._direct = adapter.direct
        self._tensors = torch_tensors
        self._torch = torch
        self._faults, self._out_of_memory = torch_settings.FAULTS, torch_settings.OUT_OF_MEMORY
        self._synchronise: Callable[[], object] = torch_settings.synchroniser(self._device)
        way, way_zh = torch_functions.rms_norm_way(self._device)
        self.capabilities = Capabilities(
            description=f"torch kernels on {self._settings.device_name}",
            environment_zh={
                **self._settings.environment_zh,
                "cubeMathType": "不下发给 torch：torch 按操作数的数据类型计算",
                "RmsNormGrad": way_zh,
            },
            rejections=True,
            operators=frozenset(self._bindings),
            bindings={operator: bindings[operator].sha256 for operator in self._bindings if operator in specs},
            measured=self._settings.measured | {"outputs", *sources},
            in_place=adapter.direct,
            strided_outputs=adapter.direct,
            formats=frozenset(FORMATS) - PRIVATE_FORMATS,
            dtypes=frozenset(torch_tensors.TORCH_DTYPES),
            deterministic=adapter.deterministic,
        )
        self.environment: Mapping[str, str] = MappingProxyType(
            self._settings.environment
            | {
                "outputs": "direct" if adapter.direct else "copy",
                "cubeMathType": "not put to torch: it computes in the dtype of its operands",
                "RmsNormGrad": way,
                "not_bound": ", ".join(missing) or "none",
            }
            | sources
        )

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return run_each(calls, self._call)

    def close(self) -> None:
        self._settings.restore()

    def _call(self, call: Call) -> Outcome:
        if call.buffers is None:
            raise Inexpressible("torch has no phase that takes descriptors alone")
        binding = self._bindings.get(call.case.operator)
        if binding is None:
            raise Inexpressible(f"{call.case.operator} has no binding on torch")
        binding.demand_expressible(call.case)
        for module in binding.modules:
            importlib.import_module(module)
        bound = self._tensors.bind(call.case, call.buffers, device=self._device, direct=self._direct)
        start = time.perf_counter()
        try:
            with self._torch.no_grad():
                results, facts = binding.run(bound)
            self._synchronise()
        except self._out_of_memory as error:
            return Outcome(ended=CallEnd.NOT_RUN, message=f"torch is out of memory: {error}"[:MESSAGE_LIMIT])
        except self._faults as error:
            return Outcome(ended=CallEnd.DEVICE_FAULT, message=f"{type(error).__name__}: {error}"[:MESSAGE_LIMIT])
        seconds = time.perf_counter() - start
        facts |= self._store(call.case, call.buffers, bound, results)
        return Outcome(seconds=seconds, facts=facts)

    def _store(self, case: Case, buffers: Buffers, bound: BoundTensors, results: Mapping[str, Any]) -> dict[str, str]:
        facts: dict[str, str] = {}
        descriptors = dict(case.tensors())
        for name, result in _named(results):
            descriptor = descriptors.get(name)
            if name not in buffers.outputs or descriptor is None:
                continue
            target = bound.outputs[name]
            if result is not target:
                dtype = self._tensors.acl_name(result.dtype)
                wrong = mismatch(name, descriptor, shape=result.shape, dtype=dtype)
                facts |= wrong
                if wrong:
                    continue
                target.copy_(result)
            bound.write_back(name)
        return facts


def _named(results: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each tensor by its name; those of a list are `name[0]`, `name[1]`, ..."""
    for name, result in results.items():
        if isinstance(result, list):
            yield from ((f"{name}[{place}]", item) for place, item in enumerate(result))
        else:
            yield name, result
