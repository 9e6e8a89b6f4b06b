from __future__ import annotations

import platform
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import numpy as np
import pytest

from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.store.manifest import (
    Fact,
    FactSource,
    adapter_facts,
    environment_facts,
    file_hashes,
    manifest_from_json,
    timestamp,
)
from tests.support.build_records import make_manifest


def test_json_and_back() -> None:
    manifest = make_manifest(environment=environment_facts(), settings={"phases": 1})
    assert manifest_from_json(msgspec.json.encode(manifest), where="m") == manifest


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff"])
def test_what_is_no_manifest(content: bytes) -> None:
    with pytest.raises(HarnessError, match=r"run/manifest\.json: .*expected a manifest of the format"):
        manifest_from_json(content, where="run/manifest.json")


def test_another_format() -> None:
    content = msgspec.json.encode(make_manifest(format="aclnn-cts/manifest/9"))
    with pytest.raises(HarnessError, match="'aclnn-cts/manifest/9'; this version reads 'aclnn-cts/manifest/2'"):
        manifest_from_json(content, where="m")


def test_the_environment_says_how_each_fact_is_known() -> None:
    facts = environment_facts()
    assert facts["python.version"] == Fact(platform.python_version(), FactSource.MEASURED)
    assert facts["library.numpy"] == Fact(np.__version__, FactSource.MEASURED)
    assert facts["machine.cores"].value
    assert facts["library.torch_npu"] == Fact(None, FactSource.UNKNOWN)


def test_what_an_adapter_says() -> None:
    facts = adapter_facts({"driver": "24.1", "soc": None, "tf32": Fact(value=False)})
    assert facts == {
        "adapter.driver": Fact("24.1", FactSource.DECLARED),
        "adapter.soc": Fact(None, FactSource.UNKNOWN),
        "adapter.tf32": Fact(value=False, known=FactSource.MEASURED),
    }


def test_what_an_adapter_measured_is_told_apart_from_what_is_said() -> None:
    environment = {"version": "1", "library x": "sha256 0", "soc": "unknown", "flush": "unknown: no such switch"}
    capabilities = Capabilities(measured=frozenset({"library x", "soc", "absent"}), environment_zh={"flush": "未知"})
    assert adapter_facts(environment, capabilities=capabilities) == {
        "adapter.version": Fact("1", FactSource.DECLARED),
        "adapter.library x": Fact("sha256 0", FactSource.MEASURED),
        "adapter.soc": Fact("unknown", FactSource.UNKNOWN),
        "adapter.flush": Fact("unknown: no such switch", FactSource.UNKNOWN, "未知"),
    }


def test_times_are_utc() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=8)))
    assert timestamp(moment) == "2026-01-01T19:04:05+00:00"


def test_hashes_are_those_of_sha256sum(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, appendix B.1
    assert file_hashes([path]) == {str(path): expected}
