"""What documents contradict or leave unsaid, by operator and address: a page for those who write the documents."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence

from aclnn_cts.authoring.claims import claims_path, edition_of, read_claims
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Clause, Spec
from aclnn_cts.speclang.package import package_folder
from tools.markdown import head, table

_KINDS = ("contradicted", "missing", "ambiguous")
"""Certainties of clauses on what is wrong. A sentence with an open rule is ambiguous at least."""


def document_errors_page(specs: Specs) -> Iterator[str]:
    """The lines of the page; each operator in the edition of its claims file."""
    yield from head("specs/ and specs/claims/")
    yield "# What the documents contradict or leave unsaid"
    yield ""
    yield "One list for each operator's document. An address names the statement: `params/x/dtype` is the cell of x in"
    yield "the column of dtypes, `errors/STATUS/2` the second condition of a status, `limits/3` the third limit. A name"
    yield "of a section without a number means that no statement speaks of it."
    yield ""
    yield "Where readings of a document differ, the suite promises neither success nor an error."
    for own in specs.values():
        spec = _edition(own)
        lines = list(_table(spec))
        if lines:
            yield ""
            yield f"## {spec.operator}"
            yield ""
            yield f"Document: {spec.document}{f' ({spec.edition})' if spec.edition else ''}."
            yield ""
            yield from lines


def document_errors(own: Spec) -> Iterator[str]:
    """The same of one operator, as a section of its page; nothing where nothing is in doubt."""
    lines = list(_table(_edition(own)))
    if lines:
        yield from ("## What the document leaves open or contradicts", "", *lines, "")


def _table(spec: Spec) -> Iterator[str]:
    found = list(_rows(spec))
    rows = [(sentence, kind, at, encoded) for kind in _KINDS for at, of, sentence, encoded in found if of == kind]
    if rows:
        yield from table(("statement", "certainty", "at", "encoded by"), rows)


def _edition(spec: Spec) -> Spec:
    """The spec of the edition that its claims file is of."""
    path = claims_path(package_folder(), spec.stem)
    return _public()[spec.operator] if path.exists() and edition_of(path) == "public" else spec


@functools.cache
def _public() -> Specs:
    return load_specs(edition="public")


def _rows(spec: Spec) -> Iterator[tuple[str, str, str, str]]:
    """Where a document is in doubt, in which way, the sentence and its encoding; one row for a sentence."""
    addresses = _addresses(spec)
    places: dict[tuple[str, str], list[str]] = {}
    encodings: dict[tuple[str, str], list[str]] = {}
    for clause in spec.clauses:
        is_open = any(spec.constraint(name).strength == Strength.OPEN for name in clause.constraints)
        kind = "ambiguous" if is_open and clause.certainty not in _KINDS else clause.certainty
        if kind in _KINDS and clause.interface is None:
            against = [place for other in clause.contradicts for place in addresses.get(other, [_section(other)])]
            key = kind, re.sub(r"\s+", " ", clause.en)
            places.setdefault(key, []).extend([*addresses.get(clause.at, [_section(clause.at)]), *against])
            encodings.setdefault(key, []).append(_encoding(clause))
    for (kind, sentence), found in places.items():
        at = ", ".join(f"`{place}`" for place in dict.fromkeys(found))
        yield at, kind, sentence, ", ".join(dict.fromkeys(encodings[kind, sentence]))


def _encoding(clause: Clause) -> str:
    if clause.constraints:
        return ", ".join(f"`{identifier}`" for identifier in clause.constraints)
    if clause.untestable is not None:
        return f"nothing: {clause.untestable[0]}"
    for what, value in (("check", clause.check), ("example", clause.example)):
        if value is not None:
            return f"{what} {value}"
    return ""


def _addresses(spec: Spec) -> Mapping[str, Sequence[str]]:
    """By clause: the addresses of the statements that it encodes."""
    path = claims_path(package_folder(), spec.stem)
    made: dict[str, list[str]] = {}
    for claim in read_claims(path, spec).claims if path.exists() else ():
        for clause in claim.clauses:
            made.setdefault(clause, []).append(claim.address)
    return made


def _section(clause: str) -> str:
    """The part of a document that a clause is about, where no statement of its own says it."""
    return clause.rpartition(".")[0].replace(".", "/")
