from __future__ import annotations

import re
import string
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import pytest
from markupsafe import Markup

from aclnn_cts import reports
from aclnn_cts.core.faults import Fault, Severity
from aclnn_cts.core.finding import Confirmation
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.verdict import OutOfScope, Result, RunVerdict, SkipReason
from aclnn_cts.reports.html import SECTIONS
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdict, UntestedReason
from aclnn_cts.reports.text import in_both_languages, pair, phrase, words
from aclnn_cts.store.manifest import FactSource
from aclnn_cts.store.run_verdict import InsufficiencyReason
from aclnn_cts.triage.comparison import FindingState
from aclnn_cts.trials.checks.registry import CHECKS

FOLDER = Path(reports.__file__).parent
CHINESE = re.compile("[\u4e00-\u9fff]")


def entries() -> Iterator[tuple[str, list[str]]]:
    for name in ("page", "terms"):
        for group, texts in words(name).items():
            for key, texts_of_key in texts.items():
                yield f"{group}.{key}", texts_of_key


def test_every_text_stands_in_both_languages_with_the_same_names() -> None:
    for address, (english, chinese) in entries():
        assert not CHINESE.search(english), address
        assert english == chinese or CHINESE.search(chinese) or address.startswith("mark."), address
        names = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in (english, chinese)]
        assert names[0] == names[1], address


def test_the_method_and_the_glossary_stand_in_both_languages() -> None:
    method = words("method")
    for english, chinese in method["paragraphs"]:
        assert not CHINESE.search(english)
        assert CHINESE.search(chinese)
    for english, chinese, meaning, bedeutung in method["glossary"]:
        assert not CHINESE.search(english + meaning)
        assert CHINESE.search(chinese)
        assert CHINESE.search(bedeutung)


def test_no_text_stands_twice() -> None:
    addresses = [address for address, _ in entries()]
    assert len(addresses) == len(set(addresses))


@pytest.mark.parametrize(
    ("group", "values"),
    [
        ("verdict", ClauseVerdict),
        ("untested", UntestedReason),
        ("severity", Severity),
        ("fault", Fault),
        ("skip", SkipReason),
        ("result", Result),
        ("outside", OutOfScope),
        ("known", FactSource),
        ("state", FindingState),
        ("returned", CallEnd),
        ("confirmed", Confirmation),
    ],
)
def test_every_value_that_a_record_can_hold_has_words(group: str, values: type) -> None:
    members = (
        [*values] if issubclass(values, Enum) else [getattr(values, name) for name in vars(values) if name.isupper()]
    )
    known = [str(value) for value in members if value and isinstance(value, str)]
    assert known
    for value in known:
        assert pair(f"{group}.{value}") is not None, f"{group}.{value}"


def test_every_verdict_of_a_run_and_every_reason_why_acceptance_cannot_rest_on_it_has_words() -> None:
    for verdict in RunVerdict:
        assert pair(f"run_verdict.{verdict.value}") is not None
    for reason in InsufficiencyReason:
        assert pair(f"insufficient.{reason.value}") is not None


def test_every_check_and_section_has_words() -> None:
    for name in CHECKS:
        assert pair(f"check.{name}") is not None, name
    for name, entry in CHECKS.items():
        assert phrase(f"check.{name}", "en") == entry.sentence
    for name in SECTIONS:
        assert pair(f"section.{name}") is not None


def test_what_templates_ask_for_is_there() -> None:
    asked = set()
    for path in (FOLDER / "templates").glob("*.html"):
        asked |= set(re.findall(r'\bt(?:_\w+)?\("([a-z_]+\.[a-z_]+)"', path.read_text(encoding="utf-8")))
    for path in FOLDER.glob("*.py"):
        asked |= set(re.findall(r'phrase\("([a-z_]+\.[a-z_]+)"', path.read_text(encoding="utf-8")))
    assert len(asked) > 150
    assert [address for address in sorted(asked) if pair(address) is None] == []


def test_nothing_is_written_that_nobody_reads() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (FOLDER / "templates").glob("*.html"))
    text += "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py"))
    unused = [
        f"{group}.{key}"
        for group, texts in words("page").items()
        for key in texts
        if f'"{group}.{key}"' not in text
        and f'"{group}." ~' not in text
        and f'"{key}"' not in text
        and f"{{{{ {group}.{key}" not in text
        and f'f"{group}.{{' not in text
    ]
    assert unused == []


def test_values_are_escaped_and_unknown_ones_said_as_they_are() -> None:
    made = in_both_languages("insufficient.profile", run="<b>&")
    assert isinstance(made, Markup)
    assert "&lt;b&gt;&amp;" in made
    assert "<b>" not in made
    assert in_both_languages("fault.<i>") == "&lt;i&gt;"
    with pytest.raises(KeyError):
        in_both_languages("cover.nothing")
