"""The catalogue: every public document by the name of its operator, with figures and without its text.

A checkout has it as `specs/catalogue.json` (`python -m tools.catalogue FOLDER` writes it anew), so that `ops --all`
lists documents that are not at hand. It is for authors: a wheel has none.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from aclnn_cts.speclang.package import package_folder

FORMAT = "aclnn-cts/catalogue/1"

FAMILIES: Mapping[str, str] = {
    "attention": "Attention|NsaCompress|RotaryPosition",
    "recurrent": "GRU|Lstm",
    "pooling": "Pool|Unpool|Roi",
    "resize": "Upsample|GridSampler|Interpolate",
    "padding": r"Pad\d",
    "convolution": "Conv|Im2col",
    "loss": "Loss|Entropy|KlDiv",
    "normalisation": "Norm",
    "indexing": "Embedding|Repeat|Unfold|Grouped|Segsum",
    "distance": "Cdist|ChamferDistance",
    "random": "Dropout",
    "activation": "Tanh|Sigmoid|G[el]lu|GeGlu|Elu|Glu|Swi|Silu|Softmax|Hard|Relu|Prelu|Mish|Selu|Softplus|Softshrink|"
    "Threshold|Logit|Modulate",
}
"""Families by what names of operators hold; the first that fits, else `other`."""


class CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One public document in figures."""

    operator: str
    family: str
    products: tuple[str, ...]
    """Those that it calls supported."""
    parameters: int
    statements: int
    open: int
    """Places that a draft leaves to a person."""


class _Catalogue(msgspec.Struct, frozen=True):
    format: str
    documents: tuple[CatalogueEntry, ...]


def family_of(operator: str) -> str:
    """The family of an operator by its C name."""
    return next((name for name, words in FAMILIES.items() if re.search(words, operator)), "other")


def catalogue_path() -> Path:
    """Where a checkout has the catalogue."""
    return package_folder() / "catalogue.json"


@functools.lru_cache(maxsize=1)
def catalogue() -> Mapping[str, CatalogueEntry]:
    """The documents by C name; none in a wheel."""
    if not catalogue_path().is_file():
        return {}
    found = msgspec.json.decode(catalogue_path().read_bytes(), type=_Catalogue)
    return {entry.operator: entry for entry in found.documents}
