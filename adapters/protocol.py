"""What an adapter is: how the harness puts calls to an implementation, whatever the implementation is.

An adapter of anybody's own is one class in one file. It needs to import nothing from here but what it uses: the
protocols are structural.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Protocol, TypeAlias

from msgspec import Meta
from numpy.typing import NDArray

from aclnn_cts.core.case import Case
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec

__all__ = [
    "SOFTWARE_DEVICE",
    "Adapter",
    "Buffers",
    "Call",
    "CallMode",
    "Capabilities",
    "Inexpressible",
    "Rejected",
    "Session",
    "TensorBuffer",
]

SOFTWARE_DEVICE = "software device"
"""What stands in `Session.environment` (under `implementation`, `product` and `device`) where no hardware took part."""

CallMode: TypeAlias = Mapping[str, str | int | bool]
"""How a call departs from the ordinary life cycle, by words."""

_Text: TypeAlias = Annotated[str, Meta(max_length=2000)]
_Name: TypeAlias = Annotated[str, Meta(max_length=200)]
_Names: TypeAlias = Annotated[frozenset[_Name], Meta(max_length=1000)]
_Seconds: TypeAlias = Annotated[float, Meta(ge=0.0, le=86400.0)]


class TensorBuffer(Protocol):
    """One tensor's memory, made by the harness."""

    @property
    def view(self) -> NDArray[Any]:
        """The tensor itself: the case's shape and strides over the storage, in the NumPy dtype of its aclDataType."""
        ...


class Buffers(Protocol):
    """The memory of one call: inputs hold their data, outputs are poisoned and lie between guards."""

    @property
    def inputs(self) -> Mapping[str, TensorBuffer]: ...
    @property
    def outputs(self) -> Mapping[str, TensorBuffer]: ...
    @property
    def memory(self) -> NDArray[Any]:
        """The one block of bytes (uint8, rank 1) in which everything lies."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """One call to make. Null tensors of the case have no buffer."""

    case: Case
    buffers: Buffers | None = None
    """None: descriptors alone; the first phase and nothing else is called."""
    call_mode: CallMode = field(default_factory=lambda: MappingProxyType({}), kw_only=True)
    """How this call departs from the ordinary life cycle; only words that `Capabilities.call_modes` names."""
    group: int | None = field(default=None, kw_only=True)
    """Neighbours of one group reach `Session.run` together (two streams, interleaved calls); None: alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an implementation can be asked and what its answers mean.

    What it declares here not to offer (operators, products, dtypes, formats, layouts, phases, statuses, call modes) is
    out of scope: it is never asked for, and the verdict names it. The declaration is read and checked once, when the
    adapter is opened. Whatever else the adapter cannot be given (`Inexpressible`) counts against it.
    """

    description: _Text = ""
    """One line for reports: what this is, and plainly so where it is software."""
    environment_zh: Annotated[Mapping[_Name, _Text], Meta(max_length=1000)] = field(default_factory=dict)
    """In Chinese, by name: values of `Session.environment` that are sentences, for the Chinese report."""
    measured: _Names = frozenset()
    """Names in `Session.environment` whose values the adapter read, hashed, counted or set itself.

    All others are what the implementation says of itself, without proof; `unknown` is neither, and may have its reason
    behind a colon.
    """
    operators: _Names | None = None
    """C names of the operators that it offers; None: all."""
    bindings: Annotated[Mapping[_Name, _Name], Meta(max_length=1000)] = field(default_factory=dict)
    """By operator, the hash of the data that says how it is computed: a waiver may name the one that it excuses."""
    statuses: bool = False
    """It returns aclnn statuses. Otherwise `rejections` tells what is judged of a broken call."""
    rejections: bool = False
    """It returns no statuses, and rejects arguments with a clear error of its own (`Rejected`).

    A rejection passes where the document promises an error and the valid twin of the call is accepted. The code that
    the document names remains unknown. A broken call that is accepted is recorded and not judged, and so is every
    broken call of an implementation with neither statuses nor rejections.
    """
    phases: bool = False
    """It has the two phases, so that descriptors alone can be put to it."""
    in_place: bool = False
    """It writes into the given memory itself. Otherwise the adapter copies results into it."""
    executes: bool = True
    """It can carry calls out. Otherwise it answers the first phase alone."""
    hardware: bool = False
    """Calls reach a real device: what could harm it is never sent, whatever the command line says."""
    call_seconds: _Seconds = 0.0
    """How long a call may take by the adapter's own clock, at most a day; who watches its process waits longer.

    0: it has none.
    """
    target: Target | None = None
    """What the device says of itself, for an implementation that is one device and no other."""
    strided_inputs: bool = True
    strided_outputs: bool = True
    """Whether tensors that are no plain arrays (strides, an offset) reach the implementation as they are."""
    formats: _Names | None = None
    """Formats that it can be given (it may tell them apart or not); None: all."""
    dtypes: _Names | None = None
    """aclDataTypes that it can be given; None: all."""
    products: _Names | None = None
    """Products that it can be asked to be; None: all."""
    deterministic: bool | None = None
    """Whether it promises the same bits for the same call; None: it does not say."""
    call_modes: _Names = frozenset()
    """Words of `Call.call_mode` that it understands."""


class Session(Protocol):
    """An implementation that is open and ready. One thread uses it."""

    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def environment(self) -> Mapping[str, str]:
        """What the manifest records: versions, device, settings."""
        ...

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make the calls and say what happened, one outcome a call.

        It may raise: `Inexpressible` where the implementation has no words for the call, `Rejected` where it rejected
        the call with a clear error, anything else where it refused or broke; the harness makes an outcome of each.
        """
        ...

    def close(self) -> None: ...


class Adapter(Protocol):
    """What a factory returns; the factory takes the options of the command line as keyword strings."""

    def open(self, target: Target, specs: Mapping[str, Spec]) -> Session:
        """Open the implementation for a product. `specs` is by operator name and may load when first read.

        Raises UsageError for an option or target that it cannot serve, HarnessError where something is missing here.
        """
        ...


class Inexpressible(Exception):  # noqa: N818 - it is no error: nobody did anything wrong
    """This call cannot be put to this implementation, which did not declare so; the text says why.

    Such calls are not judged, and a run with too many of them is inconclusive (`Capabilities`).
    """


class Rejected(Exception):  # noqa: N818 - an answer, and no mistake of anybody's
    """The implementation rejected this call with a clear error; the text is that error.

    It counts where `Capabilities.rejections` declares it. What the adapter itself cannot express is `Inexpressible`.
    """
