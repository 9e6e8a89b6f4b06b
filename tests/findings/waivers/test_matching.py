from __future__ import annotations

import json
import math
import pickle
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aclnn_cts.adapters.bindings import shipped_bindings
from aclnn_cts.core.case import CallOptions, Case
from aclnn_cts.core.case_json import case_id, case_to_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.trial import trial_to_json
from aclnn_cts.core.verdict import Deviation, Record, Result
from aclnn_cts.findings.waivers.file import (
    Waiver,
    read_waivers,
    shipped_waivers,
    waiver_texts,
    waivers_beside_shipped,
)
from aclnn_cts.findings.waivers.matching import Waivers
from tests.support.build_records import EMBEDDING, SOFTMAX, make_record

TODAY = date(2026, 6, 1)

WAIVER = f"""
subject: torch on a CPU
waivers:
  - id: torch-cpu.half
    scope:
      adapter: torch
      operator: {SOFTMAX}
      kind: [value, beyond-model]
    reason: accumulates in half precision
    owner: numerics@example.org
    link: https://example.org/1
    expiry: 2026-12-31
"""


def read(tmp_path: Path, text: str) -> tuple[Waiver, ...]:
    path = tmp_path / "w.yaml"
    path.write_text(text, encoding="utf-8")
    return read_waivers([path])


def test_a_waiver_is_read(tmp_path: Path) -> None:
    [waiver] = read(tmp_path, WAIVER)
    assert (waiver.id, waiver.owner, waiver.expiry) == ("torch-cpu.half", "numerics@example.org", date(2026, 12, 31))
    assert waiver.scope.adapter == ["torch"]
    assert waiver.scope.kind == [Fault.VALUE, Fault.MODEL]
    assert waiver.where == f"{tmp_path}/w.yaml:4"


def without(key: str) -> str:
    return "".join(line for line in WAIVER.splitlines(keepends=True) if line.strip().partition(":")[0] != key)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (without("reason"), 4, "waivers.0.reason: missing; add it"),
        (without("owner"), 4, "waivers.0.owner: missing; add it"),
        (without("expiry"), 4, "waivers.0.expiry: missing; add it"),
        (without("adapter"), 6, "waivers.0.scope.adapter: missing; add it"),
        (without("kind"), 6, "waivers.0.scope.kind: missing; add it"),
        (
            without("operator"),
            6,
            "speaks for everything that the adapter does; name an operator, a check",
        ),
        (without("subject"), 2, "subject: missing; add it"),
        (
            WAIVER.replace("accumulates in half precision", "' '"),
            9,
            "waivers.0.reason: ' '; expected a text in quotes",
        ),
        (WAIVER.replace("2026-12-31", "soon"), 12, "waivers.0.expiry: 'soon'; expected a day, as 2027-01-31"),
        (
            WAIVER.replace("2026-12-31", "2026-02-30"),
            12,
            "waivers.0.expiry: '2026-02-30'; expected a day, as 2027-01-31",
        ),
        (
            WAIVER.replace("    owner:", "    ownr: x\n    owner:"),
            10,
            "unknown key 'ownr'; expected any of id, scope, reason, owner",
        ),
        (WAIVER.replace("torch-cpu.half", "Half it"), 4, "waivers.0.id: 'Half it'; expected a text of the form"),
        (WAIVER.replace("[value,", "[valeu,"), 8, "unknown kind of fault 'valeu'"),
        (WAIVER.replace(SOFTMAX, "softmax_backward"), 7, "'softmax_backward'; expected a text of the form ^aclnn"),
        (WAIVER.replace("kind:", "got: NaN\n      kind:"), 8, "unknown number that is not finite 'NaN'"),
        (WAIVER.replace("kind:", "dtype: FLOAT32\n      kind:"), 8, "unknown dtype 'FLOAT32'"),
        (
            WAIVER.replace("kind:", "version: 2.13\n      kind:"),
            8,
            "waivers.0.scope.version: 2.13; expected a text in quotes",
        ),
        (WAIVER.replace("kind:", "version: new\n      kind:"), 8, "'new': no range of versions; expected one such as"),
        (WAIVER.replace("kind:", "when: dim(x\n      kind:"), 8, "'dim(x'"),
        (
            WAIVER.replace("    link:", "    cases: [none.json]\n    link:"),
            11,
            "none.json: cannot be read",
        ),
        (WAIVER + WAIVER.split("waivers:\n")[1], 13, "'torch-cpu.half' stands twice, first at"),
        (WAIVER.replace("owner: n", "owner: &n n"), 10, "anchor &n"),
        ("subject: x\nwaivers: []\n", 2, "waivers: []; expected a list of at least 1"),
        ("", 1, ""),
    ],
)
def test_mistakes_one_by_one(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    [found] = str(caught.value).splitlines()
    assert found.startswith(f"{tmp_path}/w.yaml:{line}: ")
    assert message in found


def test_all_mistakes_of_all_files_at_once(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(
        WAIVER.replace("    owner: numerics@example.org\n", "").replace("2026-12-31", "never"), encoding="utf-8"
    )
    second.write_text(WAIVER.replace("value,", "nothing,"), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_waivers([first, second])
    assert [line.partition(": ")[0] for line in str(caught.value).splitlines()] == [
        f"{first}:4",
        f"{first}:11",
        f"{second}:8",
    ]


def failure(number: int = 1, **changes: Any) -> Record:
    return make_record(number, **({"result": Result.FAILED, "kind": Fault.VALUE, "output": "out"} | changes))


def came_back(value: float | str) -> Record:
    """A failure whose worst element is this."""
    record = failure()
    worst = msgspec.structs.replace(record.verdict.deviations[0], got=value, beyond=1)
    return msgspec.structs.replace(record, verdict=msgspec.structs.replace(record.verdict, deviations=(worst,)))


def chosen(
    waivers: tuple[Waiver, ...],
    *,
    adapter: str = "torch",
    version: str | None = "2.13.0+cpu",
    product: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Waivers:
    return Waivers(
        waivers, adapter=adapter, version=version, today=TODAY, product=product, environment=environment or {}
    )


def test_a_failure_in_scope_gets_the_id(tmp_path: Path) -> None:
    waivers = chosen(read(tmp_path, WAIVER))
    assert waivers.apply(failure()).waiver == "torch-cpu.half"
    assert waivers.apply(failure(kind=Fault.MODEL)).waiver == "torch-cpu.half"
    for other in (
        failure(kind=Fault.CRASH),
        failure(operator=EMBEDDING),
        make_record(1),
        make_record(result=Result.ERROR),
    ):
        assert waivers.apply(other) is other


@pytest.mark.parametrize(
    ("line", "inside", "outside"),
    [
        ("check: values", failure(), failure(check="status")),
        ("constraint: dim.range", failure(constraint="dim.range"), failure(constraint="out.dtype")),
        ("constraint: dim.range", failure(clause="dim.range"), failure()),
        ("product: atlas-a2", failure(), failure(product="atlas-training")),
        ("dtype: [BF16, FLOAT16]", failure(dtype="BF16"), failure()),
        ("mode: USE_FP16", failure(mode="USE_FP16"), failure()),
        ("output: out", failure(), failure(output="other")),
        ("got: nan", came_back(math.nan), came_back(1.5)),
        ("got: [inf, -inf]", came_back(-math.inf), came_back("nan")),
        ("when: dim(gradOutput, 1) > 3", failure(5), failure(1)),
        ("when: dim(gradOutput, 7) > 3", None, failure(1)),
        ("when: dim(gradOutput, 1)", None, failure(1)),
        ("when: dtype(gradOutput) == BF16 and dim == 1", failure(dtype="BF16"), failure()),
        ('when: recipe(gradOutput) == "normal"', failure(), failure(recipe="large")),
        ('when: recipe(gradOutput) == "values"', failure(recipe=None), failure()),
        ('when: recipe(out) == "normal"', None, failure()),
    ],
)
def test_each_part_of_the_scope_narrows_it(tmp_path: Path, line: str, inside: Record | None, outside: Record) -> None:
    waivers = chosen(read(tmp_path, WAIVER.replace("kind:", f"{line}\n      kind:")))
    assert waivers.apply(outside).waiver == ""
    if inside is not None:
        assert waivers.apply(inside).waiver == "torch-cpu.half"


@pytest.mark.parametrize(
    ("adapter", "version", "applies"),
    [
        ("torch", "2.13.0", True),
        ("torch:device=npu", "2.13.0+cpu", True),
        ("torch", "2.13.1.dev1", True),
        ("torch", "2.14.0.dev1", False),
        ("torch", "2.14.0", False),
        ("torch", "2.12.9", False),
        ("torch", None, False),
        ("torch", "unreleased", False),
        ("torchlike", "2.13.0", False),
        ("cann", "2.13.0", False),
    ],
)
def test_adapter_and_version(tmp_path: Path, adapter: str, version: str | None, applies: bool) -> None:
    every = read(tmp_path, WAIVER.replace("kind:", "version: '>=2.13,<2.14'\n      kind:"))
    waivers = chosen(every, adapter=adapter, version=version)
    assert bool(waivers.apply(failure()).waiver) == applies


@pytest.mark.parametrize(
    ("word", "adapter", "applies"),
    [
        ("torch:device=cpu", "torch", True),
        ("torch:device=cpu", "torch:device=cpu", True),
        ("torch:device=cpu", "torch:threads=2", True),
        ("torch:device=cpu", "torch:device=cuda,threads=2", False),
        ("torch:device=cpu,outputs=direct", "torch", True),
        ("torch:device=cpu,outputs=direct", "torch:outputs=copy", False),
        ("torch:precision=high", "torch", False),
        ("own.module:make", "own.module:make,fast=true", True),
        ("own.module:make,fast=true", "own.module:make,fast=true", True),
        ("own.module:make,fast=true", "own.module:make", False),
        ("own.module:make", "own.module:other", False),
    ],
)
def test_options_in_the_scope_are_those_of_the_run_or_its_defaults(
    tmp_path: Path,
    word: str,
    adapter: str,
    applies: bool,
) -> None:
    every = read(tmp_path, WAIVER.replace("adapter: torch", f"adapter: '{word}'"))
    waivers = chosen(every, adapter=adapter, environment={"device": "cpu", "outputs": "direct"})
    assert bool(waivers.apply(failure()).waiver) == applies


def versioned(*ranges: str) -> str:
    """Waivers for these versions, each with an id of its own."""
    head, _, entry = WAIVER.partition("  - id")
    entries = (
        f"  - id{entry}".replace("half", f"half-{number}").replace("kind:", f"version: '{words}'\n      kind:")
        for number, words in enumerate(ranges)
    )
    return head + "".join(entries)


@pytest.mark.parametrize(
    ("ranges", "version", "line"),
    [
        (["<2.14,>=2.13"] * 2, "2.15.0+cpu", "2 waivers ignored: torch 2.15.0 is outside >=2.13,<2.14"),
        ([">=2.13,<2.14"], "2.15.0.dev1", "1 waiver ignored: torch 2.15.0.dev1 is outside >=2.13,<2.14"),
        (["==2.12.*", ">=2.14"], "2.15", "1 waiver ignored: torch 2.15 is outside ==2.12.*"),
        (
            [">=2.13,<2.14", "==2.12.*", ">=2.13,<2.14"],
            "2.15",
            "3 waivers ignored: torch 2.15 is outside >=2.13,<2.14 (2) and ==2.12.* (1)",
        ),
        ([">=2.13"], None, "1 waiver ignored: torch names no version, expected >=2.13"),
        ([">=2.13"], "new", "1 waiver ignored: torch has no PEP 440 version ('new'), expected >=2.13"),
        ([">=2.13"], "2.15", ""),
    ],
)
def test_waivers_for_other_versions_are_one_line(
    tmp_path: Path, ranges: list[str], version: str | None, line: str
) -> None:
    waivers = chosen(read(tmp_path, versioned(*ranges)), adapter="torch:device=cpu", version=version)
    assert waivers.ignored == line
    assert waivers.report().notices() == ((line,) if line else ())


@pytest.mark.parametrize(
    ("adapter", "product", "operators", "ignored"),
    [
        ("torch", None, None, True),
        ("torch", "atlas-a2", {SOFTMAX, EMBEDDING}, True),
        ("torch", "atlas-a2", {EMBEDDING}, False),
        ("torch", "atlas-training", {SOFTMAX}, False),
        ("cann", "atlas-a2", {SOFTMAX}, False),
    ],
)
def test_ignored_waivers_of_other_runs_are_not_counted(
    tmp_path: Path, adapter: str, product: str | None, operators: set[str] | None, ignored: bool
) -> None:
    every = read(tmp_path, versioned("<2").replace("kind:", "product: atlas-a2\n      kind:"))
    waivers = Waivers(every, adapter=adapter, version="2.15", today=TODAY, product=product, operators=operators)
    assert bool(waivers.ignored) == ignored


BOUND = WAIVER.replace("kind:", "binding: 0123456789abcdef\n      kind:")


@pytest.mark.parametrize(
    ("environment", "is_waived"),
    [
        ({f"binding.{SOFTMAX}": "0123456789abcdef"}, True),
        ({f"binding.{SOFTMAX}": "fedcba9876543210"}, False),
        ({f"binding.{EMBEDDING}": "0123456789abcdef"}, False),
        ({}, False),
    ],
    ids=["its own", "another", "another operator's", "none"],
)
def test_waiver_excuses_the_binding_that_it_names(
    tmp_path: Path, environment: Mapping[str, str], *, is_waived: bool
) -> None:
    record = make_record(result=Result.FAILED, kind=Fault.VALUE)
    waivers = Waivers(read(tmp_path, BOUND), adapter="torch", version=None, today=TODAY, environment=environment)
    assert (waivers.apply(record).waiver != "") is is_waived
    expected = "" if is_waived else f"1 waiver ignored: made for another binding of {SOFTMAX}"
    assert waivers.ignored == expected


def test_waiver_of_a_binding_names_its_operator(tmp_path: Path) -> None:
    text = BOUND.replace(f"operator: {SOFTMAX}", "check: values")
    with pytest.raises(UsageError, match=r"'0123456789abcdef': is that of one operator"):
        read(tmp_path, text)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_shipped_waivers_name_the_binding_that_ships(library: str) -> None:
    bindings = shipped_bindings(library)
    mine = [item for item in read_waivers(shipped_waivers(), pinned=False) if item.id.startswith(f"{library}-cpu.")]
    assert mine
    for waiver in mine:
        assert waiver.scope.operator is not None
        [operator] = waiver.scope.operator
        assert waiver.scope.binding == bindings[operator].sha256, (
            f"{waiver.where}: the binding of {operator} has changed; see whether it still fails so, then name its hash"
        )


@pytest.mark.parametrize(
    ("adapter", "libraries"),
    [("reference", set()), ("torch", {"torch"}), ("torch:device=cuda", {"torch"}), ("jax", {"jax"}), ("mine:A", set())],
)
def test_cases_are_read_of_shipped_waivers_that_may_be_for_the_adapter(adapter: str, libraries: set[str]) -> None:
    found = waivers_beside_shipped((), adapter=adapter)
    assert [item.id for item in found] == [item.id for item in read_waivers(shipped_waivers(), pinned=False)]
    assert {item.id.partition("-")[0] for item in found if item.cases} == libraries


SPLIT = WAIVER.replace("kind:", "output: first\n      kind:") + WAIVER.split("waivers:\n")[1].replace(
    "torch-cpu.half", "torch-cpu.other"
).replace("kind:", "output: second\n      kind:")


def also_at_fault(record: Record, *outputs: str) -> Record:
    deviations = tuple(Deviation(output=name, beyond=1, elements=2) for name in outputs)
    return msgspec.structs.replace(record, verdict=msgspec.structs.replace(record.verdict, deviations=deviations))


@pytest.mark.parametrize(
    ("named", "others", "waiver", "unused"),
    [
        ("first", (), "torch-cpu.half", ["torch-cpu.other"]),
        ("second", (), "torch-cpu.other", ["torch-cpu.half"]),
        ("first", ("first", "second"), "torch-cpu.half", []),
        ("first", ("first", "third"), "", ["torch-cpu.half", "torch-cpu.other"]),
        ("third", ("first", "third"), "", ["torch-cpu.half", "torch-cpu.other"]),
    ],
)
def test_every_output_at_fault_needs_a_waiver(
    tmp_path: Path, named: str, others: tuple[str, ...], waiver: str, unused: list[str]
) -> None:
    waivers = chosen(read(tmp_path, SPLIT))
    assert waivers.apply(also_at_fault(failure(output=named), *others)).waiver == waiver
    assert [item.id for item in waivers.report().unused] == unused


def test_a_predicate_may_hold_of_a_call_that_the_trial_makes(tmp_path: Path) -> None:
    every = read(tmp_path, WAIVER.replace("kind:", "when: dim(gradOutput, 1) > 3\n      kind:"))

    def waived(*calls: Case) -> str:
        return Waivers(every, adapter="torch", version=None, today=TODAY, calls=lambda _: calls).apply(failure()).waiver

    larger = make_record(5).trial.case
    assert waived(larger) == "torch-cpu.half"
    assert waived(make_record(1).trial.case) == ""
    assert waived(msgspec.structs.replace(larger, call=CallOptions(phases=1))) == "", "a twin's first phase"


def test_a_waiver_reaches_the_workers(tmp_path: Path) -> None:
    every = read(tmp_path, WAIVER.replace("kind:", "version: '>=2'\n      when: dim(gradOutput, 1) > 3\n      kind:"))
    waivers = chosen(pickle.loads(pickle.dumps(every)))  # noqa: S301 - our own
    assert waivers.covers(failure(5))
    assert not waivers.covers(failure(1))
    assert waivers.report().unused == (), "asking is not applying"


def test_cases_are_pinned_for_the_product_that_they_name(tmp_path: Path) -> None:
    pins = [make_record(1), make_record(1, product="atlas-training")]
    (tmp_path / "pins.jsonl").write_text("\n".join(json.dumps(trial_to_json(pin.trial)) for pin in pins))
    every = read(tmp_path, WAIVER.replace("    link:", "    cases: [pins.jsonl]\n    link:"))
    waivers = chosen(every, product="atlas-training")
    assert waivers.pinned == (pins[1].trial,)
    waivers.apply(pins[1])
    assert waivers.report().mended == every
    assert chosen(every, product="atlas-inference").report().mended == ()


def test_a_predicate_from_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(WAIVER.replace("kind:", "when: anything\n      kind:"), encoding="utf-8")
    asked: list[str] = []

    def compiler(text: str) -> Any:
        asked.append(text)
        return lambda case: isinstance(case, Case)

    assert chosen(read_waivers([path], compile_predicate=compiler)).apply(failure()).waiver
    assert asked == ["anything"]


@pytest.mark.parametrize(("expiry", "expired"), [("2026-05-31", True), ("2026-06-01", False), ("2026-06-02", False)])
def test_an_expired_waiver_speaks_for_nothing_and_fails_the_run(tmp_path: Path, expiry: str, expired: bool) -> None:
    every = read(tmp_path, WAIVER.replace("2026-12-31", expiry))
    waivers = chosen(every)
    assert bool(waivers.apply(failure()).waiver) != expired
    messages = waivers.report().violations()
    assert bool(messages) == expired
    if expired:
        [message] = messages
        assert message.text.startswith(
            f"{tmp_path}/w.yaml:4: waiver torch-cpu.half expired on 2026-05-31; numerics@example.org"
        )
    assert chosen(every, adapter="cann").report().violations() == ()


def test_unused_is_said_of_what_was_tried_alone(tmp_path: Path) -> None:
    every = read(tmp_path, WAIVER)
    untouched, unused, used = chosen(every), chosen(every), chosen(every)
    untouched.apply(make_record(operator=EMBEDDING))
    unused.apply(make_record(1))
    used.apply(make_record(1))
    used.apply(failure(2))
    assert untouched.report().notices() == ()
    [notice] = unused.report().notices()
    assert notice.startswith(f"{tmp_path}/w.yaml:4: waiver torch-cpu.half: nothing in its scope failed in this run")
    assert used.report().notices() == ()


@pytest.mark.parametrize("bare", [False, True])
def test_pinned_cases_that_pass_now(tmp_path: Path, bare: bool) -> None:
    pins = [make_record(1), make_record(2)]
    documents = [case_to_json(pin.trial.case) if bare else trial_to_json(pin.trial) for pin in pins]
    (tmp_path / "pins.jsonl").write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    every = read(tmp_path, WAIVER.replace("    link:", "    cases: [pins.jsonl]\n    link:"))
    waivers = chosen(every)
    found = [case_id(pin) if isinstance(pin, Case) else pin.id for pin in waivers.pinned]
    assert found == [case_id(pin.trial.case) if bare else pin.trial_id for pin in pins]
    waivers.apply(pins[0])
    assert waivers.report().mended == ()
    waivers.apply(pins[1])
    assert waivers.report().mended == every
    assert waivers.report().notices() == (
        f"{tmp_path}/w.yaml:4: waiver torch-cpu.half: its pinned cases pass now; remove it",
    )
    waivers.apply(failure(2))
    assert waivers.report().mended == ()


def test_the_files_of_waivers_by_names_of_their_own(tmp_path: Path) -> None:
    first = read(tmp_path, WAIVER)
    (tmp_path / "other").mkdir()
    second = read(tmp_path / "other", WAIVER.replace("half", "other"))
    assert waiver_texts([*first, *second]) == {
        "w.yaml": WAIVER.encode(),
        "w-2.yaml": WAIVER.replace("half", "other").encode(),
    }


@pytest.mark.parametrize("key", ["reason", "owner", "expiry"])
def test_what_a_person_has_not_filled_in(tmp_path: Path, key: str) -> None:
    lines = WAIVER.splitlines(keepends=True)
    text = "".join(f"    {key}:  # why\n" if line.strip().startswith(f"{key}:") else line for line in lines)
    with pytest.raises(UsageError, match=rf"waivers\.0\.{key}: not filled in; expected a"):
        read(tmp_path, text)
