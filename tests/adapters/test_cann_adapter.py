"""The CANN adapter through the C interface of the software device, as a user calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from aclnn_cts.adapters.loopback_build import build
from aclnn_cts.cli.main import main

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed: no software device")

SOCS = {"atlas-a2": "Ascend910B3", "atlas-training": "Ascend910A", "atlas-inference": "Ascend310P3"}


def summary(run: Path) -> dict[str, object]:
    document: dict[str, object] = json.loads((run / "summary.json").read_text())
    return document


@pytest.mark.parametrize(("product", "soc"), SOCS.items())
def test_statuses_of_every_product_conform(
    product: str, soc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACLNN_LOOPBACK_SOC", soc)
    run = tmp_path / "run"
    words = [
        "run",
        "softmax_backward",
        "--adapter",
        "loopback",
        "--product",
        product,
        "--phases",
        "one",
        "-o",
        str(run),
    ]
    assert main(words) == 0
    found = summary(run)
    assert found["failed"] == 0
    assert isinstance(found["passed"], int)
    assert found["passed"] > 100


def test_cann_at_the_software_device_takes_the_same_path_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", str(build().folder))
    case = tmp_path / "cases.jsonl"
    assert main(["cases", "upsample_nearest_exact1d_backward", "-n", "12", "-o", str(case)]) == 0
    run = tmp_path / "run"
    assert main(["run", "--adapter", "cann", "--cases", str(case), "-o", str(run)]) == 0
    assert summary(run)["failed"] == 0
    manifest = json.loads((run / "manifest.json").read_text())
    text = json.dumps(manifest["environment"])
    assert "Ascend910B3" in text
    assert "sha256" in text.lower()


def test_another_product_than_the_device_s_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ACLNN_LOOPBACK_SOC", "Ascend910B3")
    words = [
        "run",
        "softmax_backward",
        "--adapter",
        "loopback",
        "--product",
        "atlas-training",
        "-o",
        str(tmp_path / "run"),
    ]
    assert main(words) == 2
    assert "atlas-training" in capsys.readouterr().err


def test_a_library_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH"):
        monkeypatch.delenv(name, raising=False)
    missing = tmp_path / "libnone.so"
    words = ["run", "softmax_backward", "--adapter", f"cann:library={missing}", "-o", str(tmp_path / "run")]
    assert main(words) in (2, 3)
    assert "libnone.so" in capsys.readouterr().err
