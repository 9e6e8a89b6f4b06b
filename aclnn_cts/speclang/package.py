"""The files in `specs/` that are no operator: where they lie, and what `products.yaml` and `wording.yaml` say."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from aclnn_cts.core.errors import UsageError, nearest
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.yaml_file import YamlFile, read_yaml

if TYPE_CHECKING:
    from aclnn_cts.speclang.schema import FileModel, ProductModel, WordingModel


def package_folder() -> Path:
    """The folder of the specs that ship with the package."""
    return Path(__file__).resolve().parent.parent / "specs"


@functools.cache
def products() -> Mapping[str, ProductModel]:
    """Every product that a spec, a case or `--product` may name, in the order of the file."""
    from aclnn_cts.speclang.schema import ProductsModel  # noqa: PLC0415 - its models are made when a file is read

    path = package_folder() / "products.yaml"
    model = checked_file(read_yaml(path, name=f"specs/{path.name}"), ProductsModel)
    return MappingProxyType(model.products)


@functools.cache
def wording() -> WordingModel:
    """The stock sentences of specs in the short form."""
    from aclnn_cts.speclang.schema import WordingModel  # noqa: PLC0415 - as above

    path = package_folder() / "wording.yaml"
    return checked_file(read_yaml(path, name=f"specs/{path.name}"), WordingModel)


def product_names() -> tuple[str, ...]:
    """Their names."""
    return tuple(products())


def check_product(word: str, *, where: str) -> None:
    """UsageError for a word that names no product."""
    known = product_names()
    if word not in known:
        raise UsageError(
            f"{where}: {shown(word)} is not known; expected one of {', '.join(known)}{nearest(word, known)}"
        )


def checked_file(file: YamlFile, model: type[FileModel]) -> FileModel:
    """The content of a file of this form; UsageError with every mistake and its line."""
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    from aclnn_cts.speclang.problems import Problems  # noqa: PLC0415 - as above

    problems = Problems(file)
    try:
        return model.model_validate(file.content)
    except ValidationError as error:
        problems.validation(error, model)
        raise UsageError("\n".join(problems.sorted())) from None
