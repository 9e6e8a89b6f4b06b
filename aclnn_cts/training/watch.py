"""`watch`: the backward calls that torch makes while a training runs, checked by their documents' bounds.

    watched = aclnn_cts.watch(model=model, sample=50)
    for batch in batches:
        loss = model(batch).mean()
        with watched:
            loss.backward()

Each block is a step. In one step of `sample` a dispatch mode sees the calls; in the others nothing is added to them.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.candidates.arrays import as_array
from aclnn_cts.candidates.cases import is_integer
from aclnn_cts.candidates.check import shipped_specs
from aclnn_cts.core.dtypes import numpy_dtype
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import quote
from aclnn_cts.training.calls import ArrayFacts, CallArrays, CallFolder, RecordedCall, facts_of, inconclusive_check
from aclnn_cts.training.inverse import InverseBinding, inverse_bindings
from aclnn_cts.training.tally import CallTally, CheckedCall

if TYPE_CHECKING:
    import torch

# ruff: noqa: ANN401 - values of torch, which has no types here

_NAMESPACES = ("aten", "npu")
"""Of torch's functions: torch_npu names those of its own that follow ATen's the same."""
_MODULE = "aclnn-cts module"
"""The key of a node's metadata."""
_MOST_NODES = 10_000
"""Of the graph of one module's forward pass: more are those of a module that holds it."""


class Watch:
    """Watches the backward calls of a training; a context manager, entered once a step."""

    def __init__(
        self,
        *,
        out: Path | None,
        sample: int,
        check: bool,
        model: torch.nn.Module | None,
        ignore: Collection[str],
        budget: int,
        overhead: float | None,
        on_wrong: Callable[[CheckedCall], None] | None,
    ) -> None:
        for name, number, of in (("sample", sample, "steps"), ("budget", budget, "bytes")):
            if not (is_integer(number) and number >= 1):
                raise UsageError(f"{name}: {quote(number)}; expected a number of {of}, at least 1")
        if overhead is not None and not _is_positive(overhead):
            raise UsageError(f"overhead: {quote(overhead)}; expected a share of the steps' time above 0, or None")
        if isinstance(ignore, str):
            raise UsageError(f"ignore: {quote(ignore)}; expected a list of operators, as [{ignore!r}]")
        if on_wrong is not None and not callable(on_wrong):
            raise UsageError(f"on_wrong: {quote(on_wrong)}; expected a function of the first wrong call, or None")
        if model is not None and not hasattr(model, "named_modules"):
            raise UsageError(f"model: {type(model).__name__}; expected a torch.nn.Module, or None")
        self.tally = CallTally()
        self.step = 0
        """The step that is made or was made last, from 1 on."""
        self.unknown: Counter[str] = Counter()
        """Backward calls that are not judged, by function of torch: no spec with a binding has them."""
        self._folder = None if out is None else CallFolder(out)
        self._sample, self._check, self._budget, self._on_wrong = sample, check, budget, on_wrong
        self._inverse = _known_bindings(ignore)
        self._mode: contextlib.AbstractContextManager[Any] | None = None
        self._number = 0
        self._turns = _Turns(overhead if sample > 1 else None)
        self._is_entered = False
        self._hooks = [] if model is None else list(_hooks(model, self._is_sampled_next))

    def __enter__(self) -> Watch:  # noqa: PYI034 - Python 3.10 has no Self
        if self._is_entered:
            raise UsageError("watch: its block is entered within itself; expected one block a step")
        self._is_entered = True
        self.step += 1
        self._number = 0
        if self._is_sampled(self.step):
            self._turns.begin()
            self._mode = _mode(self)
            self._mode.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_entered = False
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None
            self._turns.end()

    def close(self) -> None:
        """Take the hooks off the model."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    @property
    def first_wrong(self) -> CheckedCall | None:
        """The first call that contradicts its document."""
        return self.tally.first_wrong

    @property
    def worst(self) -> CheckedCall | None:
        """The call with the largest error ratio."""
        return self.tally.worst

    def __str__(self) -> str:
        lines = self.tally.lines()
        if self.unknown:
            names = ", ".join(f"{name} ({number})" for name, number in self.unknown.most_common(5))
            lines.append(f"Backward calls without a spec: {names}")
        if self._turns.waiting:
            lines.append(f"Left to later steps: {self._turns.waiting}, to keep the overhead that is allowed")
        return "\n".join(lines)

    def _is_sampled(self, step: int) -> bool:
        return (step - 1) % self._sample == 0

    def _is_sampled_next(self) -> bool:
        return self._is_sampled(self.step + 1)

    def _is_wanted(self, number: int) -> bool:
        """Whether a call of the step is written or checked."""
        return self._folder is not None or self._turns.is_due(number)

    def copies(self, function: str, named: Mapping[str, Any]) -> dict[str, Any]:
        """Copies of a call's tensors, unless nobody checks it or they are larger than the budget in all."""
        if function not in self._inverse or not self._is_wanted(self._number + 1):
            return {}
        tensors = {name: value for name, value in named.items() if hasattr(value, "detach")}
        size = sum(value.numel() * value.element_size() for value in tensors.values())
        return {} if size > self._budget else {name: value.detach().clone() for name, value in tensors.items()}

    def seen(self, function: str, named: Mapping[str, Any], copies: Mapping[str, Any], result: Any) -> None:
        """Take one call: the arguments by name as they were before it, and what it returned."""
        bindings = self._inverse.get(function, ())
        if not bindings:
            self.unknown[function] += 1
            return
        self._number += 1
        if not self._is_wanted(self._number):
            self._turns.waiting += 1
            return
        began = time.perf_counter()
        try:
            made = _call(
                bindings[0], {**named, **copies}, result, step=self.step, number=self._number, most=self._budget
            )
        except TypeError as error:
            # A training goes on where tensors have no elements to read: nested ones, and those of a meta device.
            call = RecordedCall(
                operator=bindings[0].operator,
                function=function,
                step=self.step,
                number=self._number,
                module=str(named.get(_MODULE, "")),
            )
            self.tally.add(CheckedCall(call, inconclusive_check(call, str(error))))
            return
        if self._folder is not None:
            self._folder.write(made)
        if self._check and self._turns.is_due(self._number):
            item = CheckedCall(made.call, made.check())
            self._turns.took(self._number, time.perf_counter() - began)
            before = self.tally.first_wrong
            self.tally.add(item)
            if self._on_wrong is not None and before is None and self.tally.first_wrong is item:
                self._on_wrong(item)


def _is_positive(value: object) -> bool:
    return isinstance(value, (int, float)) and value > 0


class _Turns:
    """Which calls of a watched step are checked: some in turn, where all of them would take too long."""

    def __init__(self, most: float | None) -> None:
        self._most = most
        self._seconds: dict[int, float] = {}
        """Of the last check of a call, by its number in the step."""
        self._ended: float | None = None
        """When the last watched step did."""
        self._round = 0
        self._of = 1
        """One of so many calls is checked in a step."""
        self.waiting = 0
        """Calls that were left to later steps."""

    def begin(self) -> None:
        """A watched step begins."""
        self._round += 1
        if self._most is not None and self._ended is not None:
            allowed = self._most * (time.perf_counter() - self._ended)
            self._of = max(1, math.ceil(sum(self._seconds.values()) / allowed))

    def end(self) -> None:
        """It ended."""
        self._ended = time.perf_counter()

    def is_due(self, number: int) -> bool:
        """Whether a call is checked in this step."""
        return number not in self._seconds or (number + self._round) % self._of == 0

    def took(self, number: int, seconds: float) -> None:
        """Note how long the check of a call took."""
        self._seconds[number] = seconds


def watch(
    *,
    out: str | Path | None = None,
    sample: int = 50,
    check: bool = True,
    model: torch.nn.Module | None = None,
    ignore: Collection[str] = (),
    budget: int = 64 << 20,
    overhead: float | None = 0.1,
    on_wrong: Callable[[CheckedCall], None] | None = None,
) -> Watch:
    """Check the backward calls of a training on torch.

    - `out`: a folder that each call of a watched step is written to, for `aclnn-cts run --recorded`.
    - `sample`: the first step of so many is watched.
    - `check`: compare the calls at once; False only keeps them.
    - `model`: its modules name the calls. The hooks that this takes stay until `close()`.
    - `ignore`: operators that are not checked, such as one whose arithmetic is known to be coarser than the model's.
    - `budget`: most bytes of one call's arrays. Of a larger call hashes are kept, and it is not judged.
    - `overhead`: most of the steps' time that checks take. Where a step's calls would take longer, each watched step
      but the first checks some of them in turn. None, or with a `sample` of 1: all of them.
    - `on_wrong`: called with the first wrong call.

    Raises UsageError for an option that is wrong, HarnessError where torch is missing or a call cannot be written.
    """
    folder = None if out is None else Path(out)
    return Watch(
        out=folder,
        sample=sample,
        check=check,
        model=model,
        ignore=ignore,
        budget=budget,
        overhead=overhead,
        on_wrong=on_wrong,
    )


def _known_bindings(ignore: Collection[str]) -> Mapping[str, tuple[InverseBinding, ...]]:
    """Bindings of operators that have a spec, and are not ignored."""
    specs = shipped_specs("")
    known = set(specs) - {specs.find(word, where="ignore").operator for word in ignore}
    every = inverse_bindings().items()
    found = {name: tuple(item for item in items if item.operator in known) for name, items in every}
    return {name: items for name, items in found.items() if items}


def _mode(watch: Watch) -> contextlib.AbstractContextManager[Any]:
    """A dispatch mode that hands on the calls of backward functions."""
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415 - torch is an extra

    class Mode(TorchDispatchMode):  # type: ignore[misc]  # torch is not checked
        def __torch_dispatch__(
            self, func: Any, types: Sequence[Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            namespace, _, function = func._schema.name.partition("::")  # noqa: SLF001 - torch has no other name for it
            if namespace not in _NAMESPACES or not _is_backward(function):
                return func(*args, **(kwargs or {}))
            named = _named(func, args, kwargs or {})
            # What a call writes into must be seen as it was before.
            copies = watch.copies(function, named)
            module = _module()
            result = func(*args, **(kwargs or {}))
            watch.seen(function, {**named, _MODULE: module}, copies, result)
            return result

    return Mode()


def _is_backward(function: str) -> bool:
    return "backward" in function and not function.endswith("_forward")


def _named(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by the names of the function's schema, defaults included."""
    declared = func._schema.arguments  # noqa: SLF001 - as above
    found = {item.name: item.default_value for item in declared if item.has_default_value()}
    return {**found, **{item.name: value for item, value in zip(declared, args, strict=False)}, **kwargs}


def _module() -> str:
    """The path of the module whose backward pass is under way; empty where nothing knows it."""
    import torch  # noqa: PLC0415 - as above

    node = torch._C._current_autograd_node()  # noqa: SLF001 - anomaly mode finds it so too
    return "" if node is None else str(node.metadata.get(_MODULE, ""))


def _call(
    binding: InverseBinding, named: Mapping[str, Any], result: Any, *, step: int, number: int, most: int
) -> CallArrays:
    """The call as its operator has it, with as much of its arrays as the budget admits."""
    attributes: dict[str, Any] = dict(binding.unused)
    inputs: dict[str, NDArray[Any]] = {}
    for name, source in binding.arguments.items():
        value = source.restored(named[name]) if named.get(name) is not None else source.restored(None)
        if hasattr(value, "detach"):
            inputs[source.parameter] = _as_listed(as_array(value), binding.operator, source.parameter)
        elif value is not None:
            attributes[source.parameter] = _plain(value)
    results = result if isinstance(result, (tuple, list)) else (result,)
    outputs = {
        name: as_array(results[place])
        for name, place in binding.outputs.items()
        if place < len(results) and results[place] is not None
    }
    size = sum(array.nbytes for array in (*inputs.values(), *outputs.values()))
    kept = size <= most
    return CallArrays(
        call=RecordedCall(
            operator=binding.operator,
            function=binding.function,
            step=step,
            number=number,
            module=str(named.get(_MODULE, "")),
            attributes=attributes,
            inputs={name: _facts(array, kept=kept) for name, array in inputs.items()},
            outputs={name: _facts(array, kept=kept) for name, array in outputs.items()},
        ),
        inputs=inputs if kept else {},
        outputs=outputs if kept else {},
    )


def _as_listed(array: NDArray[Any], operator: str, parameter: str) -> NDArray[Any]:
    """Integers in a dtype that the document lists, where it holds them all: torch's indices have 64 bits."""
    spec = shipped_specs("")[operator]
    listed = spec.dtypes_of(spec.parameter(parameter), spec.usual_product)
    integers = [numpy_dtype(name) for name in listed if numpy_dtype(name).kind in "iu"]
    if array.dtype.kind not in "iu" or not integers or array.dtype in integers:
        return array
    as_listed = array.astype(integers[0])
    return as_listed if np.array_equal(as_listed, array) else array


def _facts(array: NDArray[Any], *, kept: bool) -> ArrayFacts:
    facts = facts_of(array)
    if kept:
        return facts
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return ArrayFacts(dtype=facts.dtype, shape=facts.shape, sha256=digest)


def _plain(value: Any) -> Any:
    """An attribute as JSON has it."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _hooks(model: torch.nn.Module, wanted: Callable[[], bool]) -> Iterator[Any]:
    """Hooks of a model's modules that mark the nodes which a forward pass makes with the innermost module's path."""

    def marks(path: str) -> Callable[[Any, Any, Any], None]:
        def mark(_module: Any, inputs: Any, output: Any) -> None:
            if wanted():
                ends = {id(node) for item in _tensors(inputs) if (node := item.grad_fn) is not None}
                _mark([item.grad_fn for item in _tensors(output)], path, ends)

        return mark

    for path, module in model.named_modules():
        yield module.register_forward_hook(marks(path or type(model).__name__))


def _tensors(value: Any) -> Iterator[Any]:
    if hasattr(value, "grad_fn"):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _mark(nodes: Sequence[Any], path: str, ends: set[int]) -> None:
    """Mark what leads from these nodes to the inputs of the module: what an inner module has marked stays."""
    waiting = [node for node in nodes if node is not None]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_NODES:
        node = waiting.pop()
        if id(node) in seen or id(node) in ends:
            continue
        seen.add(id(node))
        node.metadata.setdefault(_MODULE, path)
        waiting.extend(parent for parent, _ in node.next_functions if parent is not None)
