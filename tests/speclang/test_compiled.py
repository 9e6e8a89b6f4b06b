"""Specs of the package in built form: the same specs, and never stale ones."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from aclnn_cts.speclang import compiled
from aclnn_cts.speclang.compiled import read_compiled, write_compiled
from aclnn_cts.speclang.editions import edition_files
from aclnn_cts.speclang.load import load_spec_file, load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import package_folder

PATHS = [*sorted(package_folder().glob("*_*.yaml")), *edition_files(package_folder())]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the package's, with one spec."""
    path = tmp_path / "softmax_backward.yaml"
    path.write_text(load_specs().find("softmax_backward").text, encoding="utf-8")
    monkeypatch.setattr(compiled, "_kept", lambda path: tmp_path / "compiled" / path.name)
    return tmp_path


def compiled_in(folder: Path) -> tuple[Path, Spec]:
    """The file of the one spec, of which the built form is kept."""
    path = folder / "softmax_backward.yaml"
    spec = load_spec_file(path)
    write_compiled(path, spec)
    return path, spec


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_built_form_is_the_spec(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = load_spec_file(path)
    monkeypatch.setattr(compiled, "_kept", lambda path: tmp_path / "compiled" / path.name)
    write_compiled(tmp_path / path.name, built)
    read = read_compiled(tmp_path / path.name, built.text, name=built.path)
    for item in fields(Spec):
        assert getattr(read, item.name) == getattr(built, item.name), item.name
    assert read is not None
    for product in built.products:
        assert [row[:2] for row in read.tests[product]] == [row[:2] for row in built.tests[product]]


def test_a_changed_file_has_no_built_form(folder: Path) -> None:
    path, spec = compiled_in(folder)
    assert read_compiled(path, spec.text, name="spec") is not None
    assert read_compiled(path, spec.text + "\n", name="spec") is None


def test_changed_code_has_no_built_form(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, spec = compiled_in(folder)
    monkeypatch.setattr(compiled, "_shared", lambda: b"other code")
    assert read_compiled(path, spec.text, name="spec") is None


def test_a_process_older_than_its_code_neither_reads_nor_keeps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, spec = compiled_in(folder)
    [kept] = (folder / "compiled").iterdir()
    monkeypatch.setattr(compiled, "_STARTED", compiled._sources()[0].stat().st_mtime)
    monkeypatch.setattr(compiled, "_is_up_to_date", compiled._is_up_to_date.__wrapped__)
    assert read_compiled(path, spec.text, name="spec") is None
    kept.unlink()
    write_compiled(path, spec)
    assert not kept.exists()


@pytest.mark.parametrize("content", [b"", b"short", None])
def test_a_damaged_built_form_is_none(folder: Path, content: bytes | None) -> None:
    path, spec = compiled_in(folder)
    [kept] = (folder / "compiled").iterdir()
    raw = kept.read_bytes()
    kept.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]) if content is None else content)
    assert read_compiled(path, spec.text, name="spec") is None


def test_a_missing_built_form_is_none(folder: Path) -> None:
    path = folder / "softmax_backward.yaml"
    assert read_compiled(path, path.read_text(encoding="utf-8"), name="spec") is None


def test_clauses_and_claims_are_made_when_they_are_read(folder: Path) -> None:
    path, spec = compiled_in(folder)
    read = read_compiled(path, spec.text, name="spec")
    assert read is not None
    for kept in (read.clauses, read.claims):
        assert "_made" not in vars(kept)
    assert read.clauses == spec.clauses
    assert dict(read.claims) == dict(spec.claims)
