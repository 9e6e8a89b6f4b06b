"""Lint of spec files: what reading finds, and what drawing finds of rules, sizes and guards.

A spec is put to four questions for each product, each over the drawings that generation would really make, and over
drawings that keep to the ends of every range:

1. Can each name be drawn, and a case be made of the names?
2. Does every case so made hold every constraint?
3. Is every dimension of every tensor, and every item of every array, guarded: does some constraint notice one more?
   Another shape of as many elements, and a dtype that valid calls never have?
4. Can every constraint be broken alone, or with its group?
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aclnn_cts.core.case import Case, Tensor, TensorList, owner, with_arguments
from aclnn_cts.core.printable import quote
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.configuration import Drawing
from aclnn_cts.generate.negative import invalid_cases, tried_changes
from aclnn_cts.generate.proof_draws import (
    FAILURES,
    Doubt,
    DoubtTally,
    drawn_cases,
    empty_tables,
    names_text,
    undrawable_names,
    unknown_recipes,
)
from aclnn_cts.generate.proof_guards import unguarded_dtypes, unguarded_shapes
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import evaluate, is_broken
from aclnn_cts.speclang.evaluator import Evaluator
from aclnn_cts.speclang.kinds import CaseChange
from aclnn_cts.speclang.kinds_data import StructureRule
from aclnn_cts.speclang.load import lint_files
from aclnn_cts.speclang.model import Constraint, Draw, Spec
from aclnn_cts.speclang.shape import INDEX
from aclnn_cts.speclang.silence import unfounded_promises
from aclnn_cts.speclang.spec_problems import SpecProblems

DRAWINGS = 240
"""Drawings of a product; every second keeps to the ends of the ranges."""


def prove_spec(spec: Spec, problems: SpecProblems, *, drawings: int = DRAWINGS, seed: int = 0) -> list[str]:
    """The doubts about a spec as messages that open with `file:line`, in the order of the file."""
    products: dict[Doubt, list[str]] = {}
    asked: dict[str, list[Doubt]] = {}
    file = problems.file
    reads_product = "target.product" in repr(file.content)
    for product in spec.products:
        alike = product if reads_product else _stated(spec, product)
        if alike not in asked:
            asked[alike] = find_doubts(spec, product, drawings=drawings, seed=seed)
        for doubt in asked[alike]:
            products.setdefault(doubt, []).append(product)
    found = []
    for doubt, named in products.items():
        path = problems.place(doubt.section, doubt.name)
        where = "" if len(named) == len(spec.products) else f" on {' and '.join(named)}"
        found.append((file.line(path), f"{file.location_of(path)}: {doubt.what}{doubt.seen}{where}; {doubt.advice}"))
    return [text for _, text in sorted(found)]


def _stated(spec: Spec, product: str) -> str:
    """Everything that the answers depend on: products of which a spec says the same are asked about once."""
    rules = [
        (item.id, item.rule.describe(product).en, item.when_text, item.strength, item.group, item.statuses)
        for item in spec.constraints_for(product)
    ]
    tensors = [(item.name, item.dtypes.get(product), item.formats.get(product)) for item in spec.parameters]
    rows = None if spec.rows is None else spec.rows.get(product)
    return repr((rules, tensors, rows, None if spec.modes is None else spec.modes.operand.get(product)))


def find_doubts(spec: Spec, product: str, *, drawings: int = DRAWINGS, seed: int = 0) -> list[Doubt]:
    """The doubts about a spec on one product. What follows from the first kind that is found is not asked for."""
    target = Target(product=product)
    if found := unknown_recipes(spec) or empty_tables(spec, product) or undrawable_names(spec, target, drawings, seed):
        return found
    sampler = Sampler(spec, target)
    cases, found = drawn_cases(sampler, drawings, seed)
    if found or (found := broken_constraints(spec, cases)):
        return found
    guards = (unguarded_sizes(sampler, cases) or unguarded_shapes(sampler, cases), unguarded_dtypes(sampler, cases))
    return [*itertools.chain(*guards), *unbreakable_constraints(sampler, seed)]


@dataclass(frozen=True, slots=True)
class LintReport:
    """What lint has to say of some spec files."""

    stems: tuple[str, ...]
    """The files that read well."""
    mistakes: tuple[str, ...]
    open: tuple[str, ...]
    """Places of drafts that a person has to settle."""


def lint_specs(files: Sequence[Path] = (), *, edition: str = "") -> LintReport:
    """Lint these files, in this edition where one is named; all of the package where no file is.

    Nothing is drawn from a draft with open places.
    """
    linted, messages = lint_files(files, edition=edition)
    settled = [item for item in linted if not item.spec.open]
    unfounded = (text for item in settled for text in unfounded_promises(item.spec, item.problems))
    proved = (text for item in settled for text in prove_spec(item.spec, item.problems))
    return LintReport(
        stems=tuple(f"{item.spec.stem}{item.spec.edition and f' ({item.spec.edition})'}" for item in linted),
        mistakes=(*messages, *unfounded, *proved),
        open=tuple(place for item in linted for place in item.problems.open.values()),
    )


_DRAWINGS = 24
"""Valid calls in which a constraint that is never broken is looked for."""


def broken_constraints(spec: Spec, cases: list[tuple[Drawing, Case]]) -> list[Doubt]:
    """Constraints that valid drawings break."""
    tally = DoubtTally()
    for number, (drawing, case) in enumerate(cases):
        for constraint in evaluate(spec, case).broken:
            what = f"constraint {quote(constraint.id)} is broken"
            tally.add(number, "constraints", constraint.id, what, names_text(drawing))
    return tally.doubts(len(cases), "draws and parameters have to meet every constraint by construction")


_MOST_PICKS = 128
"""Combinations of choices that a larger size is looked for in."""
_MOST = 4_000
"""Sizes of an operator and product that are made larger; only one with lists of tensors has so many."""


def unguarded_sizes(sampler: Sampler, cases: list[tuple[Drawing, Case]]) -> list[Doubt]:
    """Dimensions and items that can be one larger, against the draws, without any constraint being broken."""
    tally = DoubtTally()
    looked = 0
    for number, (drawing, case) in enumerate(cases):
        if looked > _MOST:
            break
        redrawn = _Redrawn(sampler, drawing)
        for name, axis, enlarged in _enlarged(sampler, drawing, case, number):
            looked += 1
            of = owner(name)
            place = f"{name}[{axis}]" if not _spliced(sampler.spec, of) else f"{of}, any dimension"
            for changed, company in zip(enlarged, ("", " together with the shapes that follow it"), strict=False):
                if is_broken(sampler.spec, changed) or _free(redrawn, of, changed):
                    continue
                example = f"{list(_sizes(case.tensor(name) or case.arguments[name]))} ({names_text(drawing)})"
                tally.add(number, "parameters", of, f"{place}: one more{company} breaks no constraint", example)
                break
    return tally.doubts(len(cases), "encode what it has to equal")


def _enlarged(sampler: Sampler, drawing: Drawing, case: Case, number: int) -> Iterator[tuple[str, int, Sequence[Case]]]:
    """The case with one size or item one larger, alone and, where anything is shaped after it, with that.

    Of a list it is one tensor, another in each case. Nothing of an empty tensor, whose sizes need not show, and no item
    of an array whose structure a rule holds: where it agrees, the call is another valid one.
    """
    followed = _followed(sampler.spec)
    held = {item.rule.of for item in sampler.spec.constraints if isinstance(item.rule, StructureRule)}
    for parameter, argument in case.arguments.items():
        if parameter in held and isinstance(argument, tuple):
            continue
        name, value = parameter, argument
        if isinstance(argument, TensorList) and len(argument):
            place = number % len(argument)
            name, value = f"{parameter}[{place}]", argument[place]
        sizes = _sizes(value)
        if 0 in sizes:
            continue
        for axis, size in enumerate(sizes):
            changed: Tensor | tuple[int, ...] = _larger(sizes, axis)
            if isinstance(value, Tensor):
                changed = Tensor(shape=_larger(sizes, axis), dtype=value.dtype, format=value.format, data=value.data)
            enlarged = [with_arguments(case, {name: changed})]
            if parameter in followed:
                enlarged.append(sampler.case(drawing, change=CaseChange(text="", axes={(name, axis): size + 1})))
            yield name, axis, enlarged


def _followed(spec: Spec) -> frozenset[str]:
    """The parameters that the shape of another one reads; a list may read any for its length."""
    names = {item.name for item in spec.parameters}
    if any(item.length is not None for item in spec.parameters):
        return frozenset(names)
    shapes = ((item.name, item.shape.names()) for item in spec.parameters if item.shape is not None)
    return frozenset(name for own, read in shapes for name in read & names if name != own)


def _larger(sizes: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*sizes[:axis], sizes[axis] + 1, *sizes[axis + 1 :])


@dataclass(slots=True)
class _Redrawn:
    """The sizes of a case with other values of some draws, each made once."""

    sampler: Sampler
    drawing: Drawing
    known: dict[tuple[tuple[str, Any], ...], list[tuple[int, ...]] | None] = field(default_factory=dict)

    def sizes(self, assign: Mapping[str, Any]) -> list[tuple[int, ...]] | None:
        """The sizes of all arguments; None where they have none."""
        key = tuple(assign.items())
        if key not in self.known:
            try:
                self.known[key] = _all_sizes(self.sampler.case(self.drawing, change=CaseChange(text="", assign=assign)))
            except FAILURES:
                self.known[key] = None
        return self.known[key]


def _free(redrawn: _Redrawn, name: str, changed: Case) -> bool:
    """Whether the draws themselves could have given the changed case: the size then depends on no other.

    A size that follows from other names is free where one of those gives it within its bounds: what a floor division
    leaves over. Any size is where choices that stand in no argument give it, picked otherwise.
    """
    sampler, drawing = redrawn.sampler, redrawn.drawing
    wanted = _all_sizes(changed)
    shape = sampler.spec.parameter(name).shape
    derived = {draw.name for draw in sampler.spec.draws if draw.kind not in ("integer", "run", "broadcast")}
    if shape is not None:
        with contextlib.suppress(*FAILURES):
            shape = shape.chosen({**changed.arguments, **drawing.names, INDEX: 0}, sampler.target)
    for item in shape.items if shape is not None else ():
        if item.node.value in derived:
            if _left_over(redrawn, wanted):
                return True
            continue
        drawn = drawing.names.get(str(item.node.value)) if item.node.kind == "name" else None
        larger: list[Any] = [drawn + 1] if isinstance(drawn, int) else []
        if isinstance(drawn, tuple):
            larger = [_larger(drawn, place) for place in range(len(drawn))]
        if any(redrawn.sizes({str(item.node.value): value}) == wanted for value in larger):
            return True
    return _picked_otherwise(redrawn, changed, wanted)


def _picked_otherwise(redrawn: _Redrawn, changed: Case, wanted: list[tuple[int, ...]]) -> bool:
    """Whether other picks of hidden choices give these sizes, by themselves or with one draw one larger."""
    spec, drawing, target = redrawn.sampler.spec, redrawn.drawing, redrawn.sampler.target
    flags = [item.shape for item in spec.parameters if item.kind == "bool_array" and item.shape is not None]
    seen = changed.arguments.keys() | {name for shape in flags for name in shape.names()}
    hidden = [draw for draw in spec.draws if draw.kind == "choice" and draw.name not in seen]
    larger: list[dict[str, Any]] = [
        {draw.name: drawing.names[draw.name] + 1} for draw in spec.draws if draw.kind == "integer"
    ]
    runs = {draw.name: drawing.names[draw.name] for draw in spec.draws if draw.kind in ("run", "broadcast")}
    most = max(map(len, runs.values()), default=0)
    # What broadcasts may have ones in front.
    for name, run in runs.items():
        whole = (*(1,) * (most - len(run)), *run)
        larger += [{name: _larger(whole, place)} for place in range(most)]
    for repicked in itertools.islice(_repicked(hidden), _MOST_PICKS if hidden else 0):
        with contextlib.suppress(*FAILURES):
            made = {name: make(drawing.names, target) for name, make in repicked.items()}
            picked = {draw.name: drawing.names[draw.name] for draw in hidden} | made
            if any(redrawn.sizes({**picked, **one}) == wanted for one in ({}, *larger)):
                return True
    return False


def _repicked(draws: Sequence[Draw]) -> Iterator[Mapping[str, Evaluator]]:
    """Other picks of choices: of none of them, then of one, of two, and so on."""
    for count in range(len(draws) + 1):
        for some in itertools.combinations(draws, count):
            for picks in itertools.product(*(draw.choices for draw in some)):
                yield {draw.name: pick for draw, pick in zip(some, picks, strict=True)}


def _left_over(redrawn: _Redrawn, wanted: list[tuple[int, ...]]) -> bool:
    """Whether one integer draw, one larger or smaller and within its bounds, gives these sizes."""
    sampler, drawing = redrawn.sampler, redrawn.drawing
    for draw in sampler.spec.draws:
        value = drawing.names.get(draw.name)
        if draw.kind != "integer" or not isinstance(value, int):
            continue
        low, high = draw.bounds(drawing.names, sampler.target)
        for other in (value - 1, value + 1):
            if low <= other <= high and redrawn.sizes({draw.name: other}) == wanted:
                return True
    return False


def _all_sizes(case: Case) -> list[tuple[int, ...]]:
    arrays = [_sizes(value) for value in case.arguments.values() if isinstance(value, tuple)]
    return [*(tensor.shape for _, tensor in case.tensors()), *arrays]


def _spliced(spec: Spec, name: str) -> bool:
    shape = spec.parameter(name).shape
    return shape is not None and any(item.spliced for item in shape.items)


def _sizes(value: object) -> tuple[int, ...]:
    return value.shape if isinstance(value, Tensor) else value if isinstance(value, tuple) else ()


def unbreakable_constraints(sampler: Sampler, seed: int) -> list[Doubt]:
    """Constraints for which no case is proved to break them alone or with their group."""
    return [
        Doubt("constraints", constraint.id, *_why_unbreakable(sampler, constraint, seed))
        for constraint in sampler.spec.constraints_for(sampler.target.product)
        if next(invalid_cases(sampler, constraint, seed=seed, count=1), None) is None
    ]


def _why_unbreakable(sampler: Sampler, constraint: Constraint, seed: int) -> tuple[str, str]:
    company: Counter[tuple[str, ...]] = Counter()
    changes = 0
    valid = [sampler.case(sampler.draw(choices)) for choices in stream_block(seed, constraint.id, 0, _DRAWINGS)]
    if all(constraint in evaluate(sampler.spec, case).not_applicable for case in valid):
        why = "it reads a place that is not there or a null pointer, or divides by 0"
        return f"constraint {constraint.id!r}: has no value in {_DRAWINGS} valid calls: {why}", "correct what it reads"
    for _, broken in tried_changes(sampler, constraint, seed=seed):
        changes += 1
        if broken is not None and constraint in broken:
            outside = [item for item in broken if item.group is None or item.group != constraint.group]
            company[tuple(item.id for item in outside if item is not constraint)] += 1
    subject = f"constraint {constraint.id!r}"
    if not changes:
        return f"{subject}: its kind knows no change that breaks it", "write `breaks`"
    if not company:
        return f"{subject}: held after every change that was tried", "write `breaks`"
    # The smallest company is the nearest to a proof, the most frequent of that size tells most.
    nearest = min(company, key=lambda ids: (len(ids), -company[ids]))
    return (
        f"{subject}: never broken without {', '.join(nearest)}",
        "name what it follows from in `requires`, put what cannot be parted into one `group`, or write `breaks`",
    )
