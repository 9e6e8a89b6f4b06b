"""The valid cases of a part of a plan, from where it takes them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.trials.plan import CaseSource, Part


def valid_cases(part: Part, sampler: Sampler, *, seed: int) -> Iterator[Case]:
    """Valid cases at corners, of training runs, as a standard asks for them, or random ones."""
    match part.source:
        case CaseSource.CORNERS:
            from aclnn_cts.generate.corner_walk import corner_cases  # noqa: PLC0415 - runs of given cases have none

            return corner_cases(sampler, seed=seed, first=part.first, count=part.count, heavy=part.heavy)
        case CaseSource.REAL:
            from aclnn_cts.generate.real_calls import real_cases  # noqa: PLC0415 - as above

            found = real_cases(sampler, seed=seed, first=part.first, count=part.count, heavy=part.heavy)
            return _of_models(found, part.standard) if part.standard else found
        case CaseSource.EXHAUSTIVE:
            from aclnn_cts.generate.exhaustive import exhaustive_cases  # noqa: PLC0415 - as above

            return exhaustive_cases(sampler, seed=seed, first=part.first, count=part.count)
        case CaseSource.RANDOM:
            return random_cases(part, sampler, seed, "valid", large_calls=part.heavy)
        case CaseSource.STANDARD | CaseSource.SPECIAL:
            return _standard_cases(part, sampler, seed)


def random_cases(part: Part, sampler: Sampler, seed: int, stream: str, *, large_calls: bool = False) -> Iterator[Case]:
    """Random cases of a stream, in front of them the large calls of the spec where they are asked for."""
    name = f"{sampler.spec.operator}/{sampler.target.product}/{stream}"
    for number, choices in enumerate(stream_block(seed, name, part.first, part.count), part.first):
        yield sampler.random_case(choices, number, heavy=part.heavy, large_calls=large_calls)


def _of_models(cases: Iterator[Case], standard: str) -> Iterator[Case]:
    """The cases of models that a standard asks for."""
    from aclnn_cts.core.standard import OF_MODELS, STANDARDS, source_text  # noqa: PLC0415 - few runs follow one

    for case in cases:
        source = source_text(STANDARDS[standard], OF_MODELS, {"call": case.origin.source or ""})
        yield msgspec.structs.replace(case, origin=msgspec.structs.replace(case.origin, source=source))


def _standard_cases(part: Part, sampler: Sampler, seed: int) -> Iterator[Case]:
    from aclnn_cts.execution.cascade import in_cascade  # noqa: PLC0415 - few runs follow one
    from aclnn_cts.generate.standard_calls import standard_cases  # noqa: PLC0415 - as above

    made = standard_cases(sampler, part.standard, seed=seed, max_bytes=part.max_bytes)
    if part.source is CaseSource.STANDARD:
        return in_cascade(made.generated_cases(part.first, part.count), sampler.spec, is_asked=part.is_cascade)
    return islice(made.special_cases(), part.count or None)
