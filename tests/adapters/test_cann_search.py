"""Where the libraries of an installation are looked for, in which order, and which are never taken together."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from pathlib import Path

import pytest

from aclnn_cts.adapters.cann.library import (
    CLASSIC,
    META,
    RUNTIME,
    SPLIT,
    custom_folders,
    find_libraries,
    library_folders,
    named_libraries,
)
from aclnn_cts.adapters.registry import parse_adapter_word
from aclnn_cts.core.errors import UsageError

MACHINE = platform.machine()
BETWEEN = ("libaclnn_math.so", "libaclnn_ops_infer.so", "libaclnn_ops_train.so")


def install(folder: Path, names: Iterable[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return folder


def test_the_toolkit_s_own_variables_stand_before_the_usual_places() -> None:
    environment = {
        "ASCEND_OPP_PATH": "/c/opp",
        "ASCEND_TOOLKIT_HOME": "/b",
        "ASCEND_HOME_PATH": "/a",
        "LD_LIBRARY_PATH": "/never/read/here",
    }
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[MACHINE]
    assert library_folders(environment, prefixes=("/usual",)) == tuple(
        map(
            Path,
            (
                "/a/lib64",
                "/b/lib64",
                "/c/opp/lib64",
                f"/c/{MACHINE}-linux/lib64",
                f"/c/{other}-linux/lib64",
                "/usual/lib64",
            ),
        )
    )


def test_an_empty_variable_is_none() -> None:
    assert library_folders({"ASCEND_HOME_PATH": "", "ASCEND_OPP_PATH": ""}, prefixes=()) == ()
    assert custom_folders({"ASCEND_CUSTOM_OPP_PATH": "", "ASCEND_OPP_PATH": ""}) == ()


def test_the_first_folder_that_has_a_library_decides(tmp_path: Path) -> None:
    first = install(tmp_path / "a" / "lib64", ["libnnopbase.so"])
    second = install(tmp_path / "b" / "lib64", ["libascendcl.so", "libnnopbase.so", "libopapi.so"])
    third = install(tmp_path / "c" / "lib64", ["libascendcl.so", "libnnopbase.so", "libopapi.so"])
    environment = {"ASCEND_HOME_PATH": str(tmp_path / "a"), "ASCEND_TOOLKIT_HOME": str(tmp_path / "b")}
    chosen = find_libraries(environment, prefixes=(str(tmp_path / "c"),))
    assert chosen.files == tuple(
        map(str, (second / "libascendcl.so", first / "libnnopbase.so", second / "libopapi.so"))
    )
    assert find_libraries({}, prefixes=(str(tmp_path / "c"),)).runtime == str(third / "libascendcl.so")


def test_the_runtime_s_new_name_stands_before_its_classic_one(tmp_path: Path) -> None:
    folder = install(tmp_path / "lib64", RUNTIME)
    assert find_libraries({"ASCEND_HOME_PATH": str(tmp_path)}, prefixes=()).runtime == str(folder / "libacl_rt.so")


def test_what_is_in_no_folder_is_left_to_the_loader() -> None:
    assert find_libraries({}, prefixes=()).files == ("libascendcl.so", "libnnopbase.so", "libopapi.so")


@pytest.mark.parametrize(
    ("present", "taken"),
    [
        (CLASSIC, CLASSIC),
        (SPLIT, SPLIT),
        ((*CLASSIC, *SPLIT), SPLIT),
        ((*CLASSIC, "libopapi_nn.so", "libopapi_math.so"), ("libopapi_math.so", "libopapi_nn.so")),
        (BETWEEN, BETWEEN),
        ((*CLASSIC, *BETWEEN), CLASSIC),
    ],
)
def test_of_the_operator_libraries_one_family_is_taken(
    present: tuple[str, ...], taken: tuple[str, ...], tmp_path: Path
) -> None:
    folder = install(tmp_path / "lib64", [*RUNTIME, *META, *present])
    chosen = find_libraries({"ASCEND_HOME_PATH": str(tmp_path)}, prefixes=())
    assert chosen.operators == tuple(str(folder / name) for name in taken)
    names = {Path(file).name for file in chosen.files}
    assert not (names.intersection(CLASSIC) and names.intersection(SPLIT))


def test_families_of_two_folders_are_not_mixed(tmp_path: Path) -> None:
    install(tmp_path / "a" / "lib64", CLASSIC)
    install(tmp_path / "b" / "lib64", SPLIT)
    environment = {"ASCEND_HOME_PATH": str(tmp_path / "a"), "ASCEND_TOOLKIT_HOME": str(tmp_path / "b")}
    assert [Path(file).name for file in find_libraries(environment, prefixes=()).operators] == list(CLASSIC)


def test_the_oldest_place_of_the_operators_is_known(tmp_path: Path) -> None:
    old = tmp_path / "opp" / "built-in" / "op_impl" / "ai_core" / "tbe" / "op_api" / "lib" / "linux" / MACHINE
    install(old, CLASSIC)
    environment = {"ASCEND_OPP_PATH": str(tmp_path / "opp")}
    assert find_libraries(environment, prefixes=()).operators == (str(old / "libopapi.so"),)


def test_custom_operators_stand_before_the_built_in_ones_in_the_order_of_their_lists(tmp_path: Path) -> None:
    opp = tmp_path / "opp"
    install(opp / "lib64", [*RUNTIME, *META, *CLASSIC])
    vendors = opp / "vendors"
    for vendor in ("first", "second", "unlisted"):
        install(vendors / vendor / "op_api" / "lib", ["libcust_opapi.so"])
    (vendors / "config.ini").write_text("# order\nload_priority = second, first ,,gone\n")
    named = install(tmp_path / "own" / "op_api" / "lib", ["libcust_opapi.so"])
    environment = {"ASCEND_OPP_PATH": str(opp), "ASCEND_CUSTOM_OPP_PATH": f"{tmp_path / 'own'}::{tmp_path / 'none'}"}
    expected = [named, vendors / "second/op_api/lib", vendors / "first/op_api/lib"]
    chosen = find_libraries(environment, prefixes=())
    assert chosen.custom == tuple(str(place / "libcust_opapi.so") for place in expected)
    places = [chosen.files.index(file) for file in (chosen.runtime, chosen.meta, *chosen.custom, *chosen.operators)]
    assert places == sorted(places)


@pytest.mark.parametrize("text", ["", "other=first\n", None])
def test_without_a_list_no_vendor_s_operators_are_taken(text: str | None, tmp_path: Path) -> None:
    install(tmp_path / "vendors" / "first" / "op_api" / "lib", ["libcust_opapi.so"])
    if text is not None:
        (tmp_path / "vendors" / "config.ini").write_text(text)
    assert custom_folders({"ASCEND_OPP_PATH": str(tmp_path)}) == ()


def test_named_libraries_are_taken_as_they_are(tmp_path: Path) -> None:
    folder = install(tmp_path, ["libascendcl.so", "libnnopbase.so", "libopapi_nn.so"])
    files = [str(folder / name) for name in ("libascendcl.so", "libnnopbase.so", "libopapi_nn.so")]
    assert named_libraries([*files, "libsomewhere.so"]) == (*files, "libsomewhere.so")
    choice = parse_adapter_word(f"cann:library={','.join(files)},device=3")
    assert choice.options == {"library": ",".join(files), "device": "3"}


def test_the_classic_library_beside_a_split_one_is_a_mistake(tmp_path: Path) -> None:
    folder = install(tmp_path, [*CLASSIC, "libopapi_cv.so"])
    with pytest.raises(UsageError, match=r"libopapi\.so and libopapi_cv\.so register the same operators.*never"):
        named_libraries([str(folder / "libopapi.so"), str(folder / "libopapi_cv.so")])


def test_a_named_library_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"library=.*gone\.so: there is no such file"):
        named_libraries([str(tmp_path / "gone.so")])
