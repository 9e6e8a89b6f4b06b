"""The CANN adapter through the C interface of the software device, as a user calls it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.adapters.cann.adapter import CannAdapter, LoopbackAdapter
from aclnn_cts.adapters.cann.bindings import META, RUNTIME
from aclnn_cts.adapters.cann.device import installed_versions
from aclnn_cts.cli.main import main
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import status_name
from aclnn_cts.core.target import OWN_PRODUCT, Target
from aclnn_cts.core.verdict import Record
from aclnn_cts.findings.explain import explain_record
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.run_directory import RunDirectory
from tests.adapters.loopback.support import SOC, home, needs_compiler
from tests.support.programs import OFFERED

pytestmark = needs_compiler

SPECS = load_specs()
HOST_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH")


@pytest.fixture(autouse=True)
def no_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is installed here is not what is tested."""
    home()
    for name in (*HOST_VARIABLES, "ACLNN_LOOPBACK_SOC"):
        monkeypatch.delenv(name, raising=False)


def run(path: Path, *words: str) -> int:
    return main(["run", *words, "-o", str(path)])


def summary(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((path / "summary.json").read_text())
    return document


def environment(path: Path) -> dict[str, str]:
    document = json.loads((path / "manifest.json").read_text())["environment"]
    return {name.removeprefix("adapter."): fact["value"] for name, fact in document.items() if "adapter." in name}


def records(path: Path) -> list[Record]:
    with RunDirectory(path).results() as results:
        return list(results.records())


def statuses(found: list[Record], operator: str) -> set[str]:
    outcomes = (outcome for record in found if record.trial.case.operator == operator for outcome in record.attempts[0])
    return {status_name(outcome.status) for outcome in outcomes if outcome.status is not None}


@pytest.mark.slow
@pytest.mark.parametrize("product", SOC)
def test_every_documented_status_is_returned_and_nothing_fails(product: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    assert run(path, "--adapter", "loopback", "--product", product) == 0
    found = records(path)
    for spec in map(SPECS.__getitem__, OFFERED):
        if product in spec.products:
            constraints = spec.constraints_for(product)
            listed = {item.statuses[0] for item in constraints if item.strength == "listed" and not item.unsafe}
            assert {"ACLNN_ERR_PARAM_NULLPTR", "ACLNN_ERR_PARAM_INVALID"} <= listed, spec.operator
            assert {*listed, "ACLNN_SUCCESS"} <= statuses(found, spec.operator)
    assert summary(path)["failed"] == summary(path)["errors"] == 0
    assert {record.trial.check for record in found} >= {"example", "values", "memory", "life-cycle/two-streams"}


@pytest.mark.parametrize(
    "product", [pytest.param(name, marks=[] if name == "atlas-a2" else [pytest.mark.slow]) for name in SOC]
)
def test_cann_at_the_software_device_takes_the_very_same_path(
    product: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = tmp_path / "cases.jsonl"
    assert main(["cases", "softmax_backward", "--product", product, "-n", "8", "-o", str(cases)]) == 0
    words = ("--cases", str(cases))
    assert run(tmp_path / "loopback", *words, "--adapter", "loopback") == 0
    monkeypatch.setenv("ASCEND_HOME_PATH", str(home().folder))
    monkeypatch.setenv("ACLNN_LOOPBACK_SOC", SOC[product])
    assert run(tmp_path / "cann", *words, "--adapter", "cann") == 0
    one, two = (
        [
            (record.trial_id, record.verdict.result, [outcome.status for outcome in record.attempts[0]])
            for record in records(tmp_path / name)
        ]
        for name in ("loopback", "cann")
    )
    assert one == two
    first, second = environment(tmp_path / "loopback"), environment(tmp_path / "cann")
    assert {name: value for name, value in first.items() if value != second.get(name)} == {}


def test_the_manifest_says_what_was_run_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", str(home().folder))
    cases = tmp_path / "cases.jsonl"
    assert main(["cases", "softmax_backward", "-n", "1", "-o", str(cases)]) == 0
    assert run(tmp_path / "run", "--adapter", "cann", "--cases", str(cases)) == 0
    facts = environment(tmp_path / "run")
    library = str(home().library.resolve())
    assert re.fullmatch("sha256 [0-9a-f]{64}", facts[f"library {library}"])
    symbols = set(facts[f"symbols {library}"].split(", "))
    offered = facts["operators"].split(", ")
    assert set(offered) <= set(SPECS)
    assert {*RUNTIME, *META, *offered, *(f"{name}GetWorkspaceSize" for name in offered)} == symbols
    expected = {
        "device_id": "0",
        "core_count": "20",
        "deterministic": "false",
        "overflow_mode": "infnan",
        "runtime_version": "1.0.0",
        "missing_functions": "none",
    }
    assert expected.items() <= facts.items()
    # Nothing of it can be taken for a device.
    for name in ("implementation", "description", "device", "soc", "product"):
        assert "software device" in facts[name], name
    stored = json.loads((tmp_path / "run" / "manifest.json").read_text())["environment"]
    for name, fact in facts.items():
        if "software device" in fact:
            assert "软件设备" in stored[f"adapter.{name}"]["zh"], name
    for name in ("cann_version", "driver_version", "firmware_version"):
        assert facts[name] == "none: software device"
    # What the adapter hashed and looked up is no word of the library's.
    known = {name: stored[f"adapter.{name}"]["known"] for name in facts}
    measured = {f"library {library}", f"symbols {library}", "device_id", "operators", "missing_functions"}
    assert {name for name in known if known[name] == "measured"} - {"ACLNN_LOOPBACK_SOC"} == measured
    assert {known[name] for name in ("implementation", "soc", "core_count", "runtime_version", "deterministic")} == {
        "declared"
    }


@pytest.mark.slow
def test_doctor_says_software_device(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", str(home().folder))
    assert main(["doctor", "--json"]) == 0
    adapters = {item["name"]: item for item in json.loads(capsys.readouterr().out)["adapters"]}
    for name in ("cann", "loopback"):
        assert adapters[name]["usable"]
        assert adapters[name]["description"].startswith("software device (loopback) standing in for Ascend910B3")
        assert "software device" in adapters[name]["environment"]["soc"]


def test_without_an_installation_the_loader_s_own_words_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if any(Path(f"/usr/local/Ascend/{name}").exists() for name in ("cann", "ascend-toolkit", "latest")):
        pytest.skip("CANN is installed here")
    assert run(tmp_path / "run", "softmax_backward", "--adapter", "cann") == 3
    said = capsys.readouterr().err
    assert "the CANN runtime cannot be loaded: libascendcl.so: cannot open shared object file" in said
    assert "set_env.sh" in said


@pytest.mark.slow
def test_the_run_s_screen_says_software_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("softmax_backward", "--adapter", "loopback", "--phases", "one", "--product", "atlas-inference")
    assert run(tmp_path / "run", *words) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Ran on: software device (loopback) standing in for Ascend310P3, atlas-inference; no hardware" in said


@pytest.mark.slow
@pytest.mark.parametrize("product", SOC)
def test_first_phases_alone_need_no_runtime_where_the_product_is_stated(
    product: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", str(home().host))
    monkeypatch.setenv("ACLNN_LOOPBACK_SOC", SOC[product])
    words = ("softmax_backward", "--adapter", "cann", "--phases", "one", "--product", product)
    assert run(tmp_path / "run", *words) == 0
    assert summary(tmp_path / "run")["passed"] > 300
    facts = environment(tmp_path / "run")
    assert facts["device"] == "none: first phases alone"
    assert facts["description"].startswith("the first phases of the software device (loopback) without a runtime")
    assert "libascendcl.so: cannot open" in facts["not loaded libascendcl.so"]
    stored = json.loads((tmp_path / "run" / "manifest.json").read_text())["environment"]
    assert stored["adapter.not loaded libascendcl.so"]["known"] == "measured"
    assert (stored["adapter.soc"]["value"], stored["adapter.soc"]["known"]) == ("unknown", "unknown")
    assert not any(outcome.phase_two for record in records(tmp_path / "run") for outcome in record.attempts[0])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--phases", "one"), 3, "the CANN runtime cannot be loaded"),
        (("--product", "atlas-a2"), 3, "it can answer the first phase alone; give --phases one"),
    ],
)
def test_without_a_runtime_nothing_else_is_possible(
    words: tuple[str, ...],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", str(home().host))
    assert run(tmp_path / "run", "softmax_backward", "--adapter", "cann", *words) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_refused_sentinel_is_a_finding_and_names_what_to_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The product is stated, and the library is another product's: BF16, say, is refused where it was promised.
    monkeypatch.setenv("ASCEND_HOME_PATH", str(home().host))
    monkeypatch.setenv("ACLNN_LOOPBACK_SOC", "Ascend950PR_9579")
    words = ("softmax_backward", "--adapter", "cann", "--phases", "one", "--product", "atlas-a2")
    assert run(tmp_path / "run", *words) == 1
    assert [record.verdict.kind for record in records(tmp_path / "run")] == ["rejected"]
    told = capsys.readouterr().err
    assert "aclnnSoftmaxBackward: rejects the example of aclnnSoftmaxBackward, example.1 (phase one returned" in told
    assert "Check that the operator package matches the device and --product" in told


def test_libraries_by_name(tmp_path: Path) -> None:
    files = [str(home().lib64 / name) for name in ("libascendcl.so", "libnnopbase.so", "libopapi.so")]
    cases = tmp_path / "cases.jsonl"
    assert main(["cases", "softmax_backward", "-n", "1", "-o", str(cases)]) == 0
    word = f"cann:library={','.join(files)},device=0,timeout=30,deterministic=true"
    assert run(tmp_path / "run", "--adapter", word, "--cases", str(cases)) == 0
    assert environment(tmp_path / "run")["deterministic"] == "true"


MISTAKES = [
    ("loopback:soc=Ascend910B3", "atlas-training", 2, "the device is Ascend910B3, which is atlas-a2"),
    ("loopback:soc=Ascend910B", "atlas-a2", 2, "the device is Ascend910B, which is atlas-training"),
    ("loopback:soc=Ascend950PR", None, 2, "soc=Ascend950PR: expected a full SoC name"),
    ("loopback:soc=Ascend910_9362", None, 2, "soc=Ascend910_9362: expected a full SoC name"),
    ("loopback", "atlas-a3", 2, "--product atlas-a3: the software device stands in for atlas-a2, atlas-training,"),
    ("loopback:timeout=0", None, 2, "timeout=0: expected a whole number from 1"),
    ("loopback:timeout=9999999999", None, 2, "timeout=9999999999: expected a whole number from 1 to 2147483"),
    ("cann:device=-1", None, 2, "device=-1: expected a whole number from 0 to 2147483647"),
    ("cann:device=4294967296", None, 2, "device=4294967296: expected a whole number from 0 to 2147483647"),
    ("loopback:deterministic=maybe", None, 2, "deterministic=maybe: expected true or false"),
    ("cann:libary=x.so", None, 2, "unknown option 'libary'"),
    ("cann:library=libnone-at-all.so", None, 3, "libnone-at-all.so"),
]


@pytest.mark.parametrize(("word", "product", "code", "said"), MISTAKES)
def test_mistakes_are_told(
    word: str, product: str | None, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--product", product) if product is not None else ()
    assert run(tmp_path / "run", "softmax_backward", "--adapter", word, *chosen) == code
    assert said in capsys.readouterr().err


def test_a_device_that_is_not_there_is_told_with_the_runtime_s_own_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    word = f"cann:library={home().library},device=5"
    assert run(tmp_path / "run", "softmax_backward", "--adapter", word) == 3
    said = capsys.readouterr().err
    assert "aclrtSetDevice(5) returned 107001 (no such device id)" in said
    assert "device 5 does not exist; there are 1" in said
    assert "npu-smi info" in said


def test_a_file_that_is_no_part_of_cann_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "run", "softmax_backward", "--adapter", "cann:library=libm.so.6") == 3
    assert "none of libm.so.6 has aclCreateTensor; name libnnopbase.so too" in capsys.readouterr().err


def test_unsafe_calls_are_made_on_a_software_device_when_asked_for(tmp_path: Path) -> None:
    tensor = {"shape": [1, 1, 4], "dtype": "FLOAT", "format": "NCL"}
    case = {
        "format": "aclnn-cts/case/1",
        "operator": "aclnnUpsampleNearestExact1dBackward",
        "product": "atlas-a2",
        "arguments": {
            "gradOutput": {"tensor": {**tensor, "data": {"recipe": "zeros"}}},
            "outputSizeOptional": None,
            "inputSize": {"int_array": [1, 1, 2]},
            "scalesOptional": {"double": 2.0},
            "out": {"tensor": {**tensor, "shape": [1, 1, 2]}},
        },
    }
    file = tmp_path / "case.json"
    file.write_text(json.dumps(case))
    words = ("--adapter", "loopback", "--cases", str(file))
    run(tmp_path / "safe", *words)
    assert summary(tmp_path / "safe")["skipped_by_reason"] == {"unsafe": 1}
    (record,) = records(tmp_path / "safe")
    assert record.attempts == ((),)
    assert "ends the process" in record.verdict.message
    run(tmp_path / "unsafe", *words, "--unsafe")
    (record,) = records(tmp_path / "unsafe")
    assert record.attempts[0][0].phase_one is not None


def test_the_longest_call_is_the_adapter_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", str(home().folder))
    with ProcessHost("cann:timeout=100", target=Target(product=OWN_PRODUCT), spare=False) as host:
        assert host.capabilities.call_seconds == 100
        # Whoever watches the process waits longer, or the call would be blamed by the wrong clock.
        assert host._limits.call_seconds > 100
    with open_host("loopback", target=Target(product=OWN_PRODUCT), specs=SPECS) as plain:
        assert isinstance(plain, ProcessHost)
        assert plain._limits.call_seconds == 60


def test_versions_are_read_where_the_packages_leave_them(tmp_path: Path) -> None:
    machine = os.uname().machine
    toolkit = tmp_path / "toolkit" / f"{machine}-linux"
    toolkit.mkdir(parents=True)
    (toolkit / "ascend_toolkit_install.info").write_text("package_name=Ascend-cann-toolkit\nversion=8.0.RC3\narch=x\n")
    for name, text in (("driver", "Version=24.1.rc3\nascendhal_version=7\n"), ("firmware", "Version=7.5.0.1\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "version.info").write_text(text)
    expected = {"cann_version": "8.0.RC3", "driver_version": "24.1.rc3", "firmware_version": "7.5.0.1"}
    assert installed_versions({"ASCEND_HOME_PATH": str(tmp_path / "toolkit")}, install=(tmp_path,)) == expected
    unknown = dict.fromkeys(expected, "unknown")
    assert installed_versions({}, install=(tmp_path / "none",)) == unknown


@pytest.mark.parametrize("text", ["Version=8.1", "version: 8.1", 'version="8.1"', "[general]\nversion=[8.1]\n"])
def test_versions_in_their_spellings(text: str, tmp_path: Path) -> None:
    (tmp_path / "version.info").write_text(text)
    assert installed_versions({"ASCEND_HOME_PATH": str(tmp_path)}, install=())["cann_version"] == "8.1"


def test_options_are_checked_before_anything_is_loaded() -> None:
    with pytest.raises(UsageError, match="device=two"):
        CannAdapter(library="libnever-loaded.so", device="two").open(Target(), SPECS)
    with pytest.raises(HarnessError, match=r"libnever-loaded\.so"):
        CannAdapter(library="libnever-loaded.so").open(Target(), SPECS)
    with pytest.raises(UsageError, match="soc=Ascend"):
        LoopbackAdapter(soc="Ascend", library=str(home().library)).open(Target(), SPECS)


@pytest.mark.parametrize(
    ("fault", "name"), [("softmax.guard-after", "out"), ("softmax.workspace-overrun", "workspace")]
)
def test_a_stray_write_has_its_place_its_address_and_what_lay_there(
    fault: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACLNN_LOOPBACK_FAULT", fault)
    cases = tmp_path / "cases.jsonl"
    assert main(["cases", "softmax_backward", "-n", "24", "-o", str(cases)]) == 0
    assert run(tmp_path / "run", "--adapter", "loopback", "--cases", str(cases)) == 1
    found = records(tmp_path / "run")
    strays = [record for record in found if record.verdict.kind == "stray-write"]
    stray = strays[0].attempts[0][0].buffers[name].stray
    assert stray is not None
    assert re.fullmatch("0x[0-9a-f]+", stray.address)
    assert stray.before != stray.after
    assert f"first at byte {stray.offset} of its storage: {stray.before} became" in strays[0].verdict.message
    told = "\n".join(explain_record(strays[0], SPECS["aclnnSoftmaxBackward"]))
    assert f"stray write: {name}, byte {stray.offset} of its storage, address {stray.address}:" in told
    assert not any("addresses" in outcome.facts for record in found for outcome in record.attempts[0])
