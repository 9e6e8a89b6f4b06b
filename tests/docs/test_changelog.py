"""CHANGELOG.md: what is not released yet, then a page a release, the newest first."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.version import Version

from aclnn_cts import __version__

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^## \[(.+?)\]", TEXT, re.MULTILINE)
PAGE = 60
"""Lines that a release may take."""


def test_unreleased_changes_come_before_releases_the_newest_first() -> None:
    assert HEADINGS[0] == "Unreleased"
    releases = [Version(name) for name in HEADINGS[1:]]
    assert releases == sorted(releases, reverse=True)
    assert releases[-1] == Version("0.2.0")


def test_the_version_in_development_follows_the_newest_release() -> None:
    assert Version(__version__).is_devrelease
    assert Version(__version__) > Version(HEADINGS[1])


def test_the_first_release_takes_one_page() -> None:
    assert TEXT.partition("## [0.2.0]")[2].count("\n") <= PAGE
