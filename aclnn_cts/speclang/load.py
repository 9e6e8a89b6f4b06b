"""The specs that a command works with: those of the package, and those of a user's own folders.

What builds them is imported when the first is read: many a runner, such as a spare, ends before that.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.printable import quote
from aclnn_cts.speclang.compiled import read_compiled, write_compiled
from aclnn_cts.speclang.editions import check_edition, edition_file, edition_files
from aclnn_cts.speclang.model import Clause, Spec
from aclnn_cts.speclang.package import package_folder
from aclnn_cts.speclang.yaml_file import YamlFile, parse_yaml, read_yaml

if TYPE_CHECKING:
    from aclnn_cts.speclang.build import Interface
    from aclnn_cts.speclang.spec_problems import SpecProblems

__all__ = [
    "SHARED_FILES",
    "LintedFile",
    "Specs",
    "compile_shipped",
    "lint_files",
    "load_spec_file",
    "load_specs",
    "package_folder",
    "specs_from_texts",
]

SHARED_FILES = frozenset({"interface", "products", "precision", "wording"})
"""Stems of the files in `specs/` that are no operator."""

_NAME = re.compile(r"^operator: *(\w+) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Unread:
    """An operator of the package whose file is read when somebody asks for it."""

    operator: str
    file: Path

    @property
    def stem(self) -> str:
        return self.file.stem

    @property
    def path(self) -> str:
        return _shown(self.file)


class Specs(Mapping[str, Spec]):
    """Specs by C name, in the order of their files; found by stem too.

    Those of the package are built when they are asked for; UsageError where one has a mistake.
    """

    def __init__(self, specs: Sequence[Spec | _Unread]) -> None:
        self._specs: dict[str, Spec | _Unread] = {}
        self._named: dict[str, str] = {}
        for spec in specs:
            names = (spec.operator, spec.stem)
            defined = next((self._named[name] for name in names if name in self._named), None)
            if defined is not None:
                raise UsageError(
                    f"{spec.path}: {spec.operator} ({spec.stem}) is already defined by {self._specs[defined].path}; "
                    "rename or remove one"
                )
            self._specs[spec.operator] = spec
            self._named |= dict.fromkeys(names, spec.operator)

    def __getitem__(self, operator: str) -> Spec:
        found = self._specs[operator]
        return _shipped(found) if isinstance(found, _Unread) else found

    def __contains__(self, operator: object) -> bool:
        return operator in self._specs

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    @property
    def names(self) -> Mapping[str, str]:
        """Operators by their names and stems; no spec is built."""
        return MappingProxyType(self._named)

    def for_product(self, product: str) -> Specs:
        """Those whose documents name a product."""
        return Specs([spec for spec in self.values() if product in spec.products])

    @property
    def interface_clauses(self) -> tuple[Clause, ...]:
        """The clauses on what all operators have in common."""
        interface, _ = _interface()
        return interface.clauses

    def find(self, word: str, *, where: str = "operator") -> Spec:
        """An operator by its C name or its file's stem; UsageError for an unknown one."""
        if word in self._named:
            return self[self._named[word]]
        raise UsageError(
            f"{where}: {quote(word)} is not known; `aclnn-cts ops` lists the operators{did_you_mean(word, self._named)}"
        )

    def select(self, words: Sequence[str]) -> tuple[Spec, ...]:
        """The operators named, in the order of the files; all where none is named."""
        if not words:
            return tuple(self.values())
        chosen = {self.find(word).operator for word in words}
        return tuple(self[operator] for operator in self._specs if operator in chosen)


def _operator_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UsageError(f"{folder}: is no folder; --specs takes a folder with one YAML file an operator")
    return sorted(path for path in folder.glob("*.yaml") if path.stem not in SHARED_FILES)


def _shown(path: Path) -> str:
    folder = package_folder()
    return f"specs/{path.relative_to(folder).as_posix()}" if path.is_relative_to(folder) else str(path)


def _interface_in(path: Path) -> tuple[Interface, tuple[str, ...]]:
    """What a file says of all operators, and what is wrong with it."""
    from aclnn_cts.speclang.build import build_interface  # noqa: PLC0415 - as the module says

    interface, problems = build_interface(read_yaml(path, name=_shown(path)))
    return interface, problems.sorted()


@functools.cache
def _interface() -> tuple[Interface, tuple[str, ...]]:
    return _interface_in(package_folder() / "interface.yaml")


def _built(file: YamlFile, stem: str) -> tuple[Spec | None, SpecProblems]:
    """The spec of an operator's file."""
    from aclnn_cts.speclang.build import build_spec  # noqa: PLC0415 - as the module says

    interface, _ = _interface()
    return build_spec(file, stem=stem, interface=interface)


def load_specs(folders: Sequence[Path] = (), *, edition: str = "") -> Specs:
    """The package's operators and those of `folders`. A mistake in the latter is a UsageError that shows the first few.

    `edition`: of the documents; an operator that it lacks has its own.
    """
    check_edition(edition, (package_folder(), *folders))
    specs: list[Spec | _Unread] = list(_unread(package_folder(), edition))
    messages: list[str] = []
    for path in (edition_file(path, edition) for folder in folders for path in _operator_files(folder)):
        spec, problems = _read(path)
        messages += problems
        if spec is not None:
            specs.append(spec)
    _raise_for(messages)
    return Specs(specs)


def _raise_for(messages: Sequence[str]) -> None:
    if messages:
        first = "\n".join(messages[:5])
        rest = f"\n(and {len(messages) - 5} more)" if len(messages) > 5 else ""
        raise UsageError(f"{first}{rest}\nthe specs cannot be used; `aclnn-cts spec lint` shows all")


def _read(path: Path) -> tuple[Spec | None, Sequence[str]]:
    """The spec of an operator's file, and what is wrong with it."""
    spec, problems = _built(read_yaml(path, name=_shown(path)), path.stem)
    messages = problems.sorted()
    if spec is not None and spec.open:
        messages = (*messages, _draft(spec))
    return spec, messages


# What ships with the package stays as it is while a process runs.
@functools.lru_cache(maxsize=4)
def _unread(folder: Path, edition: str) -> tuple[_Unread, ...]:
    """The operators of the package by the line of each file that names them."""
    found = []
    for path in _operator_files(folder):
        name = _NAME.search(path.read_text(encoding="utf-8"))
        if name is None:
            raise UsageError(f"{_shown(path)}: names no operator; expected a line `operator: aclnn...`")
        found.append(_Unread(name[1], edition_file(path, edition)))
    return tuple(found)


@functools.cache
def _shipped(unread: _Unread) -> Spec:
    """The spec of an operator of the package; UsageError with the first mistakes."""
    spec = read_compiled(unread.file, unread.file.read_text(encoding="utf-8"), name=unread.path)
    if spec is not None:
        return spec
    spec, messages = _read(unread.file)
    _raise_for(messages)
    if spec is None:
        raise UsageError(f"{unread.path}: no spec; `aclnn-cts spec lint` shows why")
    if not sys.dont_write_bytecode:
        with contextlib.suppress(OSError):
            write_compiled(unread.file, spec)
    return spec


def compile_shipped() -> None:
    """Keep every spec of the package in its built form, for a wheel; UsageError where one has a mistake."""
    folder = package_folder()
    for path in (*_operator_files(folder), *edition_files(folder)):
        spec, messages = _read(path)
        _raise_for(messages)
        if spec is not None:
            write_compiled(path, spec)


def _draft(spec: Spec) -> str:
    more = ", ..." if len(spec.open) > 3 else ""
    return (
        f"{spec.path}:1: a draft, open at {', '.join(spec.open[:3])}{more}; settle these places, or move the file away"
    )


@dataclass(frozen=True, slots=True)
class LintedFile:
    """An operator file whose form and names are right: its spec, and the places for what is found later."""

    spec: Spec
    problems: SpecProblems


def specs_from_texts(texts: Mapping[str, str]) -> Specs:
    """The specs of these texts by stem, and no others, such as a run used them; UsageError with every message."""
    _, messages = _interface()
    specs: list[Spec] = []
    for stem, text in texts.items():
        spec, problems = _built(parse_yaml(text, name=f"specs/{stem}.yaml"), stem)
        messages = (*messages, *problems.sorted())
        if spec is not None:
            specs.append(spec)
    if messages:
        raise UsageError("\n".join(messages))
    return Specs(specs)


def lint_files(files: Sequence[Path] = (), *, edition: str = "") -> tuple[list[LintedFile], list[str]]:
    """Build each file (all of the package where none is named) and return those without a mistake and every message.

    `edition`: build that of the package, or of each file that has it, instead.
    """
    folder = package_folder()
    check_edition(edition, (folder, *(path.parent for path in files)))
    messages = [] if files else list(_interface()[1])
    linted: list[LintedFile] = []
    paths = list(files) or [*([] if edition else _operator_files(folder)), *edition_files(folder, edition)]
    for path in (edition_file(path, edition) for path in paths) if files else paths:
        if path.stem in SHARED_FILES - {"interface"}:
            continue
        try:
            if path.stem == "interface":
                messages.extend(_interface_in(path)[1])
                continue
            file = read_yaml(path, name=_shown(path))
        except UsageError as error:
            messages.append(str(error))
            continue
        spec, problems = _built(file, path.stem)
        messages.extend(problems.sorted())
        if spec is not None and not problems.messages:
            linted.append(LintedFile(spec, problems))
    return linted, messages


def load_spec_file(path: Path) -> Spec:
    """Build an operator's spec from one file, such as that of a run directory; UsageError with every message."""
    spec, problems = _built(read_yaml(path, name=_shown(path)), path.stem)
    if spec is None or problems.messages:
        raise UsageError("\n".join(problems.sorted()))
    return spec
