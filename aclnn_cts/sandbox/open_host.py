"""Opening an implementation where its entry says: in this process, or in a runner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from aclnn_cts.adapters.registry import load, parse_adapter_word
from aclnn_cts.core.target import DEFAULT_PRODUCT, OWN_PRODUCT, Target
from aclnn_cts.sandbox.declaration import declaration_of
from aclnn_cts.sandbox.host import InProcessHost, SessionHost
from aclnn_cts.sandbox.limits import DEFAULT_MAX_BYTES, RunnerLimits
from aclnn_cts.speclang.model import Spec


def open_host(  # noqa: PLR0913 - each is a fact of the host
    adapter: str,
    *,
    target: Target,
    specs: Mapping[str, Spec],
    spec_folders: Sequence[Path] = (),
    edition: str = "",
    isolate: bool | None = None,
    limits: RunnerLimits | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    workers: int = 1,
) -> SessionHost:
    """Open what an `--adapter` word names, in a runner unless its entry says that it needs none.

    An empty product (`OWN_PRODUCT`) is the device's own, or the default for an implementation that is no device.
    `isolate` overrides the entry. `spec_folders` are the user's own (`--specs`), which a runner loads for itself,
    in this edition of the documents.
    `workers` processes like this one share the machine's memory; no call has more than `max_bytes` of arguments.
    Raises UsageError for a word or option that is wrong, HarnessError where the adapter cannot be opened here.
    """
    choice = parse_adapter_word(adapter)
    if target.product == OWN_PRODUCT and not choice.own_product:
        target = msgspec.structs.replace(target, product=DEFAULT_PRODUCT)
    if choice.isolate if isolate is None else isolate:
        from aclnn_cts.sandbox.process import ProcessHost  # noqa: PLC0415 - Python adapters need none

        return ProcessHost(
            adapter,
            target=target,
            spec_folders=spec_folders,
            edition=edition,
            limits=limits,
            max_bytes=max_bytes,
            workers=workers,
        )
    session = load(choice).open(target, specs)
    declaration_of(session, adapter=adapter)
    return InProcessHost(session)
