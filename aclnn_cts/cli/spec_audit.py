"""`aclnn-cts spec audit`: is every statement of a document encoded by a clause?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from aclnn_cts.cli.options import command, edition_option, json_option, output_file, output_option, specs_option
from aclnn_cts.cli.output import console, count, join_words, note, wrap
from aclnn_cts.cli.render import Fields, RepeatedView, TextLine, View, show
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import printable
from aclnn_cts.speclang.load import load_specs, package_folder
from aclnn_cts.speclang.model import Spec

if TYPE_CHECKING:
    from aclnn_cts.authoring.claims import Audit, AuditEntry, Claim, Claims
    from aclnn_cts.authoring.model import Document

FOUND = 1

_TEXT = 300
"""Characters of a statement that are shown."""


@command(example="aclnn-cts spec audit softmax_backward --document aclnnSoftmaxBackward.md")
@click.argument("operators", metavar="[OP]...", nargs=-1)
@click.option(
    "--document",
    "document_path",
    metavar="DOC",
    type=click.Path(path_type=Path),
    help="The operator's document in Markdown, in this edition or another one.",
)
@click.option(
    "--documents",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="A folder with a document OPERATOR.md for each OP; default: every operator with a claims file.",
)
@click.option(
    "--claims",
    "claims_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The claims file; default: claims/STEM.yaml beside the spec.",
)
@specs_option
@edition_option
@output_option(text="Write the claims file: what the spec claims, what is plain, and what is open.")
@json_option
def audit(
    *,
    operators: tuple[str, ...],
    document_path: Path | None,
    documents: Path | None,
    claims_file: Path | None,
    folders: tuple[Path, ...],
    edition: str,
    out: Path | None,
    as_json: bool,
) -> int:
    r"""List the statements of a document that no clause of OP's spec encodes.

    Every table cell, error row, list item and remark is a statement with an address. The claims file says which
    clauses encode it, or why no test can, and which edition of the spec these are clauses of (--edition: another).
    -o makes it from the spec's `claims` and the document's facts. Against another edition, new, changed and vanished
    statements are listed. Exits 1 where anything is listed.
    """
    from aclnn_cts.authoring.claims import claims_path

    specs = load_specs(folders)

    def claims_of(stem: str) -> Path | None:
        beside = [claims_path(folder, stem) for folder in (*folders, package_folder())]
        return next((path for path in beside if path.exists()), None)

    if document_path is not None and documents is None and len(operators) == 1:
        spec = specs.find(operators[0], where="OP")
        claims = claims_file or claims_of(spec.stem)
        return _audit(spec.stem, document_path, claims, folders=folders, edition=edition, out=out, as_json=as_json)
    if documents is None or document_path is not None or claims_file is not None or out is not None:
        raise UsageError(
            "expected `OP --document DOC`, which --claims and -o belong to, or `[OP]... --documents FOLDER`"
        )
    audited = [specs.find(name, where="OP") for name in operators]
    audited = audited or [spec for spec in specs.values() if claims_of(spec.stem) is not None]
    if not audited:
        raise UsageError(
            "no operator has a claims file, and a wheel holds none; name operators, or call this in a checkout"
        )
    found = 0
    for spec in audited:
        claims = claims_of(spec.stem)
        document = documents / f"{spec.operator}.md"
        if not as_json:
            wrap(console(), spec.operator, style="bold")
        found |= _audit(spec.stem, document, claims, folders=folders, edition=edition, out=None, as_json=as_json)
    return found


def _audit(
    stem: str,
    document_path: Path,
    path: Path | None,
    *,
    folders: tuple[Path, ...],
    edition: str,
    out: Path | None,
    as_json: bool,
) -> int:
    """Audit one document with the claims file at `path`."""
    from aclnn_cts.authoring.claims import audit_claims as audited
    from aclnn_cts.authoring.claims import claims_path, edition_of, read_claims
    from aclnn_cts.authoring.lock import outdated_claims, unmatched_claims
    from aclnn_cts.authoring.read import read_document

    edition = edition or (edition_of(path) if path is not None else "")
    spec = load_specs(folders, edition=edition).find(stem)
    document = read_document(document_path)
    if document.operator != spec.operator:
        raise UsageError(f"{document_path}: describes {document.operator}; expected a document of {spec.operator}")
    claims = read_claims(path, spec, is_replaced=out is not None) if path is not None else None
    result = audited(document, claims, spec)
    if out is not None:
        written = _write(out, document, spec, claims, result)
        if claims is None or result.is_same_edition:
            claims, path, result = written, out, audited(document, written, spec)
    stale = tuple(outdated_claims(document, spec, claims)) if claims is not None and result.is_same_edition else ()
    astray = unmatched_claims(document, spec) if result.is_same_edition else ()
    if str(out) == "-":
        pass  # the claims file is there
    else:
        for fields, view, words in _listed_entries(result, document, stale, astray):
            if as_json or view is not None:
                show({"operator": spec.operator, **fields}, view or (), words, as_json=as_json)
    note(_summary(result, path))
    if claims is None:
        beside = claims_path(Path(spec.path).parent, stem)
        note(
            f"{beside} is missing: no claims file says which clauses encode the statements."
            f" Write it with `aclnn-cts spec audit {stem} --document {document_path} -o {beside}`, then state what it"
            " lists under `open` in `claims` of the spec"
        )
    return FOUND if result.missing or stale or astray else 0


def _summary(result: Audit, path: Path | None) -> str:
    from aclnn_cts.authoring.claims import AuditState

    counts = join_words([f"{result.count(state)} {state.value}" for state in AuditState if result.count(state)])
    if path is None:
        return f"{count(result.statements, 'statement')}: {counts}; no claims file"
    edition = "" if result.is_same_edition else ", another edition"
    # Rounded down: 100 % is all.
    done = math.floor(1000 * result.share) / 10
    return f"{count(result.statements, 'statement')}: {counts}; {done:.1f}% done ({path}{edition})"


_ENTRY: View = (
    TextLine("{head}", style="bold"),
    TextLine("{first}", indent=2),
    TextLine("claimed by {clauses}", indent=2),
    RepeatedView(
        "differences",
        (TextLine("document[ ({product})]: {document}", indent=2), TextLine("spec[ ({product})]: {spec}", indent=2)),
    ),
)
_STALE: View = (
    TextLine("stale    {reference}", style="bold"),
    TextLine("the spec claims {what|nothing}; write the claims file again with -o", indent=2),
)
_UNKNOWN: View = (
    TextLine("unknown  {address}", style="bold"),
    TextLine("the spec claims it, and the document has no such statement", indent=2),
)
_REMARK: View = ("remark   {text}",)


def _named(entry: AuditEntry) -> str:
    if entry.statement is None:
        return entry.claim.reference if entry.claim is not None else entry.address
    products = entry.statement.products
    return f"{entry.statement.reference}{f' ({join_words(products)})' if products else ''}"


def _listed_entries(
    result: Audit,
    document: Document,
    stale: Sequence[Claim],
    astray: Sequence[str],
) -> Iterator[tuple[Fields, View | None, Fields]]:
    """What is found, each as a document, its view and its further words; without a view where JSON alone has it."""
    for entry in result.entries:
        statement, claim = entry.statement, entry.claim
        first, *more = statement.text.split("\n", 1) if statement is not None else ("",)
        document_of_entry = {
            "state": entry.state.value,
            "address": entry.address,
            "digest": statement.digest if statement is not None else None,
            "products": None if statement is None or statement.products is None else list(statement.products),
            "text": statement.text if statement is not None else None,
            "clauses": list(claim.clauses) if claim is not None else [],
            "reason": claim.reason.value if claim is not None and claim.reason is not None else None,
            "moved_from": entry.moved_from,
            "differences": [
                {"product": item.product or None, "document": item.document, "spec": item.spec}
                for item in entry.differences
            ],
        }
        words = {
            "head": f"{entry.state.value:<8} {_named(entry)}",
            "first": printable(f"{first} ..." if more else first, _TEXT),
        }
        yield document_of_entry, _ENTRY if entry.is_missing else None, words
    for claim in stale:
        reason = claim.reason.value if claim.reason is not None else None
        fields = {"state": "stale", "address": claim.address, "clauses": list(claim.clauses), "reason": reason}
        yield fields, _STALE, {"reference": claim.reference, "what": reason or claim.clauses}
    for address in astray:
        yield {"state": "unknown", "address": address}, _UNKNOWN, {}
    for remark in document.remarks:
        yield {"state": "remark", "text": remark}, _REMARK, {}


def _write(out: Path, document: Document, spec: Spec, former: Claims | None, result: Audit) -> Claims:
    """Write the claims file of this document, and return it."""
    from aclnn_cts.authoring.claims import FORMAT, MADE, Claims, claims_text
    from aclnn_cts.authoring.lock import lock_claims
    from aclnn_cts.speclang.schema import DocumentModel
    from aclnn_cts.store.output_file import begins_with

    output = output_file(
        out, written_by_us=begins_with(rf"({re.escape(MADE)}\n)?format: {FORMAT}\n".encode()), make_folder=True
    )
    claims = lock_claims(document, spec, former, result)
    language = former.document.language if former is not None else "zh"
    about = {"title": document.operator, "language": language, "sha256": document.sha256}
    about |= {"edition": spec.edition} if spec.edition else {}
    output.write(claims_text(spec.operator, about, claims).encode())
    left = sum(claim.is_open for claim in claims)
    said = sum(claim.address in spec.claims for claim in claims if not claim.is_open)
    if former is not None and not result.is_same_edition:
        moved = [f"{entry.moved_from} is {entry.address}" for entry in result.entries if entry.moved_from is not None]
        note(f"{output}: carried from another edition; correct `claims` of {spec.path}, then write it again")
        for text in moved:
            note(f"moved: {text}")
    else:
        note(f"{output}: {said} by the spec, {len(claims) - left - said} plain, {left} open")
    return Claims(spec.operator, msgspec.convert(about, DocumentModel), claims, is_made=True)
