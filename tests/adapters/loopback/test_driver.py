from __future__ import annotations

import pytest

from tests.adapters.loopback.support import SOC, compile_program, home, needs_compiler, run_program, sanitized_driver

pytestmark = needs_compiler


@pytest.mark.slow
@pytest.mark.parametrize("product", SOC)
def test_the_driver_holds_under_the_sanitizers(product: str) -> None:
    done = run_program(sanitized_driver(), product=product, ACLNN_LOOPBACK_LATENCY_US="200000")
    assert (done.returncode, done.stdout, done.stderr) == (0, "all holds\n", "")


@pytest.mark.parametrize(
    ("error", "report"),
    [
        ("overrun", "AddressSanitizer: heap-buffer-overflow"),
        ("overflow", "runtime error: signed integer overflow"),
    ],
)
def test_the_sanitizers_find_a_seeded_error(error: str, report: str) -> None:
    done = run_program(sanitized_driver(), error, product="atlas-a2")
    assert done.returncode != 0
    assert report in done.stderr


def test_device_memory_cannot_be_read_through_its_address() -> None:
    done = run_program(sanitized_driver(), "dereference", product="atlas-a2")
    assert done.returncode != 0
    assert done.stdout == ""
    assert "AddressSanitizer: SEGV" in done.stderr


def test_a_cache_of_no_plans_changes_nothing() -> None:
    variables = {"ACLNN_LOOPBACK_LATENCY_US": "200000", "ACLNN_CACHE_LIMIT": "0"}
    done = run_program(sanitized_driver(), product="atlas-a2", **variables)
    assert (done.returncode, done.stdout) == (0, "all holds\n")


def test_an_unknown_chip_is_refused_with_its_name(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("program")
    source = folder / "program.cpp"
    source.write_text(
        '#include <cstdio>\n#include "acl/acl.h"\n'
        "int main() { int e = aclInit(nullptr);"
        ' std::printf("%d %d %s", e, aclrtGetSocName() == nullptr, aclGetRecentErrMsg()); }'
    )
    program = folder / "program"
    compiled = compile_program(source, program)
    assert compiled.returncode == 0, compiled.stderr
    done = run_program(program, product="atlas-a2", ACLNN_LOOPBACK_SOC="Ascend950PR")
    assert done.stdout.startswith("507008 1 ")
    assert "ACLNN_LOOPBACK_SOC=Ascend950PR: not a chip" in done.stdout
    assert home().library.is_file()
