"""The catalogue of seeded faults: held against the code in both directions, whole, and unknown to whoever judges."""

from __future__ import annotations

import ast
import ctypes
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclnn_cts.core.errors import UsageError
from aclnn_cts.selftest.fault_catalogue import CLASSES, Catalogue, Decoy, SeededFault, read_catalogue, shipped_path
from aclnn_cts.selftest.kill_matrix import read_matrix
from aclnn_cts.speclang.load import Specs, load_specs
from tests.adapters.loopback.support import SOURCES, home, needs_compiler

PACKAGE = Path(__file__).parents[2] / "aclnn_cts"
READERS = {
    "cli/faults.py",
    "selftest/fault_catalogue.py",
    "selftest/kill_matrix.py",
    "selftest/mutated_session.py",
    "reports/model/kill_matrix.py",
}
"""Who may know of the catalogue: what measures or shows a measurement, and the implementation that has the faults."""


@pytest.fixture(scope="module")
def specs() -> Specs:
    return load_specs()


@pytest.fixture(scope="module")
def catalogue(specs: Specs) -> Catalogue:
    return read_catalogue(specs)


def used() -> Iterator[tuple[str, str]]:
    """What the sources switch on: whole ids, and the last parts that operators share."""
    for path in (*SOURCES.glob("*.cpp"), *SOURCES.glob("*.h")):
        for macro, name in re.findall(r'\b(FAULT|SHARED)\("([^"]+)"\)', path.read_text(encoding="utf-8")):
            yield ("shared", name) if macro == "SHARED" else ("own", name)


def of_the_device(catalogue: Catalogue) -> list[str]:
    """The entries that the software device has."""
    entries: list[SeededFault | Decoy] = [*catalogue.faults.values(), *catalogue.decoys.values()]
    return [entry.id for entry in entries if not entry.subjects]


def test_a_fault_is_in_the_device_where_it_is_of_memory_or_of_state(catalogue: Catalogue) -> None:
    for entry in catalogue.faults.values():
        assert bool(entry.mutants) is (entry.fault_class not in ("memory", "state")), entry.id


def test_every_entry_is_in_the_code_and_the_other_way_round(catalogue: Catalogue) -> None:
    listed = re.findall(r'^    "([^"]+)",$', (SOURCES / "fault_ids.h").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(of_the_device(catalogue))
    own = {name for kind, name in used() if kind == "own"}
    shared = {name for kind, name in used() if kind == "shared"}
    assert own <= set(listed)
    assert {name for name in listed if name not in own and name.rpartition(".")[2] not in shared} == set()
    assert shared <= {name.rpartition(".")[2] for name in listed}


def test_every_sentence_stands_in_chinese_too(catalogue: Catalogue) -> None:
    chinese = re.compile("[\u4e00-\u9fff]")
    entries: list[SeededFault | Decoy] = [*catalogue.faults.values(), *catalogue.decoys.values()]
    for entry in entries:
        assert chinese.search(entry.sentence_zh), entry.id
        # Names and figures are the same in both.
        for word in re.findall(r"\b[a-z]+[A-Z]\w*|\b[A-Z]+[0-9]+\b|\b\d{3,}\b", entry.sentence):
            assert word in entry.sentence_zh, (entry.id, word)
    for fault in catalogue.faults.values():
        assert bool(fault.equivalent) == bool(chinese.search(fault.equivalent_zh)), fault.id


@needs_compiler
def test_the_library_says_what_it_knows(catalogue: Catalogue) -> None:
    tell = ctypes.CDLL(str(home().library)).aclLoopbackFaultId
    tell.restype = ctypes.c_char_p
    told: list[str] = []
    while (identifier := tell(ctypes.c_size_t(len(told)))) is not None:
        told.append(identifier.decode())
    assert told == of_the_device(catalogue)


def bare_cells(catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """Operators and classes with neither a fault nor a reason for having none, among the operators of the file."""
    filled = {(entry.operator, entry.fault_class) for entry in catalogue.faults.values()} | set(catalogue.empty)
    for operator in dict.fromkeys(entry.operator for entry in catalogue.faults.values()):
        yield from ((operator, name) for name in CLASSES if (operator, name) not in filled)


def test_no_cell_is_bare(specs: Specs, catalogue: Catalogue) -> None:
    assert list(bare_cells(catalogue)) == []
    assert {entry.operator for entry in catalogue.faults.values()} <= set(specs)
    assert len(catalogue.faults) >= 150
    assert len(catalogue.decoys) >= 20
    assert {entry.fault_class for entry in catalogue.faults.values()} == set(CLASSES)


def test_the_published_matrix_speaks_of_the_catalogue(catalogue: Catalogue) -> None:
    matrix = read_matrix()
    for row in matrix.faults:
        entry = catalogue.faults[row.id]
        assert (row.operator, row.fault_class, row.sentence) == (entry.operator, entry.fault_class, entry.sentence)
    assert {row.id for row in matrix.decoys} <= set(catalogue.decoys)


def modules() -> list[str]:
    found = (Path(folder, name) for folder, _, names in os.walk(PACKAGE, followlinks=True) for name in names)
    return sorted(str(path.relative_to(PACKAGE)) for path in found if path.suffix == ".py")


def test_nobody_who_generates_plans_or_judges_reads_it() -> None:
    for module in modules():
        text = (PACKAGE / module).read_text(encoding="utf-8")
        # Most modules hold neither word, and need not be parsed.
        if module in READERS or not re.search("fault|loopback", text, re.IGNORECASE):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        imported = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        imported |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        assert not any("fault_catalogue" in name for name in imported), module
        assert not any("faults.yaml" in word for word in words), module
        assert module == "selftest/power.py" or "ACLNN_LOOPBACK_FAULT" not in words, module


ENTRY = """format: aclnn-cts/faults/1
faults:
  - id: softmax.x
    operator: aclnnSoftmaxBackward
    class: numerical
    sentence: "It is wrong."
    checks: [values]
    clauses: [function.2]
    mutants: [{site: output, kind: scaled, value: "2", trigger: dim == 0}]
decoys: []
empty: []
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("aclnnSoftmaxBackward", "aclnnSoftmaxBackwrd", r":4: unknown operator .*did you mean 'aclnnSoftmaxBackward'"),
        ("[values]", "[value]", r":7: unknown check 'value'"),
        ("function.2", "function.99", r":8: unknown clause of aclnnSoftmaxBackward 'function.99'"),
        ("class: numerical", "class: numerics", r":5: faults.0.class: 'numerics'"),
        ("    sentence", "    sentense", r"unknown key 'sentense'"),
        ("[function.2]", "[]", r":8: "),
        ("kind: scaled", "kind: scalled", r":9: unknown kind of the site output .*did you mean 'scaled'"),
        ("kind: scaled", "kynd: scaled", r":9: "),
        ("site: output", "site: outputs", r":9: "),
        ("dim == 0", "dime == 0", r":9: unknown parameter 'dime'; .*did you mean 'dim'"),
        ('"2"', '"2 +"', r":9: "),
        ("decoys: []", "decoys:\n  - {id: softmax.y, operator: x, sentence: s, why: w}", r":11: decoys.0.id"),
    ],
)
def test_a_mistake_is_told_with_its_line(specs: Specs, tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(ENTRY.replace(old, new, 1))
    with pytest.raises(UsageError, match=message):
        read_catalogue(specs, file)


def test_an_id_that_stands_twice(specs: Specs, tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    entry = ENTRY[ENTRY.index("  - id") : ENTRY.index("decoys")]
    file.write_text(ENTRY.replace(entry, entry * 2))
    with pytest.raises(UsageError, match=r":10: 'softmax.x' stands twice"):
        read_catalogue(specs, file)


def test_a_small_catalogue_has_bare_cells(specs: Specs, tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(ENTRY)
    bare = list(bare_cells(read_catalogue(specs, file)))
    assert len(bare) == len(CLASSES) - 1
    assert ("aclnnSoftmaxBackward", "state") in bare


def test_it_ships_with_the_package() -> None:
    assert shipped_path().is_file()
