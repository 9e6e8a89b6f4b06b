"""The files in `specs/` that are no operator: where they lie, and what is in them."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.printable import quote
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.shared_schema import FileModel, ProductModel, ProductsModel
from aclnn_cts.speclang.yaml_file import YamlFile, read_yaml

_FAMILY = re.compile(r"^family: *([a-z0-9_]+)", re.MULTILINE)


def package_folder() -> Path:
    """The folder of the specs that ship with the package."""
    return Path(__file__).resolve().parent.parent / "specs"


def folder_of(path: str, folders: Sequence[Path]) -> Path:
    """The folder of a spec's file: one of a user's own, or that of the package."""
    return next((folder for folder in folders if Path(path).parent == folder), package_folder())


def digest_with_families(text: str) -> str:
    """The SHA-256 of a spec's text with those of its families behind it."""
    digest = hashlib.sha256(text.encode())
    while (named := _FAMILY.search(text)) is not None:
        path = package_folder() / "families" / f"{named[1]}.yaml"
        if not path.exists():
            break
        text = path.read_text(encoding="utf-8")
        digest.update(text.encode())
    return digest.hexdigest()


@functools.cache
def products() -> Mapping[str, ProductModel]:
    """Every product that a spec, a case or `--product` may name, in the order of the file."""
    return MappingProxyType(shared_file("products", ProductsModel).products)


def shared_file(stem: str, form: type[FileModel]) -> FileModel:
    """The content of a file of the package that is of this form."""
    return checked_file(read_yaml(package_folder() / f"{stem}.yaml", name=f"specs/{stem}.yaml"), form)


@functools.lru_cache(maxsize=256)
def recorded_lines(stem: str) -> tuple[bytes, ...]:
    """The calls of training runs and networks that an operator has, one case a line; none where it has no file."""
    path = package_folder() / "real" / f"{stem}.jsonl"
    return tuple(path.read_bytes().splitlines()) if path.exists() else ()


def product_names() -> tuple[str, ...]:
    """Their names."""
    return tuple(products())


def check_product(word: str, *, where: str) -> None:
    """UsageError for a word that names no product."""
    known = product_names()
    if word not in known:
        raise UsageError(
            f"{where}: {quote(word)} is not known; expected one of {', '.join(known)}{did_you_mean(word, known)}"
        )


def checked_file(file: YamlFile, form: type[FileModel]) -> FileModel:
    """The content of a file of this form; UsageError with every mistake and its line."""
    problems = Problems(file)
    content = problems.read(form, file.content)
    if content is None:
        raise UsageError("\n".join(problems.sorted()))
    return content
