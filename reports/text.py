"""Every text of ours in English and Chinese, from the files in `words/`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import yaml
from markupsafe import Markup, escape

from aclnn_cts.core.fault_words import fault_words

__all__ = ["LANGUAGES", "Language", "both", "capital", "code_marked", "pair", "phrase", "spans", "words"]

Language: TypeAlias = Literal["en", "zh"]
LANGUAGES: tuple[Language, Language] = ("en", "zh")

_CODE = re.compile("`([^`]+)`")
_FOLDER = Path(__file__).parent / "words"


@cache
def words(name: str) -> Mapping[str, Any]:
    """One file of words: by group and key, lists of the English and the Chinese text; `terms` has those of faults."""
    content: dict[str, Any] = yaml.safe_load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    if name == "terms":
        known = fault_words().items()
        content["fault"] = {code: entry.meaning for code, entry in known}
        content["kind"] = {code: entry.name for code, entry in known}
    return content


def pair(address: str) -> tuple[str, str] | None:
    """The two texts of `group.key`, from the page's words or the terms; None where there are none."""
    group, _, key = address.partition(".")
    for name in ("page", "signing", "terms"):
        entry = words(name).get(group, {}).get(key)
        if entry is not None:
            return entry[0], entry[1]
    return None


def phrase(address: str, language: Language, /, **values: object) -> str:
    """One text of the page with its names filled in; KeyError for an unknown address.

    A value of a record that no word stands for is said as it is: `phrase("fault.new kind", ...)` gives `new kind`.
    """
    found = pair(address)
    if found is None:
        group, _, key = address.partition(".")
        if group in words("terms"):
            return key
        raise KeyError(address)
    return found[LANGUAGES.index(language)].format(**values)


def both(address: str, /, **values: object) -> Markup:
    """A text in both languages as HTML, of which the page shows one; values are escaped, `words` are code."""
    safe = {name: escape(value) for name, value in values.items()}
    found = pair(address)
    if found is None:
        return escape(phrase(address, "en"))
    texts = (code_marked(text) for text in found)
    return spans(*(Markup(text).format(**safe) for text in texts))  # noqa: S704 - our own files


def code_marked(text: str) -> Markup:
    """Text that is safe in HTML, with what stands between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(text)))  # noqa: S704 - our own files, or escaped


def capital(text: str) -> str:
    """The text as the beginning of a sentence or a label."""
    return text[:1].upper() + text[1:]


def spans(english: object, chinese: object) -> Markup:
    """Two texts, each marked with its language; one alone where they are the same."""
    if english == chinese:
        return escape(english)
    return Markup('<span class="l" lang="en">{}</span><span class="l" lang="zh">{}</span>').format(english, chinese)
