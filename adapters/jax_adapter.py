"""JAX on a CPU as the implementation under test: gradients by `jax.vjp`, by bindings.

JAX has no phases and no aclnn statuses, and no strides: an array that is no plain one would be copied into one. What it
rejects with an error of its own counts as rejected.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aclnn_cts.adapters.bindings import read_own_bindings, shipped_bindings
from aclnn_cts.adapters.protocol import Call, Capabilities, Inexpressible
from aclnn_cts.adapters.registry import import_extra, read_bool
from aclnn_cts.adapters.results import outcome_of, run_each
from aclnn_cts.core.dtypes import DTYPES, FORMATS, PRIVATE_FORMATS
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec

_KINDS = ("float", "signed", "unsigned", "bool", "complex")
_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


class JaxAdapter:
    """The options, checked; JAX is imported when it is opened.

    - `jit`: compile each call as a whole. Otherwise JAX runs it operation by operation.
    - `bindings`: files with bindings of operators; one replaces that of ours (docs/bindings.md).
    """

    def __init__(self, *, jit: str = "true", bindings: str = "") -> None:
        self.jit = read_bool("jax", "jit", jit)
        self.files = tuple(Path(word) for word in bindings.split(",") if word)

    def open(self, target: Target, specs: Mapping[str, Spec]) -> JaxSession:
        """Import JAX and make the settings; the same for every product."""
        # Workers give more, and sums keep their order. XLA reads it once, when it is loaded.
        os.environ.setdefault("XLA_FLAGS", _ONE_THREAD)
        return JaxSession(self, specs, jax=import_extra("jax", "JAX"))


class JaxSession:
    """JAX with its settings made and recorded; `close` puts them back."""

    def __init__(self, adapter: JaxAdapter, specs: Mapping[str, Spec], *, jax: Any) -> None:  # noqa: ANN401 - a module
        from aclnn_cts.adapters.jax_bindings import JaxBinding  # noqa: PLC0415 - it imports JAX

        own, sources = read_own_bindings(adapter.files, specs)
        bindings = {**shipped_bindings("jax"), **own}
        self._bindings = {operator: JaxBinding(binding, jit=adapter.jit) for operator, binding in bindings.items()}
        self._config = jax.config
        settings = {"jax_enable_x64": True, "jax_platforms": "cpu", "jax_default_matmul_precision": "highest"}
        self._before = {name: getattr(jax.config, name) for name in settings}
        for name, value in settings.items():
            jax.config.update(name, value)
        self.capabilities = Capabilities(
            description="jax.vjp on the CPU",
            operators=frozenset(self._bindings),
            bindings={operator: binding.sha256 for operator, binding in bindings.items() if operator in specs},
            rejections=True,
            measured=frozenset({"device", "jit", "matmul_precision", "x64", "xla_flags", *sources}),
            strided_inputs=False,
            strided_outputs=False,
            formats=frozenset(FORMATS) - PRIVATE_FORMATS,
            dtypes=frozenset(name for name, dtype in DTYPES.items() if dtype.kind in _KINDS),
        )
        self.environment: Mapping[str, str] = MappingProxyType(
            {
                "implementation": "jax",
                "version": jax.__version__,
                "jaxlib": jax.lib.__version__,
                "device": "cpu",
                "device_name": platform.processor() or platform.machine() or "cpu",
                "jit": "true" if adapter.jit else "false",
                "x64": "true",
                "matmul_precision": "highest",
                "xla_flags": os.environ["XLA_FLAGS"],
                **sources,
            }
        )

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        return run_each(calls, self._call)

    def close(self) -> None:
        for name, value in self._before.items():
            self._config.update(name, value)

    def _call(self, call: Call) -> Outcome:
        if call.buffers is None:
            raise Inexpressible("JAX has no phase that takes descriptors alone")
        binding = self._bindings.get(call.case.operator)
        if binding is None:
            raise Inexpressible(f"{call.case.operator} has no binding on JAX")
        start = time.perf_counter()
        results, facts = binding.run(call.case, call.buffers)
        seconds = time.perf_counter() - start
        outcome = outcome_of(call, results, seconds=seconds)
        return Outcome(seconds=seconds, facts={**outcome.facts, **facts})
