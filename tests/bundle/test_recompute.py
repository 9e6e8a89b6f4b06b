"""Bundles whose cases are judged again, and the keys that sign them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.bundle.statement import Signer, Verifier
from aclnn_cts.bundle.verify import verify_bundle
from aclnn_cts.bundle.write import write_bundle
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.fingerprint import Looks
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.generate.listing import case_stream
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.output_file import OutputFile
from tests.support.bundles import rebuilt, verified
from tests.support.ran import Ran


@pytest.mark.parametrize("option", ["private", "public", "missing"])
def test_files_that_hold_no_key(option: str, key: Path, tmp_path: Path) -> None:
    wrong = {"private": key.with_suffix(".pub"), "public": key, "missing": tmp_path / "none"}[option]
    with pytest.raises(UsageError, match="expected an Ed25519"):
        (Verifier if option == "public" else Signer)(wrong)


def sampled_cases(number: int) -> Iterator[str]:
    """Cases whose outputs a run keeps whatever becomes of them."""
    spec = load_specs()["aclnnSoftmaxBackward"]
    for listed in case_stream(spec, Target(), "valid", seed=5, count=10_000):
        case = listed.case
        if int(Trial("values", case).id[:2], 16) % 64 == 0 and 0 < case.nbytes < 10_000:
            yield json.dumps(case_to_json(case))
            number -= 1
            if not number:
                return


def change_records(
    entries: dict[str, bytes], predicate: dict[str, Any], change: Callable[[dict[str, Any]], None]
) -> None:
    """Change every record of a bundle, and leave its signature out."""
    del entries["SIGNATURE.json"]
    predicate["signer"] = ""
    name = "records/000000.jsonl"
    records = [json.loads(line) for line in entries[name].splitlines()]
    for record in records:
        change(record)
    entries[name] = b"".join(json.dumps(record).encode() + b"\n" for record in records)


def turned_to_passes(entries: dict[str, bytes], predicate: dict[str, Any]) -> None:
    change_records(entries, predicate, lambda record: record.update(verdict={"result": "passed"}))


def made_to_look_milder(entries: dict[str, bytes], predicate: dict[str, Any]) -> None:
    """Say of each worst element, and of what it looks like, that it is nearly right."""

    def milder(record: dict[str, Any]) -> None:
        record["fingerprint"]["looks"] = Looks.ROUNDING
        for deviation in record["verdict"]["deviations"]:
            deviation["got"] = deviation["expected"] = 1.0

    change_records(entries, predicate, milder)


def test_cases_are_judged_again_without_a_device(ran: Callable[..., Ran], tmp_path: Path, key: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text("\n".join(sampled_cases(4)), encoding="utf-8")
    good = ran("run", "--cases", str(cases), "--adapter", "reference")
    wrong = ran("run", "--cases", str(cases), "--adapter", "wrong_adapters:Wrong,fault=value")
    assert (good.code, wrong.code) == (0, 1)
    made = ran("bundle", str(good.path), "--sign", str(key), out=tmp_path / "good.zip")
    assert made.code == 0, made.err
    write_bundle(wrong.directory, OutputFile(tmp_path / "wrong.zip"), signer=Signer(key))
    for name in ("good.zip", "wrong.zip"):
        found = verify_bundle(tmp_path / name, key=Verifier(key.with_suffix(".pub")), recompute=9)
        assert found.problems == ()
        assert (found.recomputed, found.eligible) == (4, 4)
    # The outputs of the wrong implementation under the verdicts of the right one.
    lie = rebuilt(tmp_path / "wrong.zip", turned_to_passes)
    found = verified(lie, tmp_path, recompute=9)
    assert sum("judged again it is failed" in problem.what for problem in found.problems) == 4
    milder = verified(rebuilt(tmp_path / "wrong.zip", made_to_look_milder), tmp_path, recompute=9)
    assert sum("its fingerprint is" in problem.what for problem in milder.problems) == 4
