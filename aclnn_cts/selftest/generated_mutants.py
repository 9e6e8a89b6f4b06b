"""Generated mutants: a correct implementation with one change, in every call or where a trigger holds.

They need no code of an operator: a spec and a formula give them all. Triggers and changes come from a text, as a rule
the commit's hash, so that a commit is measured with mutants that nobody saw before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from aclnn_cts.core.dtypes import INEXACT
from aclnn_cts.core.target import Target
from aclnn_cts.formula.emulator import ORDERS, Variant
from aclnn_cts.formula.mutants import Mutant, Site
from aclnn_cts.generate.choices import Choices, StreamChoices
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.selftest.kinds import PLACES, REFUSED, ROUNDED, STALE, ULPS, UNCHECKED
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.model import Spec

_MODULI = (2, 300)
_THRESHOLDS = (2, 14)
"""Least and greatest exponent of two of a threshold."""
_AXES = (0, -1, -2, None)
"""Of a quantity: a dimension of a tensor, or None for its number of elements."""
SUMS = "sum|scatter|sum of products"
"""The operations of a formula that have contributions."""


class Trigger(NamedTuple):
    """When a mutant acts: an expression, and for one about the last block what that is of."""

    text: str = ""
    output: str = ""
    block: int = 0


class TriggerDrawer:
    """Draws triggers for one operator. Of its spec it reads names, dtypes and layouts, and no sizes."""

    def __init__(self, spec: Spec, target: Target) -> None:
        sampler = Sampler(spec, target)
        # Of a list the first tensor counts.
        self._words = {
            item.name: f"item({item.name}, 0)" if item.kind == "tensor_list" else item.name
            for item in spec.parameters
            if item.holds_tensors
        }
        self._outputs = spec.outputs
        self._strided = sampler.strided
        rows = sampler.dtype_rows
        choices = {name: tuple(dict.fromkeys(row[name] for row in rows)) for name in self._words}
        self._dtypes = {name: dtypes for name, dtypes in choices.items() if len(dtypes) > 1}

    def draw(self, choices: Choices, *, least: int = 0, tail: bool = False) -> Trigger:
        """No condition, one or a conjunction of two, and at least `least`; `tail`: the last block may be one."""
        number = max(choices.pick((0, 1, 1, 1, 1, 2)), least)
        found: dict[str, Trigger] = {}
        while len(found) < number:
            asked = choices.pick((*["multiple"] * 5, *["at least"] * 2, "below", "dtype", "layout", "tail"))
            if (asked == "tail" and not tail) or (asked == "dtype" and not self._dtypes):
                continue
            if (asked == "layout" and not self._strided) or asked in found:
                continue
            found[asked] = self._condition(choices, asked)
        last = found.get("tail", Trigger())
        return Trigger(" and ".join(item.text for item in found.values()), last.output, last.block)

    def _condition(self, choices: Choices, asked: str) -> Trigger:
        if asked == "dtype":
            name = choices.pick(tuple(self._dtypes))
            return Trigger(f"dtype({self._words[name]}) == {choices.pick(self._dtypes[name])}")
        if asked == "layout":
            word = self._words[choices.pick(self._strided)]
            return Trigger(choices.pick((f"contiguous({word})", f"not contiguous({word})", f"offset({word}) > 0")))
        name = choices.pick(self._outputs if asked == "tail" else tuple(self._words))
        axis = None if asked == "tail" else choices.pick(_AXES)
        quantity = f"numel({self._words[name]})" if axis is None else f"dim({self._words[name]}, {axis})"
        if asked in ("at least", "below"):
            exponent = choices.integer(*_THRESHOLDS)
            limit = (1 << exponent) + choices.pick((0, choices.integer(0, (1 << exponent) - 1)))
            return Trigger(f"{quantity} >= {limit}" if asked == "at least" else f"0 < {quantity} < {limit}")
        number = _modulus(choices)
        if asked == "tail":
            return Trigger(f"{quantity} > {number} and {quantity} % {number} != 0", name, number)
        remainder = choices.pick((0, 0, 0, choices.integer(0, number - 1)))
        return Trigger(f"{quantity} > 0 and {quantity} % {number} == {remainder}")


def _modulus(choices: Choices) -> int:
    """A modulus: any, or a multiple of eight, as tiles are."""
    low, high = _MODULI
    return choices.integer(low, high) if choices.chance(1, 2) else 8 * choices.integer(1, high // 8)


ELEMENT_KINDS = ("element zeroed", "element doubled", "element negated", STALE, ULPS)
CHANGES: Mapping[str, Site] = MappingProxyType(
    {
        **dict.fromkeys(ELEMENT_KINDS, Site.OUTPUT),
        ULPS: Site.STORE,
        "rows swapped": Site.OUTPUT,
        "columns swapped": Site.OUTPUT,
        "last term dropped": Site.OPERATION,
        "last term twice": Site.OPERATION,
        "rounded": Site.INPUT,
        UNCHECKED: Site.STATUS,
        REFUSED: Site.STATUS,
    }
)
"""The kinds that are drawn, each with its site; "rounded" is one of `ROUNDED`."""


class CorrectVariant(msgspec.Struct, frozen=True, kw_only=True):
    """A correct implementation that computes in another order, in every call or where a trigger holds."""

    id: str
    operator: str
    variant: Variant | None = None
    """How it computes; None: the reference as it is."""
    trigger: str = ""

    def text(self) -> str:
        """The decoy in words."""
        way = self.variant
        if way is None:
            return "the correctly rounded result"
        ways = {"products fused": way.fused, "reciprocals": way.reciprocal, "subnormals flushed": way.flushes}
        words = [f"sums {way.order}", *(word for word, is_so in ways.items() if is_so)]
        words += [f"functions {way.tilt:+g} of their stated error"] if way.tilt else []
        return ", ".join(words) + (f", where {self.trigger}" if self.trigger else "")


def draw_mutants(spec: Spec, target: Target, *, seed: str, count: int) -> Iterator[Mutant]:
    """Mutants number 0 to `count` - 1 of an operator; any number is the same, however many there are."""
    drawer = TriggerDrawer(spec, target)
    changes = list(CHANGES)
    checks = [item.id for item in spec.constraints_for(target.product) if item.strength == Strength.LISTED]
    rows = Sampler(spec, target).dtype_rows
    floats = [name for name in spec.inputs if any(row[name] in INEXACT for row in rows)]
    for number in range(count):
        choices = _choices(seed, spec, "mutants", number)
        change = changes[number % len(changes)]
        if change == UNCHECKED and not checks:
            change = ELEMENT_KINDS[0]
        trigger = drawer.draw(choices, least=int(change == REFUSED), tail=change in ELEMENT_KINDS)
        # A check is skipped in few calls as it is: mostly in all of them.
        if change == UNCHECKED and choices.chance(3, 4):
            trigger = Trigger()
        of = trigger.output or choices.pick(spec.outputs)
        place = choices.pick((0, PLACES - 1, choices.integer(0, PLACES - 1)))
        kind, site = change, CHANGES[change]
        if site is Site.OPERATION:
            of = SUMS
        elif site is Site.INPUT:
            of, kind = choices.pick(("", *floats)), list(ROUNDED)[number // len(changes) % len(ROUNDED)]
        elif site is Site.STATUS:
            of = choices.pick(checks) if change == UNCHECKED else ""
        yield Mutant(
            id=f"{spec.stem}.{number}",
            operator=spec.operator,
            kind=kind,
            site=site,
            of=of,
            place=place,
            trigger=trigger.text,
            block=trigger.block,
        )


def draw_decoys(spec: Spec, target: Target, *, seed: str, orders: Sequence[str] = ORDERS) -> Iterator[CorrectVariant]:
    """The decoys of an operator: the reference as it is, and one for each order of summation."""
    yield CorrectVariant(id=f"{spec.stem}.decoy", operator=spec.operator)
    drawer = TriggerDrawer(spec, target)
    for number, order in enumerate(orders):
        choices = _choices(seed, spec, "decoys", number)
        yield CorrectVariant(
            id=f"{spec.stem}.decoy-{order}",
            operator=spec.operator,
            variant=Variant(
                order=order,
                fused=choices.chance(1, 2),
                reciprocal=choices.chance(1, 2),
                flushes=choices.chance(1, 4),
                tilt=choices.pick((0.0, 1.0, -1.0, 2.0)),
                key=choices.integer(0, 2**31),
            ),
            trigger=drawer.draw(choices).text if choices.chance(1, 2) else "",
        )


def _choices(seed: str, spec: Spec, purpose: str, number: int) -> Choices:
    key = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big") >> 1
    return StreamChoices(key, f"{purpose}/{spec.operator}", number)
