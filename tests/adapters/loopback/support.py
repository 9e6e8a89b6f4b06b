"""What the tests of the software device share: the build, programs against it, and the chips of the products."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from aclnn_cts.adapters.loopback_build import (
    WARNINGS,
    BuildFolder,
    build,
    build_key,
    build_once,
    cache_folder,
    compile_objects,
)

FOLDER = Path(__file__).resolve().parent
SOURCES = FOLDER.parents[2] / "adapters" / "loopback" / "src"
LIBRARIES = ("-lascendcl", "-lnnopbase", "-lopapi")

SOC = {"atlas-a2": "Ascend910B3", "atlas-training": "Ascend910A", "atlas-inference": "Ascend310P3"}

SANITIZED = (
    "-std=c++17",
    "-O1",
    "-g1",
    "-ffp-contract=off",
    "-fPIC",
    "-pthread",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    *WARNINGS,
)

# In CI a missing compiler is a failure: there nobody reads that the sanitizers were skipped.
needs_compiler = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX") or "g++") is None and "CI" not in os.environ, reason="no g++ here"
)


@functools.cache
def home() -> BuildFolder:
    return build()


def compiler() -> str:
    return os.environ.get("CXX") or "g++"


def compile_program(source: Path, program: Path, *, include: tuple[Path, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Compile a program as its users would: our headers, the three libraries by their names, and no other flag."""
    folders = [f"-I{path}" for path in (*include, home().include)]
    libraries = [f"-L{home().lib64}", *LIBRARIES, f"-Wl,-rpath,{home().lib64}"]
    command = [compiler(), "-std=c++17", *folders, str(source), *libraries, "-o", str(program)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run_program(program: Path, *words: str, product: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ACLNN_LOOPBACK_SOC": SOC[product], **variables}
    return subprocess.run([program, *words], capture_output=True, text=True, check=False, env=environment, timeout=300)


def sanitized_driver() -> Path:
    """The driver with the whole device in it, built with the sanitizers, from the cache where it was built before."""
    driver = FOLDER / "driver.cpp"

    def make(folder: Path) -> None:
        objects = folder / "objects"
        objects.mkdir()
        compiled = compile_objects([driver, *sorted(SOURCES.glob("*.cpp"))], objects, SANITIZED)
        command = [compiler(), *SANITIZED, *map(str, compiled), "-o", str(folder / "driver")]
        subprocess.run(command, check=True)
        shutil.rmtree(objects)

    return build_once(cache_folder() / "loopback-driver" / build_key(SANITIZED, [driver]), make) / "driver"
