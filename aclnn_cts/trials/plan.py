"""What a run is going to try: parts, each a pure function of seed, spec and target, expanded where they are run.

A part is small enough to be handed to a worker and says nothing of its trials but how to make them, so a plan of
50,000 cases an operator costs nothing until it is run, and any part of it can be made again alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

import msgspec

from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.printable import quote
from aclnn_cts.generate.corner_list import QUICK_CALLS, recorded_corners
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import recorded_lines
from aclnn_cts.speclang.sixteen_bits import inputs_of_16_bits

CHUNK = 250
"""Random cases of a part."""

_FIRST_VALUES = 28
"""Cases at corners before the first trial of any other check; in them most mistakes of values show."""
_EARLY_VALUES = 48
"""Those in the first round."""
_FIRST_REAL = 2
"""Calls of training runs right behind the first cases at corners: all that a quick run has."""
_EVERY = 1_000
"""More than an operator has recorded."""
_EARLY_MEMORY = 6
"""Cases planned for their memory in it; of all else it has one each."""
_COMBINED = 5_000
"""Generated cases of a standard that asks for combinations, and for no number of cases."""
_FIRST_GENERATED = 50
"""Generated cases of a standard before its special ones."""


LIFE_CYCLE_KIND = "life-cycle"
"""The kind of case that a trial of a life cycle takes."""

LIFE_CYCLE = tuple(
    f"{LIFE_CYCLE_KIND}/{name}"
    for name in (
        "repeatable",
        "two-streams",
        "interleaved",
        "phase-one-alone",
        "exact-workspace",
        "larger-workspace",
        "cold-warm",
        "other-attributes",
        "repeated-failure",
    )
)
"""The checks of the life cycle (`trials.checks.life_cycle`)."""


EQUAL_CALLS = ("determinism", "layout")
"""The checks of calls that must give equal results (`trials.checks.equal_calls`), as far as every run has them."""

ON_REQUEST = ("batch-invariance",)
"""Checks of what no document promises: a run has them where they are asked for."""


REPEATED_FAILURE = f"{LIFE_CYCLE_KIND}/repeated-failure"
"""The check of one refused call that is made many times in a row."""


CHECK_NAMES = (
    *("example", "boundary", "status", "memory", "precision", "values"),
    *LIFE_CYCLE,
    *EQUAL_CALLS,
    *ON_REQUEST,
)
"""All checks in the order in which they are shown (`trials.checks.registry`)."""

STATUS_CHECKS = ("example", "boundary", "status", "values", REPEATED_FAILURE)
"""What can be said of first phases alone."""


class CaseSource(Enum):
    """Where the valid cases of a part come from."""

    RANDOM = "random"
    CORNERS = "corners"
    """`generate.corners`"""
    REAL = "real"
    """`generate.real_calls`"""
    EXHAUSTIVE = "exhaustive"
    """`generate.exhaustive`"""
    STANDARD = "standard"
    """Generated as the part's standard asks (`generate.standard_calls`)."""
    SPECIAL = "special"
    """The special cases of the part's standard: `count` at most, or with 0 all of them."""


class Profile(msgspec.Struct, frozen=True):
    """How much of each kind a run tries, for each operator."""

    name: str
    random: int
    """Random valid cases."""
    breaks: int
    """Invalid cases for each constraint."""
    memory: int
    """Random cases planned for their memory."""
    equal_calls: int
    """Trials of each check of `EQUAL_CALLS`."""
    life_cycle: int
    """Trials of each check of the life cycle."""
    corners: int = 0
    """Valid cases at corners of what the spec allows (`generate.corners`)."""
    has_most_pairs: bool = False
    """Whether an operator has as many cases at corners as nine tenths of the pairs take, and fewer random ones."""
    every_corner: bool = False
    """Whether a run conforms only where values were judged at each of them."""
    real: int = 0
    """At most so many calls of training runs and published networks (`generate.real_calls`)."""
    exhaustive: int = 0
    """Calls with every pattern of 16 bits in one input of an elementwise operator (`generate.exhaustive`)."""
    heavy: bool = False
    """Whether random cases include the regime `heavy`: 2^18 to 2^22 elements a tensor."""
    requested: tuple[str, ...] = ()
    """Checks of `ON_REQUEST` that the run has too."""
    standard: str = ""
    """The vendor's acceptance standard by which cases are made (`STANDARD_PROFILES`); empty: none."""
    tolerances: tuple[str, ...] = ()
    """Acceptance criteria that it holds every call to, beside those that a run is asked for."""
    most: int = 0
    """At most so many trials of each kind, whatever is asked for; 0: no limit."""

    def limited(self, most: int) -> Profile:
        """The same with at most so many trials of each kind."""
        numbers = ("random", "breaks", "memory", "equal_calls", "life_cycle", "corners", "real")
        fewer = {name: min(getattr(self, name), most) for name in numbers}
        return msgspec.structs.replace(self, **fewer, most=most, has_most_pairs=False, every_corner=False, exhaustive=0)


PROFILES: Mapping[str, Profile] = {
    entry.name: entry
    for entry in (
        Profile(
            "quick",
            corners=QUICK_CALLS,
            random=60,
            real=_FIRST_REAL,
            breaks=6,
            memory=24,
            equal_calls=8,
            life_cycle=3,
            has_most_pairs=True,
        ),
        Profile(
            "standard",
            corners=1_500,
            random=4_500,
            real=_EVERY,
            breaks=40,
            memory=400,
            equal_calls=100,
            life_cycle=20,
            heavy=True,
            exhaustive=4,
            every_corner=True,
        ),
        Profile(
            "thorough",
            corners=4_000,
            random=50_000,
            real=_EVERY,
            breaks=200,
            memory=4_000,
            equal_calls=1_000,
            life_cycle=100,
            heavy=True,
            exhaustive=4,
            every_corner=True,
        ),
    )
}
"""Profiles of this project's own plans."""

STANDARD_PROFILES = ("cann-standard", "cann-l0", "cann-l1", "cann-l2")
"""Profiles by a vendor's acceptance standard (`core.standard.STANDARDS`)."""


def profile(name: str, *, standards: bool = False, where: str = "--profile") -> Profile:
    """A profile by its name; UsageError for an unknown one. `standards`: one by a vendor's standard may be named."""
    known = (*PROFILES, *(STANDARD_PROFILES if standards else ()))
    if name not in known:
        raise UsageError(f"{where} {quote(name)}: expected one of {', '.join(known)}{did_you_mean(name, known)}")
    return PROFILES[name] if name in PROFILES else _standard_profile(name)


def _standard_profile(name: str) -> Profile:
    from aclnn_cts.core.standard import STANDARDS  # noqa: PLC0415 - few runs follow one

    standard = STANDARDS[name]
    return Profile(
        name,
        random=0,
        real=_EVERY if standard.generated_of_real else 0,
        breaks=6,
        memory=0,
        equal_calls=0,
        life_cycle=0,
        standard=name,
        tolerances=(standard.tolerance,),
    )


class Part(msgspec.Struct, frozen=True):
    """Some trials of one check of one operator: `count` from number `first` on, of a constraint if one is named."""

    operator: str
    check: str
    kind: str
    """`example`, `boundary`, `invalid`, `valid`, `life-cycle`, or one of `EQUAL_CALLS`."""
    constraint: str = ""
    first: int = 0
    count: int = 0
    heavy: bool = False
    """Whether random cases include the regime `heavy`."""
    source: CaseSource = CaseSource.RANDOM
    """Where valid cases come from."""
    standard: str = ""
    """The vendor's acceptance standard whose cases these are."""
    repeats: int = 0
    """How often each call is made, for the check of determinism; 0: as that check makes it."""
    is_cascade: bool = False
    """Whether saved tensors come from a forward pass."""
    max_bytes: int = 0
    """Of the arguments of one call; set where cases are made as large as that, and 0 for no limit."""


def corner_calls(spec: Spec, product: str, chosen: Profile) -> int:
    """How many cases at corners an operator has in a run of a profile."""
    listed = recorded_corners(spec, product) if chosen.has_most_pairs else None
    return chosen.corners if listed is None else max(chosen.corners, listed.quick_calls)


def _trials(part: Part, first: int, last: int | None = None) -> Iterator[Part]:
    """The trials of a part from number `first` on and before `last`, in parts of `CHUNK`."""
    end = part.count if last is None else min(last, part.count)
    for start in range(first, end, CHUNK):
        yield msgspec.structs.replace(part, first=start, count=min(CHUNK, end - start))


def _operator_parts(spec: Spec, product: str, chosen: Profile) -> Iterator[Part]:
    """The document's examples, then a round with a little of everything, then all the rest in its order.

    Most mistakes show in the first round already, whatever check they break: a run that is going to fail says so
    soon. Its order is the one in which the seeded faults are found after the fewest cases.
    """
    name = spec.operator
    constraints = [item.id for item in spec.constraints_for(product)]
    broken = [Part(name, "status", "invalid", constraint, count=chosen.breaks) for constraint in constraints]
    at_corners = corner_calls(spec, product, chosen)
    corners = Part(name, "values", "valid", count=at_corners, heavy=chosen.heavy, source=CaseSource.CORNERS)
    random = max(0, chosen.random - (at_corners - chosen.corners))
    recorded = min(chosen.real, len(recorded_lines(spec.stem)))
    real = Part(name, "values", "valid", count=recorded, heavy=chosen.heavy, source=CaseSource.REAL)
    number = chosen.exhaustive * len(inputs_of_16_bits(spec, product))
    patterns = Part(name, "values", "valid", count=number, source=CaseSource.EXHAUSTIVE)
    values = Part(name, "values", "valid", count=random, heavy=chosen.heavy)
    memory = Part(name, "memory", "valid", count=chosen.memory)
    equal = [Part(name, check, check, count=chosen.equal_calls) for check in (*EQUAL_CALLS, *chosen.requested)]
    lives = [Part(name, check, LIFE_CYCLE_KIND, count=chosen.life_cycle) for check in LIFE_CYCLE]
    if spec.examples:
        yield Part(name, "example", "example", count=len(spec.examples))
    yield from _trials(corners, 0, _FIRST_VALUES)
    yield from _trials(real, 0, _FIRST_REAL)
    for part in (*lives, *equal, *broken):
        yield from _trials(part, 0, 1)
    yield from _trials(corners, _FIRST_VALUES, _EARLY_VALUES)
    yield from _trials(memory, 0, _EARLY_MEMORY)
    for constraint in constraints:
        yield Part(name, "boundary", "boundary", constraint)
    for part in broken:
        yield from _trials(part, 1)
    yield Part(name, "precision", "valid")
    for part in (*equal, *lives):
        yield from _trials(part, 1)
    yield from _trials(memory, _EARLY_MEMORY)
    yield from _trials(corners, _EARLY_VALUES)
    yield from _trials(real, _FIRST_REAL)
    yield from _trials(patterns, 0)
    yield from _trials(values, 0)


def _standard_parts(spec: Spec, product: str, chosen: Profile, max_bytes: int) -> Iterator[Part]:
    """Some generated cases, special ones, cases of models, calls that break a rule, and all other generated cases."""
    from aclnn_cts.core.standard import STANDARDS  # noqa: PLC0415 - few runs follow one

    name, standard = spec.operator, STANDARDS[chosen.standard]
    dtypes = max((len(item.dtypes.get(product, ())) for item in spec.parameters), default=0)
    check = EQUAL_CALLS[0] if standard.repeats > 1 else "values"
    repeats = standard.repeats if standard.repeats > 1 else 0
    case = Part(name, check, "valid", standard=standard.name, repeats=repeats, max_bytes=max_bytes)
    number = max(standard.cases, standard.cases_by_dtype * dtypes) or _COMBINED
    number = min(number, chosen.most) if chosen.most else number
    generated = msgspec.structs.replace(case, source=CaseSource.STANDARD, count=number, is_cascade=standard.is_cascade)
    recorded = min(chosen.real, len(recorded_lines(spec.stem)))
    real = msgspec.structs.replace(case, source=CaseSource.REAL, count=recorded, heavy=True)
    constraints = [item.id for item in spec.constraints_for(product)]
    if spec.examples:
        yield Part(name, "example", "example", count=len(spec.examples))
    yield from _trials(generated, 0, _FIRST_GENERATED)
    yield msgspec.structs.replace(case, source=CaseSource.SPECIAL, count=chosen.most)
    yield from _trials(real, 0)
    for constraint in constraints:
        yield Part(name, "boundary", "boundary", constraint)
        yield Part(name, "status", "invalid", constraint, count=chosen.breaks)
    yield from _trials(generated, _FIRST_GENERATED)


def plan_parts(
    specs: Sequence[Spec], *, product: str, chosen: Profile, phases: int = 2, max_bytes: int = 0
) -> list[Part]:
    """The parts of a run, examples and a little of everything first, in the order in which they are recorded.

    With one phase of the two, only checks of statuses are planned. `max_bytes` limits one call; 0: nothing.
    """
    return [
        part
        for spec in specs
        if product in spec.products
        for part in (
            _standard_parts(spec, product, chosen, max_bytes)
            if chosen.standard
            else _operator_parts(spec, product, chosen)
        )
        if phases != 1 or part.check in STATUS_CHECKS
    ]
