"""`aclnn-cts cases` and `aclnn-cts import-atk`: case files that every command reads."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from aclnn_cts.authoring.import_atk import AtkEntry
from aclnn_cts.authoring.import_atk import import_atk as entries_of
from aclnn_cts.cli.options import (
    IntegerWithin,
    checked_product,
    checked_target,
    command,
    edition_option,
    json_option,
    output_file,
    output_option,
    product_option,
    specs_option,
)
from aclnn_cts.cli.output import console, emit, join_words, note
from aclnn_cts.cli.render import Fields, RepeatedView, View, render
from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.generate.listing import KINDS, SEED_LIMIT, Kind, list_cases
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.case_files import write_case_file
from aclnn_cts.store.output_file import STANDARD_OUTPUT, begins_with

_GENERATED = begins_with(rb'\{"format":"aclnn-cts/case/[^\n]*"origin":\{"kind":"(valid|invalid|boundary)"')


@command(example="aclnn-cts cases softmax_backward --kind valid,invalid")
@click.argument("operator", metavar="OP")
@click.option(
    "--kind",
    "kinds",
    default=",".join(KINDS),
    show_default=True,
    metavar="KIND,...",
    help="Which kinds of case, in this order.",
)
@product_option
@click.option(
    "-n",
    "number",
    type=IntegerWithin(1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many of each kind.",
)
@click.option(
    "--seed",
    type=IntegerWithin(0, SEED_LIMIT - 1),
    default=0,
    show_default=True,
    metavar="S",
    help="The same seed gives the same bytes.",
)
@specs_option
@edition_option
@output_option(text="Where to write them, instead of standard output.")
def cases(
    *,
    operator: str,
    kinds: str,
    product: str | None,
    number: int,
    seed: int,
    folders: tuple[Path, ...],
    edition: str,
    out: Path | None,
) -> None:
    """Write generated cases of an operator, one JSON object a line, N of each kind.

    valid: hold every constraint. invalid: break one constraint each (or one group of inseparable ones), in turn.
    boundary: on every limit and one step to both sides, fewer than N where the document has fewer.
    """
    chosen = _kinds(kinds)
    output = output_file(out or STANDARD_OUTPUT, written_by_us=_GENERATED)
    specs = load_specs(folders, edition=edition)
    spec = specs.find(operator, where="OP")
    target = Target(product=checked_product(product, spec))
    sampler = Sampler(spec, target)
    written, unproved = Counter[Kind](), Counter[str]()

    def contents() -> Iterator[Case]:
        for kind in chosen:
            for case in list_cases(sampler, kind, seed=seed, count=number, unproved=unproved):
                written[kind] += 1
                yield case

    write_case_file(output, contents())
    numbers = join_words([f"{written[kind]} {kind}" for kind in chosen])
    note(f"{spec.operator} on {target.product}: {numbers}{f' in {output}' if out is not None else ''}")
    which = join_words([f"{identifier} ({times})" for identifier, times in unproved.most_common()])
    note(f"{unproved.total()} could not be proved{f': {which}' if unproved else ''}")


def _kinds(text: str) -> list[Kind]:
    """The kinds named, each once, in their order."""
    chosen: list[Kind] = []
    for word in text.split(","):
        kind = next((item for item in KINDS if item == word.strip()), None)
        if kind is None:
            known = ", ".join(KINDS)
            advice = did_you_mean(word, KINDS)
            raise UsageError(f"--kind: {word.strip()!r}; expected any of {known}, with commas between them{advice}")
        if kind not in chosen:
            chosen.append(kind)
    return chosen


_IMPORTED = begins_with(rb'\Z|\{"format":"aclnn-cts/case/[^\n]*"origin":\{"kind":"atk"')
"""An empty file too: of some files no case can be carried over."""


@command("import-atk", example="aclnn-cts import-atk cases.json -o cases")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@output_option(text="The case file to write (.jsonl).", required=True)
@product_option
@json_option
@specs_option
def import_atk(
    *, files: tuple[Path, ...], out: Path, product: str | None, as_json: bool, folders: tuple[Path, ...]
) -> int:
    """Turn ATK case files into a case file for `run --cases`, and say what cannot be carried over and why.

    Names are mapped to the C prototype, value ranges to recipes; what the executors put in place of an input is put
    there, and outputs follow from the spec.
    """
    output = output_file(out, written_by_us=_IMPORTED)
    if not output.is_stream and out.suffix != ".jsonl":
        raise UsageError(f"-o {out}: expected a name that ends in .jsonl, since it holds one case a line")
    if output.is_standard_output and as_json:
        raise UsageError(f"-o {out}: standard output holds what --json prints; name a file, or leave --json out")
    specs = load_specs(folders)
    checked_target(product)
    left: list[AtkEntry] = []
    totals = {str(file): Counter[bool]() for file in files}

    def contents() -> Iterator[Trial | Case]:
        for file in files:
            for entry in entries_of(file, specs, product_of=lambda spec: checked_product(product, spec)):
                totals[entry.file][entry.content is not None] += 1
                if entry.content is not None:
                    yield entry.content
                else:
                    left.append(entry)

    written = write_case_file(output, contents())
    if as_json:
        for document in _documents(left, totals):
            emit(document)
        return 0
    words = {"left": _reasons(left), "files": _totals(totals), "written": written, "out": str(output)}
    render(console(errors=output.is_standard_output), _IMPORT, words)
    return 0


_IMPORT: View = (
    RepeatedView("left", ("not carried over: {file}, id {ids}: {reason}",)),
    RepeatedView("files", ("{file}: {cases:case}, {imported} imported, {not_carried_over} not carried over",)),
    "{out}: {written:case}; aclnn-cts run --cases {out} --adapter A judges them",
)


def _documents(left: Iterable[AtkEntry], totals: Mapping[str, Counter[bool]]) -> Iterator[Fields]:
    yield from ({"file": entry.file, "id": entry.id, "reason": entry.reason} for entry in left)
    yield from _totals(totals)


def _totals(totals: Mapping[str, Counter[bool]]) -> list[Fields]:
    return [
        {"file": file, "cases": number.total(), "imported": number[True], "not_carried_over": number[False]}
        for file, number in totals.items()
    ]


def _reasons(left: Iterable[AtkEntry]) -> list[Fields]:
    """Every case that was left, those of one reason together."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for entry in left:
        reasons.setdefault((entry.file, entry.reason), []).append(entry.id)
    return [{"file": file, "reason": reason, "ids": ids} for (file, reason), ids in reasons.items()]


_CALLS = begins_with(rb'\Z|\{"format":"aclnn-cts/case/[^\n]*"origin":\{"kind":"valid","source":"call ')


_MOST_LINES = 10
"""Lines of a file of calls that messages name."""


@command("import-calls", example="aclnn-cts import-calls calls.jsonl -o cases.jsonl")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@output_option(text="The case file to write (.jsonl).", required=True)
@click.option(
    "--seed", type=IntegerWithin(0, SEED_LIMIT - 1), default=0, show_default=True, metavar="S", help="Draws the data."
)
@product_option
def import_calls(*, file: Path, out: Path, seed: int, product: str | None) -> int:
    """Turn calls that a program has dumped, one JSON object a line, into a case file for `run --cases`.

    A line has operator and arguments, or function, args and kwargs of ATen. Tensors have shape and dtype; their data is
    drawn. A line that fits no operator is left out; it is named, as one that breaks a rule of its document. The exit
    code is 3 where a line was left out.
    """
    output = output_file(out, written_by_us=_CALLS)
    checked_target(product)
    # By its name: `cases` and `import-atk` need none of it.
    entries = importlib.import_module("aclnn_cts.training.dumped").read_dumped(file, seed=seed, product=product)
    left: list[str] = []
    broken: list[str] = []

    def contents() -> Iterator[Case]:
        for entry in entries:
            if entry.reason:
                (left if entry.case is None else broken).append(f"line {entry.line}: {entry.reason}")
            if entry.case is not None:
                yield entry.case

    written = write_case_file(output, contents())
    for lines, what in ((left, "not carried over"), (broken, "carried over as a call that is not valid")):
        for line in lines[:_MOST_LINES]:
            note(f"{what}: {line}")
        if len(lines) > _MOST_LINES:
            note(f"{what}: {len(lines) - _MOST_LINES} more lines")
    note(f"{output}: {written} of {written + len(left)} calls; aclnn-cts run --cases {output} --adapter A judges them")
    return 3 if left else 0
