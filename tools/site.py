"""Hooks of `make site` (mkdocs.yml): what a page needs in the site that it does not need in the repository.

A link out of docs/, to a source file or the changelog, has no page in the site: its text stays. The folder of the
operators lists its pages. A page that exists in both languages links to the other one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Protocol

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


class File(Protocol):
    """A file of docs/, as MkDocs has it."""

    src_uri: str


class Files(Protocol, Iterable[File]):
    """All files of docs/, as MkDocs has them."""

    def get_file_from_path(self, path: str) -> File | None:
        """The file of this path below docs/."""


class Page(Protocol):
    """A page, as MkDocs has it."""

    file: File


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: object) -> str:
    """The Markdown of a page before it is rendered."""
    folder = posixpath.dirname(page.file.src_uri)

    def inside(link: re.Match[str]) -> str:
        address = link[2].partition("#")[0]
        if "://" in address or not address:
            return link[0]
        found = posixpath.normpath(posixpath.join(folder, address))
        return link[0] if files.get_file_from_path(found) else link[1]

    text = _LINK.sub(inside, markdown)
    if page.file.src_uri == "operators/README.md":
        names = sorted(
            posixpath.basename(file.src_uri) for file in files if re.match(r"operators/\w+_\w+\.md$", file.src_uri)
        )
        text += "\n## Pages\n\n" + "\n".join(f"- [{name.removesuffix('.md')}]({name})" for name in names) + "\n"
    return _with_other_language(text, page.file.src_uri, files)


def _with_other_language(text: str, name: str, files: Files) -> str:
    other, language = (name.removeprefix("zh/"), "English") if name.startswith("zh/") else (f"zh/{name}", "中文")
    if files.get_file_from_path(other) is None:
        return text
    heading, _, rest = text.partition("\n")
    return f"{heading}\n\n[{language}]({posixpath.relpath(other, posixpath.dirname(name) or '.')})\n{rest}"


_SHIM = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"></script>')


def on_post_template(output: str, **_: object) -> str:
    """The HTML of what is no page, such as the one for a missing address, which has no search."""
    return _SHIM.sub("", output)


def on_post_page(output: str, *, page: Page, **_: object) -> str:
    """The HTML of a page: its search needs nothing from a network, in a folder too; it says its language."""
    if page.file.src_uri.startswith("zh/"):
        output = output.replace('<html lang="en"', '<html lang="zh"', 1)
    above = "../" * page.file.src_uri.count("/")
    return _SHIM.sub(f'<script src="{above}assets/file-worker.js"></script>', output)
