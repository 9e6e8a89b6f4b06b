"""All published documents, where they lie beside the checkout: what the fixtures check holds for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from aclnn_cts.authoring.claims import AuditState, audit_claims, claims_path, claims_text, edition_of, read_claims
from aclnn_cts.authoring.draft import draft_spec
from aclnn_cts.authoring.lock import lock_claims
from aclnn_cts.authoring.model import Statement
from aclnn_cts.authoring.read import read_document
from aclnn_cts.generate.proof import lint_specs
from aclnn_cts.speclang.load import load_specs, package_folder
from aclnn_cts.speclang.model import Spec

PUBLIC = Path(__file__).parents[2].parent / "shared" / "docs" / "public"
CLAIMED = sorted(path.stem for path in claims_path(package_folder(), "x").parent.glob("*.yaml"))

public_documents = pytest.mark.skipif(
    not PUBLIC.is_dir(), reason="the 139 public documents lie beside the checkout, in ../shared/docs/public"
)


def claimed_spec(stem: str) -> Spec:
    return load_specs(edition=edition_of(claims_path(package_folder(), stem))).find(stem)


@public_documents
def test_every_document_is_read_and_drafted(tmp_path: Path) -> None:
    paths = sorted(PUBLIC.glob("*.md"))
    assert len(paths) == 139
    clean = 0
    for path in paths:
        document = read_document(path)
        assert len({item.address for item in document.statements}) == len(document.statements)
        assert document.parameters, path
        assert document.errors, path
        assert any(document.products.values()), path
        draft = draft_spec(document)
        drafted = tmp_path / f"{draft.stem}.yaml"
        drafted.write_text(draft.text, encoding="utf-8")
        clean += not lint_specs([drafted]).mistakes
    assert clean >= 134


@public_documents
@pytest.mark.parametrize("stem", CLAIMED)
def test_claims_of_the_package_fit_the_public_edition(stem: str) -> None:
    spec = claimed_spec(stem)
    claims = read_claims(claims_path(package_folder(), stem), spec)
    result = audit_claims(read_document(PUBLIC / f"{spec.operator}.md"), claims, spec)
    assert result.is_same_edition
    assert result.missing == ()
    assert result.share == 1.0
    assert result.count(AuditState.UNTESTABLE) <= 0.25 * result.statements


@public_documents
@pytest.mark.parametrize("stem", CLAIMED)
def test_claims_of_the_package_are_those_that_a_command_makes(stem: str) -> None:
    spec, path = claimed_spec(stem), claims_path(package_folder(), stem)
    document = read_document(PUBLIC / f"{spec.operator}.md")
    about = {"title": spec.operator, "language": "zh", "sha256": document.sha256}
    about |= {"edition": spec.edition} if spec.edition else {}
    made = claims_text(spec.operator, about, lock_claims(document, spec, None, audit_claims(document, None, spec)))
    assert path.read_text(encoding="utf-8") == made, f"make claims OP={stem} DOCUMENTS=../shared/docs/public"


@pytest.mark.parametrize("stem", CLAIMED)
def test_claims_of_the_package_have_what_its_specs_claim(stem: str) -> None:
    spec = claimed_spec(stem)
    claims = {claim.address: claim for claim in read_claims(claims_path(package_folder(), stem), spec).claims}
    for address, said in spec.claims.items():
        if address in claims:
            claim = claims[address]
            assert claim.reason == said.reason
            assert set(claim.clauses) >= set(said.clauses) if said.is_plain else claim.clauses == said.clauses


@pytest.mark.parametrize("stem", CLAIMED)
def test_claims_of_the_package_name_clauses_of_its_specs(stem: str) -> None:
    assert read_claims(claims_path(package_folder(), stem), claimed_spec(stem)).claims


MAY_BE_EMPTY = Statement(address="", text="支持空Tensor。").digest


@pytest.mark.parametrize("stem", CLAIMED)
def test_a_sentence_that_allows_empty_tensors_is_claimed_by_a_clause_on_them(stem: str) -> None:
    """Calls must meet its condition, then; or the clause says why there are none: the document contradicts itself."""
    spec = claimed_spec(stem)
    clauses = {item.at: item for item in spec.clauses}
    for claim in read_claims(claims_path(package_folder(), stem), spec).claims:
        if claim.reference.endswith(f"#{MAY_BE_EMPTY}") and claim.reason is None:
            for clause in map(clauses.__getitem__, claim.clauses):
                assert clause.certainty != "stated" or "empty(" in (clause.when_text or ""), (
                    claim.reference,
                    clause.en,
                )
