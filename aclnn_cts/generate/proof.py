"""Lint of spec files: what reading them finds, and in those that read well what only drawing from them can find.

A spec is put to four questions for each product, each over the drawings that generation would really make, and over
drawings that keep to the ends of every range:

1. Can each name be drawn, and a case be made of the names?
2. Does every case so made hold every constraint?
3. Is every dimension of every tensor, and every item of every array, guarded: does some constraint notice one more?
4. Can every constraint be broken alone, or with its group?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aclnn_cts.core.target import Target
from aclnn_cts.generate.lint_checks import Doubt
from aclnn_cts.generate.proof_draws import drawn_cases, empty_tables, undrawable_names
from aclnn_cts.generate.proof_guards import broken_constraints, unbreakable_constraints, unguarded_sizes
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import lint_files
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.yaml_file import YamlFile

DRAWINGS = 240
"""Drawings of a product; every second keeps to the ends of the ranges."""


def prove_spec(spec: Spec, file: YamlFile, *, drawings: int = DRAWINGS, seed: int = 0) -> list[str]:
    """The doubts about a spec as messages that open with `file:line`, in the order of the file."""
    products: dict[Doubt, list[str]] = {}
    asked: dict[str, list[Doubt]] = {}
    reads_target = "target." in repr(file.content)
    for product in spec.products:
        alike = product if reads_target else _stated(spec, product)
        if alike not in asked:
            asked[alike] = doubts(spec, product, drawings=drawings, seed=seed)
        for doubt in asked[alike]:
            products.setdefault(doubt, []).append(product)
    found = []
    for doubt, named in products.items():
        path = _path(file, doubt)
        where = "" if len(named) == len(spec.products) else f" on {' and '.join(named)}"
        found.append((file.line(path), f"{file.at(path)}: {doubt.what}{doubt.seen}{where}; {doubt.advice}"))
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


def doubts(spec: Spec, product: str, *, drawings: int = DRAWINGS, seed: int = 0) -> list[Doubt]:
    """The doubts about a spec on one product. What follows from the first kind that is found is not asked for."""
    target = Target(product=product)
    if found := empty_tables(spec, product) or undrawable_names(spec, target, drawings, seed):
        return found
    sampler = Sampler(spec, target)
    cases, found = drawn_cases(sampler, drawings, seed)
    if found or (found := broken_constraints(spec, cases)):
        return found
    return [*unguarded_sizes(sampler, cases), *unbreakable_constraints(sampler, seed)]


def _path(file: YamlFile, doubt: Doubt) -> tuple[str | int, ...]:
    """Where the entry stands in the file; its section where it stands in another file (the interface's constraints)."""
    entries = file.content.get(doubt.section) if isinstance(file.content, dict) else None
    if isinstance(entries, list):
        for number, entry in enumerate(entries):
            if doubt.name in (entry.get("id"), entry.get("name"), entry.get("run")):
                return doubt.section, number
    return (doubt.section, doubt.name) if isinstance(entries, dict) else (doubt.section,)


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
    proved = (text for item in linted if not item.open for text in prove_spec(item.spec, item.file))
    return LintReport(
        stems=tuple(f"{item.spec.stem}{item.spec.edition and f' ({item.spec.edition})'}" for item in linted),
        mistakes=(*messages, *proved),
        open=tuple(place for item in linted for place in item.open),
    )
