from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.selftest.fault_catalogue import Catalogue, Decoy, SeededFault
from aclnn_cts.selftest.kill_matrix import Attempt, KillMatrix, build_matrix, figures, read_matrix
from aclnn_cts.store.provenance import Beginning


def fault(identifier: str, *, equivalent: str = "") -> SeededFault:
    return msgspec.convert(
        {
            "id": identifier,
            "operator": "aclnnX",
            "class": "state",
            "sentence": "It is wrong.",
            "checks": ["values"],
            "clauses": ["function.1"],
        }
        | ({"equivalent": equivalent} if equivalent else {}),
        SeededFault,
    )


CATALOGUE = Catalogue(
    faults={entry.id: entry for entry in (fault("x.found"), fault("x.missed"), fault("x.same", equivalent="Always."))},
    decoys={
        name: Decoy(id=name, operator="aclnnX", sentence="Otherwise.", why="It may.")
        for name in ("decoy.x.a", "decoy.x.b")
    },
    empty={},
)


def attempt(identifier: str, seed: int, *, found: bool, cases: int = 10, check: str = "values") -> Attempt:
    return Attempt(
        id=identifier,
        seed=seed,
        found=found,
        check=check if found else "",
        kind="",
        cases=cases,
        seconds=1.0,
        findings=tuple(f"aclnnX | values | value | {dtype}" for dtype in ("FLOAT", "BF16")) if found else (),
        failures=((Fingerprint("aclnnX", "values", "value"), 1),) if found else (),
    )


def matrix(*more: Attempt) -> KillMatrix:
    given = [
        attempt("x.found", 0, found=True, cases=3),
        attempt("x.found", 1, found=True, cases=201, check="boundary"),
        attempt("x.missed", 0, found=True),
        attempt("x.missed", 1, found=False, cases=500),
        attempt("x.same", 0, found=False),
        attempt("decoy.x.a", 0, found=False, cases=700),
        *more,
    ]
    return build_matrix(CATALOGUE, given, profile="quick", seeds=(0, 1), decoy_seeds=(0,), to_end=False)


def test_survivors_come_first() -> None:
    made = matrix()
    assert [row.id for row in made.faults] == ["x.missed", "x.same", "x.found"]
    assert [row.id for row in made.survivors] == ["x.missed"]
    assert made.accused == ()


def test_the_figures_leave_out_what_is_equivalent() -> None:
    found = figures(matrix())
    assert (found.faults, found.equivalent, found.found, found.soon) == (3, 1, 1, 0)
    assert found.foreseen == pytest.approx(2 / 3)
    assert found.findings == 2.0
    assert (found.decoys, found.accused) == (1, 0)


def test_an_accused_decoy_is_named_with_what_it_is_accused_of() -> None:
    made = matrix(attempt("decoy.x.b", 0, found=True))
    assert [row.id for row in made.accused] == ["decoy.x.b"]
    assert made.decoys[0].accused[0].fingerprint == "aclnnX | value"


def test_errors_count_where_nothing_was_found() -> None:
    lost = attempt("x.found", 2, found=True)
    assert matrix(msgspec.structs.replace(lost, errors=5)).errors == 0
    assert matrix(msgspec.structs.replace(attempt("x.missed", 2, found=False), errors=5)).errors == 5
    assert matrix(msgspec.structs.replace(attempt("decoy.x.b", 0, found=False), errors=2)).errors == 2


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "matrix.json"
    file.write_bytes(matrix().to_json())
    assert read_matrix(file) == matrix()
    assert len(file.read_text().splitlines()) == 16


@pytest.mark.parametrize(
    "text", ["", "{}", '{"format": "other", "profile": "quick", "seeds": [], "faults": [], "decoys": []}']
)
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "matrix.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"matrix\.json: "):
        read_matrix(file)


def test_what_made_it_is_read_as_it_was_written_and_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    plain = matrix()
    made = msgspec.structs.replace(plain, made_by=Beginning(["faults", "-o", "a file"]).made_by())
    file = tmp_path / "matrix.json"
    file.write_bytes(made.to_json())
    assert read_matrix(file) == made
    # Two measurements of one harness differ in that line alone.
    lines = zip(plain.to_json().splitlines(), made.to_json().splitlines(), strict=True)
    assert [new[:13] for old, new in lines if old != new] == [b'  "made_by": ']


def test_a_matrix_that_does_not_say_what_made_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "matrix.json"
    file.write_bytes(matrix().to_json().replace(b'  "made_by": null,\n', b""))
    assert b"made_by" not in file.read_bytes()
    assert read_matrix(file) == matrix()


def test_what_made_it_has_a_schema(tmp_path: Path) -> None:
    file = tmp_path / "matrix.json"
    file.write_bytes(matrix().to_json().replace(b'"made_by": null', b'"made_by": {"command": "x"}'))
    with pytest.raises(UsageError, match=r"matrix\.json: .*\$\.made_by"):
        read_matrix(file)
