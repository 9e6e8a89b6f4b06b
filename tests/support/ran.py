from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from aclnn_cts.cli.main import main
from aclnn_cts.core.verdict import Record
from aclnn_cts.store.run_directory import RunDirectory

RESULT = re.compile(
    r"RESULT verdict=(?P<verdict>conforms|conforms-with-waivers|fails|inconclusive|nothing-found)"
    r" judged=(?P<judged>\d+)% cases=(?P<cases>\d+) passed=(?P<passed>\d+) failed=(?P<failed>\d+)"
    r" waived=(?P<waived>\d+) errors=(?P<errors>\d+) skipped=(?P<skipped>\d+)"
    r" out_of_scope=(?P<out_of_scope>\d+) run=(?P<run>.+)"
)


class Ran(NamedTuple):
    """One call of `run` or `replay`."""

    code: int
    out: str
    err: str
    path: Path

    @property
    def directory(self) -> RunDirectory:
        return RunDirectory(self.path)

    @property
    def records(self) -> list[Record]:
        with self.directory.results() as results:
            return list(results.records())

    @property
    def kinds(self) -> list[str]:
        """What became of each trial: its result, and the kind of a fault or skip."""
        return [" ".join(filter(None, (item.verdict.result, item.verdict.kind))) for item in self.records]

    @property
    def result(self) -> dict[str, Any]:
        """The figures of the RESULT line, which must be the last."""
        found = RESULT.fullmatch(self.out.splitlines()[-1])
        assert found is not None, self.out
        return {key: int(value) if value.isdigit() else value for key, value in found.groupdict().items()}


@pytest.fixture
def ran(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Call the command in this process; its run goes into a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "adapters")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("ACLNN_CTS_TRACEBACK", raising=False)
    number = 0

    def call(*arguments: str, out: Path | None = None) -> Ran:
        nonlocal number
        number += 1
        path = out or tmp_path / f"run{number}"
        capsys.readouterr()
        code = main([*arguments, "-o", str(path)])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err, path)

    return call


@pytest.fixture(scope="module", name="key")
def make_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private key, with its public half beside it."""
    folder = tmp_path_factory.mktemp("keys")
    private = Ed25519PrivateKey.generate()
    path = folder / "key.pem"
    path.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    path.with_suffix(".pub").write_bytes(
        private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return path
