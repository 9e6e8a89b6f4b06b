"""The call of an example program, as a spec writes it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from aclnn_cts.authoring.model import CParameter, Document, Statement
from aclnn_cts.authoring.program import example_arguments
from aclnn_cts.authoring.read import read_document

DOCUMENTS = Path(__file__).parents[1] / "fixtures" / "documents"
PROGRAM = """
std::vector<int64_t> gShape = {2, 2};
std::vector<float> gHostData = {0, 1, 2, 3};
std::vector<float> xHostData(4, 1.5);
std::vector<int64_t> padData = {1, -1};
float alphaValue = 1.2f;
int64_t mode = 2;
auto ret = CreateAclTensor(gHostData, gShape, &gAddr, aclDataType::ACL_FLOAT, &grad);
ret = CreateAclTensor<float>(xHostData, gShape, &xAddr, aclDataType::ACL_DOUBLE, aclFormat::ACL_FORMAT_NCL, &x);
ret = CreateAclTensor(outHostData, gShape, &oAddr, aclDataType::ACL_BF16, &out);
aclIntArray *padding = aclCreateIntArray(padData.data(), 2);
alpha = aclCreateScalar(&alphaValue, aclDataType::ACL_FLOAT);
ret = aclnnMineBackwardGetWorkspaceSize(grad, x, padding, alpha, mode, true, nullptr, out, &workspaceSize, &executor);
"""
PARAMETERS = {
    "gradOutput": "const aclTensor *",
    "self": "const aclTensor *",
    "padding": "const aclIntArray *",
    "alpha": "const aclScalar *",
    "mode": "int64_t",
    "flag": "bool",
    "bias": "const aclTensor *",
    "gradInput": "aclTensor *",
}


def document(program: str) -> Document:
    plain = read_document(DOCUMENTS / "aclnnTwistBackward.md")
    return dataclasses.replace(
        plain,
        operator="aclnnMineBackward",
        parameters=tuple(CParameter(name, c_type) for name, c_type in PARAMETERS.items()),
        statements=(Statement("example/code/1", program),),
    )


def test_arguments_are_those_of_the_call() -> None:
    assert example_arguments(document(PROGRAM)) == {
        "gradOutput": "FLOAT [2, 2] = 0..3",
        "self": "DOUBLE [2, 2] NCL = 1.5",
        "padding": [1, -1],
        "alpha": {"scalar": {"dtype": "FLOAT", "value": 1.2}},
        "mode": 2,
        "flag": True,
        "bias": None,
        "gradInput": "BF16 [2, 2]",
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{0, 1, 2, 3}", "{0, 1, 2}"),
        ("int64_t mode = 2", "int64_t mode = pick()"),
        ("ACL_FLOAT, &grad", "ACL_FLOAT16, &grad"),
        ("&workspaceSize, &executor", "&executor"),
        ("aclnnMineBackwardGet", "aclnnOtherBackwardGet"),
    ],
)
def test_a_program_in_another_form_is_left_to_a_person(old: str, new: str) -> None:
    assert example_arguments(document(PROGRAM.replace(old, new))) is None
