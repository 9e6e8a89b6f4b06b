from __future__ import annotations

import pytest

from tools.stale_names import stale_names

KNOWN = {"core", "case", "Case", "shape_of", "axes", "TensorList"}
MEMBERS: dict[str, set[str]] = {"core": set(), "core.case": {"Case", "TensorList", "shape_of"}}


@pytest.mark.parametrize(
    "source",
    [
        'def f() -> None:\n    """See `core.case.Gone`."""\n',
        'def f() -> None:\n    """See `core.gone.Case`."""\n',
        'def f() -> None:\n    """See `aclnn_cts.core.gone`."""\n',
        'x = 1\n"""What `gone_function` gives."""\n',
        'class A:\n    """A `GoneClass`."""\n',
        "x = 1  # as `gone_function()` does\n",
    ],
)
def test_a_name_that_no_code_has_is_found(source: str) -> None:
    [(_, name)] = stale_names(source, KNOWN, MEMBERS)
    assert "one" in name


@pytest.mark.parametrize(
    "source",
    [
        '"""See `core.case.Case`, `core.case`, `case.TensorList` and `shape_of()`."""\n',
        '"""The option `--specs`, the word `gone`, the value `out` and the rule `dim >= 0`."""\n',
        'x = "`gone_function`"\n',
    ],
)
def test_names_that_code_has_and_plain_words_pass(source: str) -> None:
    assert list(stale_names(source, KNOWN, MEMBERS)) == []


def test_the_line_of_a_name_is_that_in_the_file() -> None:
    source = '"""One line.\n\nThen `gone_function`.\n"""\nx = 1  # `GoneClass`\n'
    assert list(stale_names(source, KNOWN, MEMBERS)) == [(3, "gone_function"), (5, "GoneClass")]
