"""Loaded libraries as one name space, and the C prototypes by which their functions are called."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.adapters.cann.bindings import C_TYPES, RUNTIME, Functions, bind_operator, phase_one_prototype
from aclnn_cts.adapters.cann.library import Library, MissingSymbolError, Prototype, load_library, named_libraries
from aclnn_cts.core.case import POINTERS
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.speclang.load import load_specs
from tests.adapters.loopback.support import compiler, home, needs_compiler
from tests.support.programs import OFFERED

SPECS = load_specs()
POINTER = ctypes.c_void_p
NUMBER = Prototype(ctypes.c_int, ())

PARAMETERS: dict[str, list[Any]] = {
    "aclnnConvTbcBackward": [*[POINTER] * 4, ctypes.c_int64, ctypes.c_int8, *[POINTER] * 3],
    "aclnnEmbeddingDenseBackward": [
        *[POINTER] * 2,
        ctypes.c_uint64,
        ctypes.c_uint64,
        ctypes.c_bool,
        POINTER,
    ],
    "aclnnUpsampleNearestExact1dBackward": [*[POINTER] * 3, ctypes.c_double, POINTER],
    "aclnnSoftmaxBackward": [*[POINTER] * 2, ctypes.c_int64, POINTER],
    "aclnnRmsNormGrad": [POINTER] * 6,
    "aclnnCdistBackward": [*[POINTER] * 4, ctypes.c_float, POINTER],
    "aclnnRoiPoolingGradWithArgMax": [*[POINTER] * 4, ctypes.c_int64, ctypes.c_int64, ctypes.c_double],
    "aclnnRotaryPositionEmbeddingGrad": [*[POINTER] * 4, ctypes.c_int64, *[POINTER] * 3],
    "aclnnAvgPool2dBackward": [
        *[POINTER] * 5,
        ctypes.c_bool,
        ctypes.c_bool,
        ctypes.c_int64,
        ctypes.c_int8,
        POINTER,
    ],
    "aclnnBatchNormBackward": [*[POINTER] * 7, ctypes.c_bool, ctypes.c_double, *[POINTER] * 4],
    "aclnnDeformableConv2dBackward": [*[POINTER] * 9, ctypes.c_int64, ctypes.c_int64, ctypes.c_bool, *[POINTER] * 4],
    "aclnnChamferDistanceBackward": [POINTER] * 8,
    "aclnnDropoutBackward": [*[POINTER] * 2, ctypes.c_double, POINTER],
    "aclnnEluBackward": [*[POINTER] * 4, ctypes.c_bool, *[POINTER] * 2],
    "aclnnFlashAttentionUnpaddingScoreGrad": [
        *[POINTER] * 15,
        *[ctypes.c_double] * 2,
        *[ctypes.c_int64] * 3,
        ctypes.c_char_p,
        *[ctypes.c_int64] * 2,
        *[POINTER] * 4,
    ],
    "aclnnGeluBackwardV2": [*[POINTER] * 2, ctypes.c_char_p, POINTER],
    "aclnnGRUBackward": [*[POINTER] * 11, ctypes.c_bool, ctypes.c_int64, ctypes.c_bool, ctypes.c_bool, *[POINTER] * 3],
    "aclnnGroupNormBackward": [*[POINTER] * 5, *[ctypes.c_int64] * 4, *[POINTER] * 4],
    "aclnnLayerNormBackward": [POINTER] * 11,
    "aclnnLeakyReluBackward": [*[POINTER] * 3, ctypes.c_bool, POINTER],
    "aclnnLogSoftmaxBackward": [*[POINTER] * 2, ctypes.c_int64, POINTER],
    "aclnnMaxPool2dWithIndicesBackward": [*[POINTER] * 7, ctypes.c_bool, POINTER],
    "aclnnMaxPool3dWithArgmaxBackward": [*[POINTER] * 7, ctypes.c_bool, POINTER],
    "aclnnMseLossBackward": [*[POINTER] * 3, ctypes.c_int64, POINTER],
    "aclnnNLLLossBackward": [*[POINTER] * 4, ctypes.c_int64, ctypes.c_int64, *[POINTER] * 2],
    "aclnnReflectionPad1dBackward": [POINTER] * 4,
    "aclnnSigmoidBackward": [POINTER] * 3,
    "aclnnSwigluBackwardMxQuantWithDualAxis": [
        *[POINTER] * 3,
        ctypes.c_bool,
        ctypes.c_char_p,
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_double,
        *[POINTER] * 4,
    ],
    "aclnnTanhBackward": [POINTER] * 3,
    "aclnnUpsampleBilinear2dBackwardV2": [
        *[POINTER] * 3,
        ctypes.c_bool,
        ctypes.c_double,
        ctypes.c_double,
        POINTER,
    ],
}
"""The operators' own parameters, from the prototypes of the public headers, for every C type.

The audit holds the prototype of any operator against its document.
"""


def compiled(folder: Path, name: str, text: str) -> Path:
    source, library = folder / f"{name}.cpp", folder / name
    source.write_text(f'extern "C" {{ {text} }}')
    subprocess.run([compiler(), "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return library


@pytest.mark.parametrize("operator", PARAMETERS)
def test_prototypes_follow_from_the_spec(operator: str) -> None:
    prototype = phase_one_prototype(SPECS[operator])
    assert prototype.result is ctypes.c_int32
    assert list(prototype.arguments) == [*PARAMETERS[operator], POINTER, POINTER]


PLAIN = {"int"}
"""Of ConvolutionBackward alone, which the software device does not offer; it crosses as int32_t does."""


def test_the_prototypes_have_every_c_type() -> None:
    types = {parameter.c_type for operator in PARAMETERS for parameter in SPECS[operator].parameters}
    assert types | PLAIN == {parameter.c_type for spec in SPECS.values() for parameter in spec.parameters}


def test_each_c_type_of_a_spec_crosses_the_interface_of_the_software_device() -> None:
    offered = {parameter.c_type for operator in OFFERED for parameter in SPECS[operator].parameters}
    assert offered | PLAIN == {parameter.c_type for spec in SPECS.values() for parameter in spec.parameters}


def test_every_c_type_of_a_spec_is_known() -> None:
    for spec in SPECS.values():
        for parameter in spec.parameters:
            assert parameter.kind in POINTERS or parameter.c_type in C_TYPES


@needs_compiler
def test_the_first_library_that_has_a_symbol_gives_it_and_is_told(tmp_path: Path) -> None:
    custom = compiled(tmp_path, "libcust_opapi.so", "int shared_name() { return 1; }")
    built_in = compiled(tmp_path, "libopapi.so", "int shared_name() { return 2; } int other() { return 3; }")
    library = load_library([str(custom), str(built_in)])
    assert library.bind("shared_name", NUMBER)() == 1
    assert library.bind("other", NUMBER)() == 3
    assert library.symbols == {"shared_name": str(custom.resolve()), "other": str(built_in.resolve())}
    expected = {str(file.resolve()): hashlib.sha256(file.read_bytes()).hexdigest() for file in (custom, built_in)}
    assert library.hashes == expected


@needs_compiler
def test_a_symbol_of_a_dependency_is_told_by_the_file_that_it_lies_in() -> None:
    # The three names are links to one file; where a symbol really lies is what counts.
    library = load_library([str(home().lib64 / "libascendcl.so"), str(home().lib64 / "libopapi.so")])
    library.bind("aclInit", RUNTIME["aclInit"])
    assert library.symbols == {"aclInit": str(home().library.resolve())}


def test_a_symbol_that_nobody_has_is_missing() -> None:
    library = Library({"the C library": ctypes.CDLL("libc.so.6")})
    with pytest.raises(MissingSymbolError, match=r"none of the loaded libraries \(the C library\) has aclnnNothing"):
        library.bind("aclnnNothing", NUMBER)
    functions = Functions(library, {"aclnnNothing": NUMBER, "strlen": Prototype(ctypes.c_size_t, (ctypes.c_char_p,))})
    assert "aclnnNothing" not in functions
    assert functions["strlen"](b"four") == 4
    with pytest.raises(MissingSymbolError):
        bind_operator(library, SPECS["aclnnRmsNormGrad"])


def test_types_set_here_are_nobody_else_s() -> None:
    program = ctypes.CDLL("libc.so.6")
    library = Library({"program": program})
    mine = library.bind("labs", Prototype(ctypes.c_long, (ctypes.c_long,)))
    assert mine(-(2**40)) == 2**40
    assert program.labs.argtypes is None


def test_a_library_that_does_not_load_says_why_unless_it_may_be_missing(tmp_path: Path) -> None:
    broken = tmp_path / "libascendcl.so"
    broken.write_text("no library")
    with pytest.raises(HarnessError, match=r"the CANN runtime cannot be loaded: .*set_env\.sh"):
        load_library([str(broken)])
    library = load_library([str(broken)], optional=frozenset({str(broken)}))
    assert list(library.failures) == [str(broken)]
    assert dict(library.handles) == {}


def test_a_bare_name_is_first_that_of_a_file_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "libmine.so").touch()
    assert named_libraries(["libmine.so", "libnnopbase.so"]) == ("./libmine.so", "libnnopbase.so")
