"""Every text of ours in English and Chinese, from the files in `words/`, and numbers as both have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import yaml
from markupsafe import Markup, escape

from aclnn_cts.core.faults import fault_words
from aclnn_cts.core.printable import number_text
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdict


def count_text(value: int) -> str:
    """A count with thin groups of thousands: `12 345`."""
    return f"{value:,}".replace(",", "\u202f")


def short_count_text(value: int) -> str:
    """A count in four characters at most, for a cell of a picture: `812`, `14k`, `3.1M`."""
    for limit, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= limit:
            return f"{value / limit:.1f}{unit}" if value < 10 * limit else f"{value // limit}{unit}"
    return str(value)


def percent_text(part: int, whole: int) -> str:
    """A share: `69.2%`; `100%` and `0%` only where it is exact, a dash where there is no whole."""
    if not whole:
        return "—"
    if part in (0, whole):
        return "0%" if not part else "100%"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f}%"


def error_ratio_text(value: float | str) -> str:
    """An error ratio, or the headroom left of it: the same, without words for infinity."""
    text = number_text(value)
    return {"inf": "∞", "-inf": "-∞"}.get(text, text)


def headroom_text(value: float | str) -> str:
    """The headroom left of a limit; far beyond the limit, that it is far beyond."""
    return "< -999" if value == "-inf" or (isinstance(value, float) and value < -999.0) else error_ratio_text(value)


def seconds_text(value: float | None) -> str:
    """A duration: `3.2 s`, `4 min 05 s`, `2 h 10 min`; a dash where it is not known."""
    if value is None:
        return "—"
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def bytes_text(value: int) -> str:
    """A size: `812`, `14.2 KiB`, `3.1 MiB`."""
    size = float(value)
    for unit in ("", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.1f} {unit}" if unit else f"{value}"
        size /= 1024
    raise AssertionError


Language: TypeAlias = Literal["en", "zh"]
LANGUAGES: tuple[Language, Language] = ("en", "zh")

VERDICTS = (
    ClauseVerdict.MET,
    ClauseVerdict.PART,
    ClauseVerdict.CONTRADICTED,
    ClauseVerdict.UNTESTED,
    ClauseVerdict.OPEN,
)
"""On clauses, in the order of every table."""

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


def chinese_sentence(address: str, /, **values: object) -> str:
    """A Chinese sentence of `words/said.yaml` with its names filled in."""
    text: str = words("said")[address]
    return text.format(**values)


def in_both_languages(address: str, /, **values: object) -> Markup:
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
