"""What is true of all documents and their specs: pointers, examples, clauses, sections, codes and editions."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from aclnn_cts.core.case import CallOptions, Case
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.kinds import Strength
from aclnn_cts.speclang.load import package_folder
from aclnn_cts.speclang.yaml_file import read_yaml
from tests.speclang.documents.support import (
    ANYTHING,
    EITHER,
    ERROR,
    INVALID,
    NULL,
    SOFTMAX,
    SPECS,
    conv,
)

DOCUMENTS = Path(__file__).parents[3] / "shared" / "docs"


@pytest.mark.parametrize("pointer", ["workspaceSize", "executor", "workspace"])
def test_no_document_says_that_a_pointer_of_the_call_is_checked(pointer: str) -> None:
    for operator, arguments in (("aclnnConvTbcBackward", conv()), ("aclnnSoftmaxBackward", SOFTMAX)):
        found = evaluate(SPECS[operator], Case(operator, arguments, call=CallOptions(null=(pointer,))))
        assert [item.id for item in found.broken] == [f"interface.{pointer}.null"]
        assert (found.strength, found.statuses) == (Strength.OPEN, ANYTHING)


EXAMPLES = {
    "aclnnBatchNormBackward": "gradOut.layout_nd",
    "aclnnConvTbcBackward": "self.format_nd gradInput.format_nd gradWeight.format_nd",
    "aclnnFastBatchNormBackward": "gradOut.layout_nd",
    "aclnnGRUBackward": "hx.rank_two",
    "aclnnGridSampler3DBackward": "gradOutput.format_nd input.format_nd grid.format"
    " inputGrad.format_nd gridGrad.format",
    "aclnnLightningIndexerGrad": "spareIndices.dtype_program",
    "aclnnLstmBackward": " ".join(
        f"{name}.format"
        for name in ("input", "hx", "dy", "dh", "dc", *"igfohc", "tanhc", "dxOut", "dhPrevOut", "dcPrevOut")
    ),
    "aclnnMoeTokenUnpermuteWithEpGrad": "topkNum.experts",
    "aclnnRmsNormGrad": "dy.format_ncdhw x.format_ncdhw rstd.format_ncdhw gamma.format_ncdhw dxOut.format_ncdhw"
    " dgammaOut.format_ncdhw rstd.leading",
    "aclnnRoiAlignV2Backward": "boxes.corners",
    "aclnnUpsampleBicubic2dAAGrad": "out.grows",
    "aclnnUpsampleBilinear2dAABackward": "out.grows",
    "aclnnUpsampleLinear1dBackward": "scales.agrees",
    "aclnnUpsampleNearest1dBackward": "scales.agrees",
}
"""What a document's example contradicts: nothing but what the document leaves open by it."""


@pytest.mark.parametrize("operator", SPECS)
def test_examples(operator: str) -> None:
    spec = SPECS[operator]
    (example,) = spec.examples
    for product in spec.products if example.product is None else (example.product,):
        found = evaluate(spec, Case(operator, example.arguments, Target(product=product)))
        assert {item.id for item in found.broken} == set(EXAMPLES.get(operator, "").split())
        assert all(item.strength == Strength.OPEN for item in found.broken)


def test_every_clause_is_encoded_once_in_both_languages() -> None:
    assert set(EXAMPLES) <= set(SPECS)
    for spec in SPECS.values():
        addresses = [clause.at for clause in spec.clauses]
        assert len(set(addresses)) == len(addresses)
        assert len(addresses) >= (75 if spec.operator in EXAMPLES else 50)
        interface = {clause.at for clause in SPECS.interface_clauses}
        for clause in spec.clauses:
            given = (clause.constraints, clause.check, clause.interface, clause.example, clause.untestable)
            assert sum(map(bool, given)) == 1, (spec.operator, clause.at)
            assert clause.interface is None or clause.interface in interface
            assert clause.en.strip(), clause.at
            assert clause.en.isascii(), clause.at
            assert any("\u4e00" <= letter <= "\u9fff" for letter in clause.zh), clause.at
            assert clause.untestable is None or all(clause.untestable), clause.at
        encoded = {identifier for clause in spec.clauses for identifier in clause.constraints}
        own = {item.id for item in spec.constraints if not item.id.startswith("interface.")}
        assert encoded == own


SECTIONS = ("products", "prototype", "function", "params", "returns", "phase2", "limits", "example")


def test_every_section_and_parameter_has_clauses() -> None:
    for spec in SPECS.values():
        heads = {clause.at.split(".")[0] for clause in spec.clauses}
        assert heads == set(SECTIONS)
        named = {clause.at.split(".")[1] for clause in spec.clauses if clause.at.startswith("params.")}
        assert named == {*(item.name for item in spec.parameters), "workspaceSize", "executor"}
        numbers = [clause.at for clause in spec.clauses if clause.at.startswith("phase2.")]
        assert {address.split(".")[1] for address in numbers} == {
            "workspace", "workspaceSize", "executor", "stream", "returns",
        }  # fmt: skip


def test_listed_codes_are_those_that_the_documents_name() -> None:
    named = {
        "aclnnConvTbcBackward": {*NULL, *INVALID},
        "aclnnEmbeddingDenseBackward": {*NULL, *INVALID},
        "aclnnRmsNormGrad": {*NULL, *EITHER},
        "aclnnSoftmaxBackward": {*NULL, *INVALID},
        "aclnnUpsampleNearestExact1dBackward": {*NULL, *INVALID},
    }
    for operator, codes in named.items():
        found = {name for item in SPECS[operator].constraints for name in item.statuses} - {*ERROR}
        assert found == codes


@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the documents' folder `shared` does not lie beside the checkout")
@pytest.mark.parametrize("stem", [*(spec.stem for spec in SPECS.values()), "interface"])
def test_the_specs_name_the_edition_of_their_document(stem: str) -> None:
    content = read_yaml(package_folder() / f"{stem}.yaml").content
    documents = content["documents"] if stem == "interface" else [content["document"]]
    for document in documents:
        title = document["title"] if "title" in document else content["operator"]
        editions = (DOCUMENTS / f"{title}.txt", DOCUMENTS / "public" / f"{title}.md")
        known = {hashlib.sha256(path.read_bytes()).hexdigest() for path in editions if path.exists()}
        assert document["sha256"] in known
