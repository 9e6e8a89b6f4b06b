"""The table of where to change what names files that are there, and make targets that exist."""

from __future__ import annotations

import re

import yaml

from tools.packages import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_the_table_names_what_is_there() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE.partition("## Where do I change")[2], re.MULTILINE)
    assert len(rows) - 2 >= 15
    for _, edit, then in rows[2:]:
        for word in re.findall(r"`([^` ]+)`", f"{edit} {then}"):
            if "/" in word and "NAME" not in word and "*" not in word:
                assert (ROOT / word).exists(), word


def test_every_patch_has_a_row_with_the_files_that_it_touches() -> None:
    patches = sorted((ROOT / "tests" / "fixtures" / "patches").glob("*.patch"))
    rows = {
        name: files for files, name in re.findall(r"^\| [^|]+ \| ([^|]+) \| `([^`|]+\.patch)` \|$", PAGE, re.MULTILINE)
    }
    assert sorted(rows) == [path.name for path in patches]
    for path in patches:
        text = path.read_text(encoding="utf-8")
        known = {name for name in re.findall(r"^\+\+\+ b/(\S+)$", text, re.MULTILINE) if (ROOT / name).exists()}
        assert known <= set(re.findall(r"`([^`]+)`", rows[path.name])), path.name


def test_every_make_target_of_the_page_exists() -> None:
    named = set(re.findall(r"make ([a-z-]+)", PAGE))
    assert named
    assert named <= TARGETS


def test_every_path_of_the_makefile_exists() -> None:
    paths = re.findall(r"\btests/[\w./]+", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_hooks_run_what_lint_runs() -> None:
    [repo] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    entries = " ".join(hook["entry"] for hook in repo["hooks"])
    for command in ("ruff check", "ruff format", "mypy --strict -p aclnn_cts", "aclnn-cts spec lint"):
        assert command in entries
