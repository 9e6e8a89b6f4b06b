"""What a release needs."""

from __future__ import annotations

import pytest

from tools.release_check import version_is_described

PAGE = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0]\n\n- a change\n\n## [1.1.0]\n"


def test_a_final_version_with_a_page_can_be_released() -> None:
    assert list(version_is_described("1.2.0", PAGE)) == []


@pytest.mark.parametrize(
    ("version", "page", "missing"),
    [
        ("1.3.0.dev0", PAGE.replace("1.2.0", "1.3.0.dev0"), "expected a final version"),
        ("1.3.0", PAGE, "expected a page of 1.3.0"),
        ("1.1.0", PAGE, "expected a page of 1.1.0"),
        ("1.2.0", PAGE.replace("[Unreleased]\n", "[Unreleased]\n\n- later\n"), "nothing under Unreleased"),
    ],
)
def test_what_is_missing_is_named(version: str, page: str, missing: str) -> None:
    [line] = version_is_described(version, page)
    assert missing in line
