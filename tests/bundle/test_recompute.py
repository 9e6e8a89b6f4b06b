"""Bundles whose cases are judged again, and the keys that sign them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.bundle.signature import Signer, Verifier
from aclnn_cts.bundle.verify import verify_bundle
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.generate.listing import list_cases
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import load_specs
from tests.support.bundles import rebuilt, verified, write_signed
from tests.support.ran import Ran


@pytest.mark.parametrize("option", ["private", "public", "missing"])
def test_files_that_hold_no_key(option: str, key: Path, tmp_path: Path) -> None:
    wrong = {"private": key.with_suffix(".pub"), "public": key, "missing": tmp_path / "none"}[option]
    with pytest.raises(UsageError, match="expected an Ed25519"):
        (Verifier if option == "public" else Signer)(wrong)


def sampled_cases(number: int) -> Iterator[str]:
    """Cases whose outputs a run keeps whatever becomes of them."""
    sampler = Sampler(load_specs()["aclnnSoftmaxBackward"], Target())
    for case in list_cases(sampler, "valid", seed=5, count=10_000, unproved=Counter()):
        if int(Trial("values", case).id[:2], 16) % 64 == 0 and 0 < case.nbytes < 10_000:
            yield json.dumps(case_to_json(case))
            number -= 1
            if not number:
                return


def change_records(entries: dict[str, bytes], change: Callable[[dict[str, Any]], None]) -> None:
    """Change every record of a bundle."""
    name = "records/000000.jsonl"
    records = [json.loads(line) for line in entries[name].splitlines()]
    for record in records:
        change(record)
    entries[name] = b"".join(json.dumps(record).encode() + b"\n" for record in records)


def turned_to_passes(entries: dict[str, bytes]) -> None:
    change_records(entries, lambda record: record.update(verdict={"result": "passed"}))


def without_deviations(entries: dict[str, bytes]) -> None:
    change_records(entries, lambda record: record["verdict"].pop("deviations"))


def with_one_wrong_element(entries: dict[str, bytes]) -> None:
    """Say that a single element is wrong."""

    def fewer(record: dict[str, Any]) -> None:
        for deviation in record["verdict"]["deviations"]:
            deviation["beyond"] = 1

    change_records(entries, fewer)


def with_another_symptom(entries: dict[str, bytes]) -> None:
    change_records(entries, lambda record: record["fingerprint"].update(also=[["value", "other", "", ""]]))


def test_cases_are_judged_again_without_a_device(ran: Callable[..., Ran], tmp_path: Path, key: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text("\n".join(sampled_cases(4)), encoding="utf-8")
    good = ran("run", "--cases", str(cases), "--adapter", "reference")
    wrong = ran("run", "--cases", str(cases), "--adapter", "wrong_adapters:Wrong,fault=value")
    assert (good.code, wrong.code) == (0, 1)
    made = ran("bundle", str(good.path), "--sign", str(key), out=tmp_path / "good.zip")
    assert made.code == 0, made.err
    write_signed(wrong.directory, tmp_path / "wrong.zip", key)
    for name in ("good.zip", "wrong.zip"):
        found = verify_bundle(tmp_path / name, key=Verifier(key.with_suffix(".pub")), recompute=9)
        assert found.problems == ()
        assert (found.recomputed, found.eligible) == (4, 4)
    # The outputs of the wrong implementation under the verdicts of the right one.
    lie = rebuilt(tmp_path / "wrong.zip", turned_to_passes)
    found = verified(lie, tmp_path, recompute=9)
    assert sum("judged again it is failed" in problem.what for problem in found.problems) == 4
    for change, said in (
        (without_deviations, "deviations of  are recorded, and judged again those of out"),
        (with_one_wrong_element, "1 elements beyond their bound are recorded"),
        (with_another_symptom, "its fingerprint does not follow"),
    ):
        found = verified(rebuilt(tmp_path / "wrong.zip", change), tmp_path, recompute=9)
        whats = [problem.what for problem in found.problems]
        assert sum(said in what for what in whats) == 4, whats
