"""The tutorials: their commands print what the pages show, from the wheel, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.test_pages import ROOT
from tools.tutorials import CHINESE, DOCS, english_pages, main, run_tutorial, translated, without_times

PAGES = english_pages()
RUN = """
import sys
from pathlib import Path
from tools.tutorials import run_tutorial
print(run_tutorial(Path(sys.argv[1]), Path(sys.argv[2])).text)
"""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_exists_in_chinese_with_the_commands_of_the_english_one(page: Path) -> None:
    chinese = (CHINESE / page.name).read_text(encoding="utf-8")
    assert translated(chinese, page.read_text(encoding="utf-8")) == chinese


def test_questions_in_chinese_are_those_in_english() -> None:
    english, chinese = (page.read_text(encoding="utf-8") for page in (DOCS / "faq.md", DOCS / "zh" / "faq.md"))
    links = [re.findall(r"\((?:\.\./)?([\w-]+\.md)\)", page) for page in (english, chinese)]
    assert len(re.findall(r"^\*\*", chinese, re.MULTILINE)) == len(re.findall(r"^\*\*", english, re.MULTILINE))
    assert links[0] == links[1]


@pytest.mark.parametrize("page", sorted((DOCS / "zh").rglob("*.md")), ids=lambda page: page.stem)
def test_no_line_of_a_chinese_page_ends_within_a_sentence(page: Path) -> None:
    """A browser shows the end of a line as a blank."""
    assert re.findall(r"[\u4e00-\u9fff，、]\n[\u4e00-\u9fff]", page.read_text(encoding="utf-8")) == []


def test_an_unknown_tutorial_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["nope"])
    assert "'nope' is no tutorial; expected any of " in capsys.readouterr().err


def test_a_changed_output_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text('```sh title="f.sh"\necho one 3.5 s\nexit 4\n```\n\n```console\n$ sh f.sh\n$ echo $?\n```\n')
    folder = tmp_path / "empty"
    folder.mkdir()
    text = run_tutorial(page, folder).text
    assert "```console\n$ sh f.sh\none 3.5 s\n$ echo $?\n4\n```" in text
    assert without_times(text) == without_times(text.replace("3.5 s", "0.1 s"))
    assert without_times(text) != without_times(text.replace("one", "two"))


def test_what_a_busy_machine_leaves_out_is_no_change() -> None:
    text = "conforms: a.py:f\n  {} of {} trials passed within {} s: {} of 403 planned, {} repeated{}; seed 1\n"
    quick, busy = text.format(914, 931, 1.9, 403, 528, ", 17 left open"), text.format(60, 60, 10.1, 58, 2, "")
    assert without_times(quick) == without_times(busy)
    assert without_times(quick) != without_times(busy.replace("conforms", "fails"))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_its_page_shows(page: Path, tmp_path: Path, python: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    # The tool alone is imported from the checkout, from a folder that has no other package.
    tool = tmp_path / "tool" / "tools"
    tool.mkdir(parents=True)
    (tool / "tutorials.py").symlink_to(ROOT / "tools" / "tutorials.py")
    ran = subprocess.run(
        [str(python), "-c", RUN, str(page), str(folder)],
        env={**os.environ, "PYTHONPATH": str(tool.parent)},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    committed = page.read_text(encoding="utf-8")
    assert re.search(r"aclnn_cts/\S+\.py", ran.stdout) is None, "a traceback of ours"
    assert without_times(ran.stdout) == without_times(committed), "call `make tutorials`"
