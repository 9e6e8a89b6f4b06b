"""What a run and a campaign begin with: the operators that are asked for, and the manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.adapters.registry import own_file
from aclnn_cts.core.verdict import OutOfScope, Result, SkipReason
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.manifest import Manifest, adapter_facts, environment_facts, own_adapter_facts, timestamp


def is_tested(spec: Spec, settings: RunnerSettings) -> bool:
    """Whether the document names the product for an operator, and the adapter offers that."""
    product, scope = settings.target.product, settings.scope
    return product in spec.products and (scope is None or scope.offers(spec.operator, product))


def why_not_tested(spec: Spec, settings: RunnerSettings) -> tuple[str, str]:
    """Of an operator that is not asked for: the reason, and the result that it counts as."""
    if settings.target.product in spec.products:
        return f"{OutOfScope.OPERATOR} {spec.operator}", Result.OUT_OF_SCOPE
    return SkipReason.UNSUPPORTED, Result.SKIPPED


def new_manifest(  # noqa: PLR0913 - each is a fact of the run
    *,
    command: str,
    arguments: tuple[str, ...],
    operators: Sequence[Spec],
    settings: RunnerSettings,
    stated: Mapping[str, object],
    seed: int,
    inputs: Mapping[str, str],
    environment: Mapping[str, str],
    capabilities: Capabilities,
    profile: str = "",
) -> Manifest:
    """The manifest of what begins now; `stated` are settings beside those of the runner."""
    return Manifest(
        command=command,
        arguments=arguments,
        operators=tuple(spec.operator for spec in operators),
        adapter=settings.adapter,
        profile=profile,
        seed=seed,
        target=settings.target,
        started=timestamp(),
        inputs=dict(inputs),
        scope=settings.scope,
        scope_sha256=settings.scope.sha256 if settings.scope is not None else "",
        settings={**settings.recorded(), **stated},
        environment=(
            environment_facts()
            | own_adapter_facts(own_file(settings.adapter))
            | adapter_facts(environment, capabilities=capabilities)
        ),
    )
