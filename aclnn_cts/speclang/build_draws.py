"""The draws of a spec file: how the free names of a valid case are found, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.model import Draw, Evaluator
from aclnn_cts.speclang.operand_kinds import RUN
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import DrawModel, OperatorModel
from aclnn_cts.speclang.yaml_file import YamlPath

UNBOUNDED = 2**62


def build_draws(model: OperatorModel, problems: Problems) -> tuple[Draw, ...]:
    """Compile every draw over the names that stand before it."""
    draws: list[Draw] = []
    for number, entry in enumerate(model.draws):
        path = ("draws", number)
        earlier = draw_kinds(draws)
        name = entry.name or entry.run
        if name is None or (entry.name is not None and entry.run is not None):
            problems.add(path, "a draw has either `name` or `run`; give one")
            continue
        problems.add_if(name in earlier, path, f"draw {shown(name)} stands twice; keep one")
        draw = (
            _run(name, entry, path, problems, earlier)
            if entry.run is not None
            else _single(name, entry, path, problems, earlier)
        )
        if draw is not None:
            draws.append(draw)
    return tuple(draws)


def draw_kinds(draws: Sequence[Draw]) -> dict[str, str]:
    """What the names of draws stand for: `run`, or `number`."""
    return {draw.name: RUN if draw.is_run else "number" for draw in draws}


def _bounds(
    bounds: list[Any], path: YamlPath, problems: Problems, names: Mapping[str, str]
) -> tuple[Evaluator, Evaluator]:
    low, high = bounds
    for bound in bounds:
        problems.add_if(
            isinstance(bound, float), path, f"{bound}; expected an integer, or an expression that gives one"
        )
    return (
        problems.expression(low if low is not None else -UNBOUNDED, path, names),
        problems.expression(high if high is not None else UNBOUNDED, path, names),
    )


def _run(name: str, entry: DrawModel, path: YamlPath, problems: Problems, names: Mapping[str, str]) -> Draw | None:
    if entry.length is None:
        problems.add(path, f"run {name}: length missing; give [least, most]")
        return None
    low, high = _bounds(entry.length, (*path, "length"), problems, names)
    given = [key for key in ("numel", "total", "broadcasts_with") if getattr(entry, key) is not None]
    problems.add_if(len(given) > 1, path, f"run {name}: expected at most one of {', '.join(given)}")
    if entry.numel is not None:
        return Draw(
            name=name,
            kind="factorisation",
            low=low,
            high=high,
            value=problems.expression(entry.numel, (*path, "numel"), names),
        )
    if entry.total is not None:
        sizes = _bounds(entry.sizes or [0, None], (*path, "sizes"), problems, names)
        whole = problems.expression(entry.total, (*path, "total"), names)
        problems.add_if(
            entry.sizes is not None and entry.sizes[1] is not None,
            (*path, "sizes"),
            f"run {name}: sizes with a total have no upper bound; write [LEAST, null]",
        )
        return Draw(name=name, kind="partition", low=low, high=high, value=whole, sizes=sizes)
    sizes = _bounds(entry.sizes or [1, None], (*path, "sizes"), problems, names)
    if entry.broadcasts_with is not None:
        other = problems.expression(f"shape({entry.broadcasts_with})", (*path, "broadcasts_with"), names)
        return Draw(name=name, kind="broadcast", low=low, high=high, value=other, sizes=sizes)
    return Draw(name=name, kind="run", low=low, high=high, sizes=sizes)


def _single(name: str, entry: DrawModel, path: YamlPath, problems: Problems, names: Mapping[str, str]) -> Draw | None:
    given = [key for key in ("in_", "is_", "one_of") if getattr(entry, key) is not None]
    if len(given) != 1:
        problems.add(path, f"draw {name}: expected exactly one of in, is, one_of")
        return None
    if entry.in_ is not None:
        low, high = _bounds(entry.in_, (*path, "in"), problems, names)
        return Draw(name=name, kind="integer", low=low, high=high)
    if entry.is_ is not None:
        return Draw(name=name, kind="derived", value=problems.expression(entry.is_, (*path, "is"), names))
    choices = tuple(problems.expression(choice, (*path, "one_of"), names) for choice in entry.one_of or ())
    if not choices:
        problems.add(path, f"draw {name}: one_of is empty; list at least one value")
        return None
    return Draw(name=name, kind="choice", choices=choices)
