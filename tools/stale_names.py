"""Names in docstrings and comments that no code has any more: `python -m tools.stale_names`, which `make lint` runs.

A name between backticks is stale where no code of the repository has it as a word. One that begins with a module or
package of ours, such as `core.case.Case`, is stale where that module is gone, or does not have the next word.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.packages import ROOT, modules

_QUOTED = re.compile(r"(?<!`)`([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)(?:\(\))?`(?!`)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOOKS_LIKE_CODE = re.compile(r"[a-z0-9]_[a-z0-9]|[a-z][A-Z]|^[A-Z][a-z]+[A-Z]|\.")
"""Plain words between backticks may be anything: a value, an option, a command."""
_TEXTS = (".yaml", ".json", ".html", ".css", ".js", ".cpp", ".h", ".toml", ".sh")
"""What else holds words that prose may quote: keys of files, C++, templates, options."""


def prose_and_words(source: str) -> tuple[list[tuple[int, str]], set[str]]:
    """The docstrings and comments of a module with their lines, and the words of its code."""
    prose: list[tuple[int, str]] = []
    words: set[str] = set()
    first = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and first):
            prose.append((token.start[0], token.string))
        elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            words.update(_WORD.findall(token.string))
        if token.type not in (tokenize.COMMENT, tokenize.NL):  # neither begins nor ends a statement
            first = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    return prose, words


def stale_names(source: str, known: set[str], members: Mapping[str, set[str]]) -> Iterator[tuple[int, str]]:
    """The stale names of a module, each with its line.

    `known` are the words of all code, `members` by module of ours (`core.case`) what it defines.
    """
    for line, text in prose_and_words(source)[0]:
        for match in _QUOTED.finditer(text):
            name = match[1]
            if _LOOKS_LIKE_CODE.search(name) and _is_stale(name.removeprefix("aclnn_cts."), known, members):
                yield line + text.count("\n", 0, match.start()), name


def _is_stale(name: str, known: set[str], members: Mapping[str, set[str]]) -> bool:
    words = name.split(".")
    for end in range(len(words), 1, -1):
        if ".".join(words[:end]) in members:
            return end < len(words) and words[end] not in members[".".join(words[:end])]
    inside = {path.rpartition(".")[2]: found for path, found in members.items()}
    if len(words) > 1 and words[0] in members and not members[words[0]]:
        return words[1] not in inside
    return not set(words) <= known


def _members(tree: ast.Module) -> set[str]:
    """What can be named after a module: all that it binds, and the members of its classes."""
    names = {node.name for node in ast.walk(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    return names | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _files() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [path for name in listed if (path := ROOT / name).is_file() and not path.is_symlink()]


def main() -> int:
    """Print each stale name with its place; 1 where there is one."""
    files = _files()
    sources = {path: path.read_text(encoding="utf-8") for path in files if path.suffix == ".py"}
    known = {word for source in sources.values() for word in prose_and_words(source)[1]}
    for path in files:
        known.update(path.stem.split("."))
        if path.suffix in _TEXTS:
            known.update(_WORD.findall(path.read_text(encoding="utf-8")))
    members: dict[str, set[str]] = {}
    for module in modules():
        name = ".".join(module.with_suffix("").parts).removesuffix(".__init__")
        tree = ast.parse((ROOT / "aclnn_cts" / module).read_bytes())
        members[name] = set() if module.name == "__init__.py" else _members(tree)
    found = [
        f"{path.relative_to(ROOT)}:{line}: `{name}`: no code has this name; write the one that it has now"
        for path, source in sources.items()
        for line, name in stale_names(source, known, members)
    ]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
