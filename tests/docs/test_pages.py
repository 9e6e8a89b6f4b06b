"""README and docs/: generated pages are current, links resolve, commands and options exist, examples run."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import pytest

from aclnn_cts.cli.main import COMMANDS, LazyGroup, main
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import SkipReason
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.run_directory import MANIFEST
from tests.support.targets import proven_by_another
from tools import generate

ROOT = Path(__file__).parents[2]
SPECS = load_specs()
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    """The command lines of ours in a page: those of console blocks, and those between backticks."""
    lines = [line.partition("  #")[0] for block in blocks(page, "console") for line in block.splitlines()]
    lines += re.findall(r"`(aclnn-cts [^`]+)`", page.read_text(encoding="utf-8"))
    return [line.strip() for line in lines if line.startswith("aclnn-cts ")]


def test_shared_pages_are_current() -> None:
    assert_current(generate.shared_pages(SPECS))
    committed = {path.stem for path in (generate.FOLDER / "operators").glob("*_*.md")}
    assert committed == {spec.stem for spec in SPECS.values()}


@pytest.mark.parametrize(
    "stem",
    [
        pytest.param(spec.stem, marks=[pytest.mark.slow] if spec.operator in proven_by_another() else [])
        for spec in SPECS.values()
    ],
)
def test_page_of_an_operator_is_current(stem: str) -> None:
    assert_current(generate.operator_pages([SPECS.find(stem, where="page")]))


def assert_current(made: Mapping[str, str]) -> None:
    for name, text in made.items():
        path = generate.FOLDER / name
        assert path.read_text(encoding="utf-8") == text, f"{path} is not current; call `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
            assert anchor in anchors, f"{page.name}: {link}"


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        links = re.findall(r"\]\(([^)#\s]+\.md)[^)]*\)", page.read_text(encoding="utf-8"))
        waiting.extend((page.parent / link).resolve() for link in links if "://" not in link)
    # An operator is added without a change to another file: the folder is the list.
    assert set(PAGES) - reached == set((ROOT / "docs" / "operators").glob("*_*.md"))


@pytest.mark.parametrize("line", sorted({line for page in PAGES for line in commands(page)}), ids=str)
def test_a_command_of_the_pages_can_be_called(line: str) -> None:
    command: click.Command = LazyGroup(entries=COMMANDS)
    words = shlex.split(line)[1:]
    with click.Context(command) as context:
        while isinstance(command, click.Group) and not words[0].startswith("-"):
            found = command.get_command(context, words.pop(0))
            assert found is not None, line
            command = found
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= options | {"--help"}, line


def test_make_targets_of_the_readme_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"\bmake ([a-z]+)(?=`|  )", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert named
    assert set(named) <= set(targets)


def test_every_kind_of_fault_and_reason_to_skip_is_explained() -> None:
    text = (ROOT / "docs" / "judging-calls.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))
    assert {
        *(fault.value for fault in Fault),
        *(value for name, value in vars(SkipReason).items() if name.isupper()),
    } <= rows


def test_the_readme_is_short() -> None:
    text = re.sub(r"^```.*?^```$", "", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert len(text.split()) <= 600


def test_each_cell_of_the_comparison_of_the_readme_has_a_source() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## What others leave to you\n\n")[2]
    rows = [line.strip("| ").split(" | ") for line in text.partition("\n\n")[0].splitlines()[2:]]
    assert len(rows) == 6
    assert [cell for _, *cells in rows for cell in cells if not re.fullmatch(r"\[.+\]\(\S+\)", cell)] == []
    assert {len(row) for row in rows} == {6}


@pytest.mark.slow
def test_the_command_of_the_readme_finds_a_mistake(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    [line] = [
        line for block in blocks(ROOT / "README.md", "console") for line in block.splitlines() if "judge " in line
    ]
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(line.partition("  #")[0].strip())[1:]) == 1
    assert "fails: docs/tutorials/softmax.py:softmax_backward" in capfd.readouterr().out


def test_the_file_of_the_first_tutorial_is_what_its_page_shows() -> None:
    page = (ROOT / "docs" / "tutorials" / "first-bug.md").read_text(encoding="utf-8")
    source = (ROOT / "docs" / "tutorials" / "softmax.py").read_text(encoding="utf-8")
    assert f'```python title="softmax.py"\n{source}```\n' in page


def test_a_message_of_the_page_on_trouble_is_printed_by_the_code() -> None:
    files = [path for name in ("aclnn_cts", "adapters", "reports") for path in (ROOT / name).rglob("*.py")]
    source = " ".join(path.read_text(encoding="utf-8") for path in files)
    # What one literal holds; its braces hold the rest.
    literals = re.sub(r'"\s+f?"', "", source).replace("{MANIFEST}", MANIFEST)
    rows = messages_on_trouble()
    assert len(rows) > 10
    assert [row for row in rows if row not in literals] == []


def messages_on_trouble() -> list[str]:
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `+ ?(.+?) ?`+ \|", text, re.MULTILINE)


def test_the_page_on_trouble_names_each_cause_of_an_inconclusive_run() -> None:
    tree = ast.parse((ROOT / "aclnn_cts" / "store" / "run_verdict.py").read_text(encoding="utf-8"))
    texts: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts.setdefault(node.targets[0].id, []).append(ast.unparse(node.value))
    notes = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Note"]
    causes = [note for note in notes if "FAULTS" not in ast.unparse(note.args[1])]
    said = [text for note in causes for text in texts.get(ast.unparse(note.args[0]), [ast.unparse(note.args[0])])]
    known = [*messages_on_trouble(), "{what}"]  # what was judged is said in the words of the plan
    assert len(said) >= 8
    assert [text for text in said if not any(message in text for message in known)] == []


def test_words_are_spelled_as_in_a_dictionary() -> None:
    pages = [*(str(page) for page in PAGES), str(ROOT / "CONTRIBUTING.md"), str(ROOT / "SECURITY.md")]
    words = ["--ignore-words-list", "cann,nd,inout,ans,fo,te,ot,dout,determinstic"]
    done = subprocess.run(
        [sys.executable, "-m", "codespell_lib", *words, *pages], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == ""
    assert done.returncode == 0


def test_every_page_is_in_the_site() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages - listed if not re.match(r"operators/\w+_\w+|upstream/\w+-", page)} == set()
    assert listed <= pages


@pytest.mark.slow
def test_the_adapter_of_the_page_conforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    [source] = blocks(ROOT / "docs" / "adding-an-adapter.md", "python")
    (tmp_path / "my_adapter.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code = main(["run", "softmax_backward", "--adapter", "my_adapter:MySoftmax,version=1.1", "-o", "out"])
    assert "RESULT verdict=conforms" in capfd.readouterr().out
    assert code == 0


def test_the_case_of_the_page_conforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "docs" / "case-files.md"
    case, trial = blocks(page, "json")
    (tmp_path / "mine.json").write_text(case, encoding="utf-8")
    (tmp_path / "trial.json").write_text(
        trial.replace('{"format": "aclnn-cts/case/1"}', case).replace("\n", " "), encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    for line in commands(page)[:2]:
        assert main([*shlex.split(line)[1:], *(("-o", "out") if " run " in line else ())]) == 0, line
    assert "RESULT verdict=conforms" in capfd.readouterr().out
    assert main(["validate", "trial.json"]) == 0


def test_the_operator_of_the_page_conforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "docs" / "adding-an-operator.md"
    mine = tmp_path / "mine"
    mine.mkdir()
    for language, suffix in (("yaml", "yaml"), ("python", "py")):
        [source] = blocks(page, language)
        (mine / f"logistic_backward.{suffix}").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["spec", "lint", "mine/logistic_backward.yaml"]) == 0
    for line in commands(page):
        words = shlex.split(line)[1:]
        if "--specs" in words:
            assert main(words) == 0, line
    assert "RESULT verdict=conforms" in capfd.readouterr().out


def test_the_oracle_of_the_page_passes_ruff() -> None:
    """What a reader copies into `oracles/` must not fail lint."""
    [source] = blocks(ROOT / "docs" / "adding-an-operator.md", "python")
    for words in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, "--stdin-filename", "oracles/logistic_backward.py", "-"],
            input=source,
            cwd=ROOT,
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_of_an_operator_names_each_doubt_with_an_address() -> None:
    for stem, line in (
        (
            "reflection_pad1d_backward",
            "| Numbers below 0 are not spoken of. | ambiguous | `params/padding` | `padding.dims` |",
        ),
        (
            "avg_pool2d_backward",
            "the indices of the printed formula fit no pooling. | contradicted | `function/3` |",
        ),
    ):
        assert line in (generate.FOLDER / "operators" / f"{stem}.md").read_text(encoding="utf-8")


def test_the_page_of_helpers_names_each_of_them() -> None:
    page = (generate.FOLDER / "oracle-helpers.md").read_text(encoding="utf-8")
    for name in ("gathered(f, values, table)", "summed_to(gradient, shape)", "## _windows", "## _padding"):
        assert name in page


def test_pages_of_some_operators_leave_others_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "FOLDER", tmp_path)
    assert generate.main(["tanh_backward"]) == 0
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")] == ["operators/tanh_backward.md"]
