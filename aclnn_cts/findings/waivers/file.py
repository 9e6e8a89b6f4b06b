"""The form of `waivers/*.yaml`, and its mistakes with file and line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

from msgspec import Meta, structs
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import Fault, current_code
from aclnn_cts.core.outside import YAML_BYTES, read_outside
from aclnn_cts.core.printable import quote
from aclnn_cts.core.trial import Trial
from aclnn_cts.generate.predicate import CompilePredicate, Predicate, compile_predicate
from aclnn_cts.speclang.expression_parser import ExpressionError
from aclnn_cts.speclang.form import NOT_BLANK
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.shared_schema import FileEntry
from aclnn_cts.speclang.yaml_file import read_yaml
from aclnn_cts.store.case_files import read_case_file

NOT_FINITE = ("nan", "inf", "-inf")

_FAULTS = tuple(fault.value for fault in Fault)


_Text = Annotated[str, Meta(pattern=NOT_BLANK)]
_Texts = Annotated[list[_Text], Meta(min_length=1)]
_Operator = Annotated[str, Meta(pattern=r"^aclnn[A-Za-z0-9]+$")]


class WaiverScope(FileEntry, frozen=True, kw_only=True):
    """Which failures a waiver speaks for: all that every part that is given admits."""

    adapter: _Texts
    """As `--adapter` names it: `torch` whatever the options, `torch:device=cpu` where they say so or by default do."""
    kind: _Texts
    """Kinds of fault: what excuses a value must not hide a crash."""
    operator: Annotated[list[_Operator], Meta(min_length=1)] | None = None
    binding: _Text | None = None
    """Hash of the operator's binding whose failures it excuses (`Capabilities.bindings`)."""
    check: _Texts | None = None
    """`promise` in files of version 1."""
    constraint: _Texts | None = None
    product: _Texts | None = None
    dtype: _Texts | None = None
    mode: _Texts | None = None
    output: _Texts | None = None
    got: _Texts | None = None
    """What the worst element at fault came back as, of those in `NOT_FINITE`."""
    version: _Text | None = None
    """Range of versions of the adapter's library (PEP 440)."""
    when: _Text | None = None
    """An expression over the case, or one of the calls that its trial takes."""


_LISTS = frozenset({"adapter", "kind", "operator", "check", "constraint", "product", "dtype", "mode", "output", "got"})
"""Keys of a scope whose value is a list; one item may stand for a list of one."""


class _WaiverModel(FileEntry, frozen=True, kw_only=True):
    id: Annotated[str, Meta(pattern=r"^[a-z0-9]+([.\-][a-z0-9]+)*$")]
    scope: WaiverScope
    reason: _Text
    owner: _Text
    expiry: date
    link: str = ""
    cases: tuple[_Text, ...] = ()
    reason_zh: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """A known failure that a person answers for, until a day."""

    id: str
    scope: WaiverScope
    versions: SpecifierSet | None = None
    """The scope's `version`; None where it names none."""
    when: Predicate | None = None
    """The scope's."""
    reason: str
    owner: str
    expiry: date
    """The last day on which it holds."""
    reason_zh: str = ""
    """The reason in Chinese, where its owner has written it: reports show it in the Chinese page."""
    link: str = ""
    cases: tuple[Trial | Case, ...] = ()
    """Pinned: they run first, and show whether the failure is still there."""
    where: str = ""
    """File and line."""
    file: Path | None = None
    """The file that it was read from."""


class _FileModel(FileEntry, frozen=True, kw_only=True):
    subject: _Text
    waivers: Annotated[list[_WaiverModel], Meta(min_length=1)]


def waiver_texts(waivers: Iterable[Waiver]) -> dict[str, bytes]:
    """The files that waivers were read from, by names of their own: what a run directory keeps."""
    texts: dict[str, bytes] = {}
    for path in dict.fromkeys(waiver.file for waiver in waivers if waiver.file is not None):
        if not path.is_file():
            # A pipe, which can be read only once.
            continue
        name, number = path.name, 1
        while name in texts:
            number += 1
            name = f"{path.stem}-{number}{path.suffix}"
        texts[name] = read_outside(path, limit=YAML_BYTES, expected="a waiver file")
    return texts


def shipped_waivers() -> tuple[Path, ...]:
    """The waiver files that come with the package: what is known of implementations that everybody can run."""
    return tuple(sorted((Path(__file__).resolve().parents[2] / "waivers").glob("*.yaml")))


def pinned_files(path: Path) -> tuple[Path, ...]:
    """The case files that a waiver file names; none of one that has mistakes, which `read_waivers` reports."""
    try:
        model = _read(Problems(read_yaml(path)))
    except UsageError:
        return ()
    return tuple(path.parent / name for entry in (model.waivers if model is not None else ()) for name in entry.cases)


def _read(problems: Problems) -> _FileModel | None:
    """The content of a waiver file, with a list wherever one item stands for it; None after a mistake of form."""
    content = problems.file.content
    entries = content.get("waivers") if isinstance(content, dict) else None
    if isinstance(entries, list):
        content = {**content, "waivers": [_with_lists(entry) for entry in entries]}
    return problems.read(_FileModel, content)


def _with_lists(entry: object) -> object:
    scope = entry.get("scope") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(scope, dict):
        return entry
    named = {"check" if key == "promise" else key: value for key, value in scope.items()}
    listed = {key: [value] if key in _LISTS and isinstance(value, str) else value for key, value in named.items()}
    return {**entry, "scope": listed}


def split_adapter_word(word: str) -> tuple[str, Mapping[str, str]]:
    """Name and options of `name:key=value,...` or `package.module:factory,key=value,...`."""
    head, _, rest = word.partition(":")
    parts = [part for part in rest.split(",") if part]
    plain = [part for part in parts if "=" not in part]
    options = (part.partition("=") for part in parts if "=" in part)
    return ":".join([head, *plain]), {key: value for key, _, value in options}


def may_be_for(scope: WaiverScope, adapter: str) -> bool:
    """Whether a waiver is for an adapter of that name, its options and those that it has by default aside."""
    own = split_adapter_word(adapter)[0]
    return not {own, own.partition(":")[0]}.isdisjoint(split_adapter_word(word)[0] for word in scope.adapter)


def waivers_beside_shipped(paths: Iterable[Path], *, adapter: str) -> tuple[Waiver, ...]:
    """Those that are shipped and those of a user's files; of shipped ones the cases that the adapter may run alone."""
    return read_waivers([*shipped_waivers(), *paths], adapter=adapter)


def read_waivers(
    paths: Iterable[Path],
    *,
    compile_predicate: CompilePredicate = compile_predicate,
    pinned: bool = True,
    adapter: str | None = None,
) -> tuple[Waiver, ...]:
    """Read waiver files, in their order.

    `pinned` false: without the cases that they name. `adapter`: without those of shipped waivers for other adapters.

    Every mistake of a file is reported at once, as a UsageError of lines `file:line: what; what to do`: a waiver
    without reason, owner or expiry, an unknown key, a predicate that does not compile, a pinned case that cannot be
    read, an id that stands twice (in any of the files).
    """
    waivers: dict[str, Waiver] = {}
    messages: list[str] = []
    for path in paths:
        problems = Problems(read_yaml(path))
        for index, waiver in enumerate(_waivers(path, problems, compile_predicate, pinned=pinned, adapter=adapter)):
            if waiver.id in waivers:
                first = waivers[waiver.id].where
                problems.add(
                    ("waivers", index, "id"), f"{quote(waiver.id)} stands twice, first at {first}; give it another id"
                )
            waivers.setdefault(waiver.id, waiver)
        messages += problems.sorted()
    if messages:
        raise UsageError("\n".join(messages))
    return tuple(waivers.values())


def _waivers(
    path: Path, problems: Problems, compiler: CompilePredicate, *, pinned: bool, adapter: str | None
) -> Iterable[Waiver]:
    is_for_all = adapter is None or path not in shipped_waivers()
    model = _read(problems)
    for index, entry in enumerate(model.waivers if model is not None else ()):
        place = ("waivers", index)
        scope = structs.replace(entry.scope, kind=[current_code(code) for code in entry.scope.kind])
        has_cases = pinned and (is_for_all or may_be_for(scope, adapter or ""))
        versions, when = _checked(scope, problems, (*place, "scope"), compiler)
        yield Waiver(
            id=entry.id,
            scope=scope,
            versions=versions,
            when=when,
            reason=entry.reason,
            reason_zh=entry.reason_zh,
            owner=entry.owner,
            expiry=entry.expiry,
            link=entry.link,
            cases=tuple(_pinned(path, entry.cases, problems, (*place, "cases"))) if has_cases else (),
            where=problems.file.location_of(place),
            file=path,
        )


def _checked(
    scope: WaiverScope, problems: Problems, place: tuple[str | int, ...], compiler: CompilePredicate
) -> tuple[SpecifierSet | None, Predicate | None]:
    """What no schema can say of a scope; its range of versions and its predicate."""
    if not (scope.operator or scope.check or scope.constraint):
        problems.add(place, "speaks for everything that the adapter does; name an operator, a check or a constraint")
    if scope.binding is not None and len(scope.operator or ()) != 1:
        problems.add((*place, "binding"), f"{quote(scope.binding)}: is that of one operator; name one in `operator`")
    for word in scope.kind:
        problems.known(word, _FAULTS, (*place, "kind"), "kind of fault")
    for word in scope.dtype or ():
        problems.known(word, DTYPES, (*place, "dtype"), "dtype")
    for word in scope.got or ():
        problems.known(word, NOT_FINITE, (*place, "got"), "number that is not finite")
    versions: SpecifierSet | None = None
    when: Predicate | None = None
    if scope.version is not None:
        try:
            versions = SpecifierSet(scope.version, prereleases=True)
        except InvalidSpecifier:
            problems.add(
                (*place, "version"),
                f"{quote(scope.version)}: no range of versions; expected one such as '>=2.13,<2.14'",
            )
    if scope.when is not None:
        try:
            when = compiler(scope.when)
        except (UsageError, ExpressionError) as error:
            problems.add((*place, "when"), str(error))
    return versions, when


def _pinned(
    path: Path, names: Iterable[str], problems: Problems, place: tuple[str | int, ...]
) -> Iterable[Trial | Case]:
    for index, name in enumerate(names):
        try:
            yield from [entry.content for entry in read_case_file(path.parent / name)]
        except UsageError as error:
            problems.add((*place, index), str(error))
