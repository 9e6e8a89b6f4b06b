"""Cheats that a naive judge accepts: ours catches each, or its outputs are right."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.gaming.catalogue import Cheat, caught_by, cheats, judged, passes_naive_judge

ALL = list(cheats())
SEEDS = 10
"""`make bench-gaming` takes 20."""
HARMLESS = frozenset(
    {
        "cache_by_value.of_all_inputs",
        "lazy.computed_when_read",
        "lazy.shared_buffer",
        "library.backward_operator",
        "patched_time.backward_clock",
        "patched_time.frozen_clock",
    }
)
"""Those whose outputs are right: nothing can be held against them."""
_QUICK = frozenset(
    {
        "cache_by_pointer.of_all_inputs",
        "exits.at_once",
        "files.package_of_the_judge",
        "forged.answers_in_advance",
        "inputs.zeroed",
        "nan.everywhere",
        "parents.process_group",
        "stale.after_ten_calls",
        "threads.writes_its_output_later",
    }
)
"""Those that a fast test looks at, with one seed."""


def named(cheat: Cheat) -> str:
    return cheat.id


def test_there_are_forty_cheats_and_two_of_each_kind() -> None:
    assert len(ALL) >= 40
    assert min(Counter(cheat.kind for cheat in ALL).values()) >= 2
    assert not (HARMLESS | _QUICK) - {cheat.id for cheat in ALL}


@pytest.mark.parametrize("cheat", [cheat for cheat in ALL if cheat.id in _QUICK], ids=named)
def test_cheat_is_caught(cheat: Cheat) -> None:
    found = judged(cheat)
    assert found.verdict == "fails", (found.seed, found.reason)


@pytest.mark.slow
@pytest.mark.parametrize("cheat", ALL, ids=named)
def test_naive_judge_accepts_cheat(cheat: Cheat) -> None:
    if "torch" in cheat.file.read_text(encoding="utf-8"):
        pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    assert passes_naive_judge(cheat)


@pytest.mark.slow
@pytest.mark.parametrize("cheat", ALL, ids=named)
def test_cheat_is_caught_or_harmless_for_every_seed(cheat: Cheat) -> None:
    if "torch" in cheat.file.read_text(encoding="utf-8"):
        pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    for seed in range(SEEDS):
        found = judged(cheat, seed=seed)
        expected = "conforms" if cheat.id in HARMLESS else "fails"
        assert found.verdict == expected, (seed, caught_by(found), found.reason)
