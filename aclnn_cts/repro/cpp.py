"""A program in C++: each unlike call as functions named for its steps, and a main that takes the steps in turn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from aclnn_cts.checks.life_cycle import ALLOWED_GROWTH
from aclnn_cts.repro.cpp_call import braces, data, double, functions, string, wrapped
from aclnn_cts.repro.facts import Program
from aclnn_cts.repro.relations import Side, Slot
from aclnn_cts.repro.steps import Step

_OF_HEADERS = re.compile(r'#pragma once|#include "(prelude|device|aclnn/acl_meta)\.h"')


def cpp_program(program: Program) -> str:
    """The program's text. Its first lines say what it shows and how it is built."""
    headers = dict.fromkeys(facts.header for facts in program.calls)
    lines = [*_opening(program), _template("prelude"), *(f'#include "{header}"' for header in headers), ""]
    if program.needs_runtime:
        lines.append(_template("device"))
    if any(step.verb == "refused" for step in program.steps):
        lines.append(_template("many_times"))
    for place, facts in enumerate(program.calls):
        verbs = {step.verb for step in program.steps if step.call == place}
        lines += [f"namespace {_space(place)} {{", "", *data(facts), *functions(facts, verbs), "}", ""]
    if program.relations:
        lines += [_template("relations"), *_relations(program)]
    lines += _main(program)
    return "\n".join(lines) + "\n"


@cache
def _template(name: str) -> str:
    """A header of `templates`, without what makes it one: the program is a single file."""
    text = (Path(__file__).parent / "templates" / f"{name}.h").read_text(encoding="utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if not _OF_HEADERS.match(line)).lstrip("\n")


def _opening(program: Program) -> list[str]:
    first = program.calls[0]
    runtime = "-lascendcl " if program.needs_runtime else ""
    return [
        f"// {first.case.operator}: {_one_line(first.sentence)}",
        f"// Case {first.case_id}, {first.case.product}.",
        *(f"// {_one_line(line)}" for line in program.about),
        "// Build, with the toolkit's environment set:",
        "//   A=$ASCEND_HOME_PATH",
        f"//   g++ -std=c++17 repro.cpp -I$A/include -L$A/lib64 {runtime}-lnnopbase -lopapi -o repro",
        "// Where a release has split libopapi.so, name its parts instead: -lopapi_nn -lopapi_cv -lopapi_math.",
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("\\", "/")


def _space(place: int) -> str:
    return f"call_{place + 1}"


def _relations(program: Program) -> Iterator[str]:
    slots = {slot: place for place, slot in enumerate(program.kept)}
    yield "const std::vector<Relation> kRelations = {"
    for relation in program.relations:
        yield from (
            f"    {{{string(relation.output)}, {string(relation.said)}, {string(relation.place)},",
            f"     {braces(relation.shape)},",
            "     {",
            *(
                f"         {{{run.rows}, {_side(run.left, slots)}, {_side(run.right, slots)}}},"
                for run in relation.runs
            ),
            "     },",
            f"     {{{wrapped([double(value) for value in relation.bounds.tolist()])}}}}},",
        )
    yield from ("};", "")


def _side(side: Side, slots: dict[Slot, int]) -> str:
    terms = [f"{{{slots[term.slot]}, {term.first}, {term.step}, {double(term.factor)}}}" for term in side.terms]
    return f"{{{double(side.constant)}, {{{', '.join(terms)}}}}}"


def _main(program: Program) -> Iterator[str]:
    yield "int main() {"
    if program.needs_runtime:
        yield from ("  CHECK_RUNTIME(aclInit(nullptr));", "  CHECK_RUNTIME(aclrtSetDevice(0));")
    for number in range(program.streams):
        yield f"  aclrtStream stream_{number} = nullptr;"
        yield f"  CHECK_RUNTIME(aclrtCreateStream(&stream_{number}));"
    for step in program.steps:
        match step.verb:
            case "loop":
                yield f"  for (int time = 0; time < {step.times}; ++time) {{"
            case "end":
                yield "  }"
            case _:
                yield f"  TAKE({_taken(step, several=program.number > 1)});"
    if program.relations:
        yield f"  Relate(kRelations, {len(program.kept)});"
    if program.beyond:
        yield f'  if (!fault) std::printf("%s\\n", {string(program.beyond)});'
        yield '  else std::printf("FAULT\\n");'
    else:
        yield '  std::printf(fault ? "FAULT\\n" : "conforms\\n");'
    yield from ("  return fault ? 1 : 0;", "}")


_CALLED = {
    "prepare": "Prepare()",
    "phase_one": "PhaseOne({who})",
    "repeatable": "MakeRepeatable()",
    "phase_two": "PhaseTwo({who}, {stream})",
    "judge": "Judge({who})",
    "refill": "Refill()",
    "destroy": "DestroyExecutor()",
    "release": "Release()",
}
_WAYS = {"guarded": "Way::kGuarded", "exact": "Way::kExact", "larger": "Way::kLarger"}


def _taken(step: Step, *, several: bool) -> str:
    """A step as the call of a function."""
    space, stream = _space(step.call), f"stream_{step.stream}"
    match step.verb:
        case "wait":
            return f"Wait({stream})"
        case "workspace":
            return f"{space}::AllocateWorkspace({_WAYS[step.way]})"
        case "refused":
            called = ", ".join(f"{space}::{name}" for name in ("Prepare", "PhaseOne", "Release"))
            return f"ManyTimes({step.times}, {ALLOWED_GROWTH}, {called}, &{space}::status, {space}::Judge)"
    who = "nullptr" if step.number == 0 else f'"call {step.number}: "' if several else '""'
    return f"{space}::{_CALLED[step.verb].format(who=who, stream=stream)}"
