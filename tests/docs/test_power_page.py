"""The page on the harness's own power names by what its figures were made."""

from __future__ import annotations

import msgspec
import pytest

from aclnn_cts.selftest.generated_power import read_generated
from aclnn_cts.selftest.kill_matrix import read_matrix
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.provenance import Beginning, Checkout
from benchmarks import corner_mutants
from benchmarks.stored import read_figures
from tools import power
from tools.power import POWER, made_by_text


def test_the_command_the_commit_and_the_machine_are_named() -> None:
    made = msgspec.structs.replace(
        Beginning(["faults", "--seeds", "5"]).made_by(),
        checkout=Checkout(commit="0123456789abcdef", clean=False),
        started="2026-11-22T09:00:00+00:00",
        seconds=3700.0,
    )
    text = made_by_text(made)
    assert text.startswith("Measured on 2026-11-22 in 62 minutes on ")
    assert "at commit 0123456789ab with changes by `aclnn-cts faults --seeds 5`." in text
    clean = msgspec.structs.replace(made, checkout=Checkout(commit="0123456789abcdef", clean=True), seconds=90.0)
    assert " in 90 s on " in made_by_text(clean)
    assert "at commit 0123456789ab by `" in made_by_text(clean)
    assert "at a commit that is not known by" in made_by_text(msgspec.structs.replace(made, checkout=None))


def test_the_page_tells_how_many_seeds_were_run(monkeypatch: pytest.MonkeyPatch) -> None:
    specs, stored = load_specs(), read_matrix()
    for seeds, decoys, words in (
        ((0,), (0, 1), ("1 seed (0) for each fault and 2 seeds (0, 1) for each decoy", "found with the one seed")),
        (
            (3, 4, 5),
            (),
            ("3 seeds (3, 4, 5) for each fault and no seed for each decoy", "found with each of the 3 seeds"),
        ),
    ):
        matrix = msgspec.structs.replace(stored, seeds=seeds, decoy_seeds=decoys)
        monkeypatch.setattr(power, "read_matrix", lambda matrix=matrix: matrix)
        page = "\n".join(power.power_page(specs))
        assert all(text in page for text in words)


def test_a_matrix_of_an_earlier_version_does_not_say() -> None:
    assert "is not known" in made_by_text(None)


def test_corner_mutants_that_are_not_measured_name_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = load_specs()
    assert "Not measured yet; `make power-corners" not in "\n".join(power.power_page(specs))
    names = corner_mutants.NAMES.values()
    monkeypatch.setattr(power, "read_figures", lambda name: None if name in names else read_figures(name))
    page = "\n".join(power.power_page(specs))
    assert page.count("Not measured yet; `make power-corners ARGS='--profile") == len(corner_mutants.NAMES)


def test_measurements_of_one_profile_stand_under_one_heading() -> None:
    matrices = [read_generated(path) for path in POWER.glob("generated_*.json")]
    lines = list(power.power_page(load_specs()))
    for profile in {matrix.profile for matrix in matrices}:
        assert lines.count(f"### On the {profile} profile") == 1
    for matrix in matrices:
        assert made_by_text(matrix.made_by) in lines
        for row in matrix.survivors:
            assert any(
                line.startswith(f"| `{row.id}` | {row.text} |") and f"| {row.reached:,} |" in line for line in lines
            )
