from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Result, ToleranceResult
from aclnn_cts.reports.html import SECTIONS, render_html
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.store.manifest import Fact
from tests.reports.synthetic import record, renamed, softmax_case, synthetic_run

HOSTILE = (
    "</code></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)>{{ 7 * 7 }}{% x %}"
)


class Page(HTMLParser):
    """What a browser would make of the page, as far as scripts and requests go."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "id":
                self.ids.append(value or "")


@pytest.fixture(scope="module")
def page(faulty_page: str) -> str:
    return faulty_page


def test_the_sections_stand_in_their_order(page: str) -> None:
    assert tuple(re.findall(r'<section id="(\w+)"', page)) == SECTIONS


def test_nothing_is_asked_of_anybody(page: str) -> None:
    made = Page(page)
    assert made.tags.count("script") == 1
    assert not {"img", "iframe", "object", "embed", "audio", "video", "base", "image"} & set(made.tags)
    assert [value for tag, name, value in made.attributes if name in ("href", "src", "action", "xlink:href")] != []
    for tag, name, value in made.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in ("href", "src", "xlink:href", "action", "formaction"):
            assert value.startswith("#") or value == "data:,", (tag, name, value)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    [policy] = [value for tag, name, value in made.attributes if tag == "meta" and value.startswith("default-src")]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-")


def test_ids_are_unlike_and_links_lead_somewhere(page: str) -> None:
    made = Page(page)
    assert len(made.ids) == len(set(made.ids))
    targets = {value[1:] for _, name, value in made.attributes if name == "href" and value.startswith("#")}
    assert targets <= set(made.ids), targets - set(made.ids)


def test_the_same_run_gives_the_same_page(faulty: Acceptance, faulty_run: Path, page: str) -> None:
    assert render_html(acceptance([faulty_run])) == page
    assert render_html(faulty, language="zh") != page


def test_the_explorer_has_the_document_of_the_operator_that_ran_alone(page: str) -> None:
    order = re.findall(r'<details class="fold" id="trace-([^"]+)"', page)
    assert order == ["aclnnSoftmaxBackward", "interface"]
    assert len(page) < 1_500_000


def test_what_every_report_shows_is_no_warning(faulty: Acceptance) -> None:
    power = faulty.credibility.power
    assert power is not None
    for another in (None, (), ("specs",)):
        changed = replace(faulty.credibility, power=replace(power, another=another))
        section = render_html(replace(faulty, credibility=changed), sections=("credibility",))
        assert section.count('class="note warn"') == 0


def test_a_verdict_that_rests_on_waivers_says_so_wherever_it_stands(tmp_path: Path) -> None:
    failed = record(
        softmax_case(),
        result=Result.FAILED,
        kind=Fault.VALUE,
        message="wrong",
        output="out",
        waiver="known",
        error_ratio=2.0,
    )
    changes = {"environment": {"adapter.version": Fact("<2.1>", "declared")}}
    for records, verdict, said in (
        ([record(softmax_case(1)), failed], "conforms-with-waivers", "conforms with waivers"),
        ([record(softmax_case(1))], "conforms", "conforms"),
    ):
        run = synthetic_run(tmp_path / verdict, records, changes=changes)
        cover = render_html(acceptance([run]), sections=("cover",))
        assert f'<p class="sentence {verdict}">' in cover
        assert f'<span class="verdict-chip {verdict}"><span class="l" lang="en">{said}</span>' in cover
        assert cover.count(f'<span class="l" lang="en">{said}</span>') == 3
        assert "&lt;2.1&gt;" in cover


def test_the_page_is_small(page: str) -> None:
    assert len(page.encode()) < 10 * 1024 * 1024


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    case = softmax_case()
    case = renamed(
        case,
        arguments=dict(case.arguments) | {"output": Tensor((2, 3), "FLOAT", data=Data(recipe=HOSTILE))},
        origin=msgspec.structs.replace(case.origin, change=HOSTILE),
    )
    failed = record(
        case, result=Result.FAILED, kind=Fault.VALUE, message=HOSTILE, output=HOSTILE, waiver=HOSTILE, error_ratio=2.0
    )
    outcome = msgspec.structs.replace(failed.attempts[0][0], message=HOSTILE)
    tolerance = ToleranceResult(tolerance=HOSTILE, verdict="fail", message=HOSTILE, source=HOSTILE)
    verdict = msgspec.structs.replace(
        failed.verdict,
        tolerances={HOSTILE: {HOSTILE: tolerance}},
        mode=HOSTILE,
        facts={"second oracle": HOSTILE, "alone": HOSTILE},
    )
    failed = renamed(failed, attempts=((outcome,),), verdict=verdict)
    unknown = record(softmax_case(1), check="values", result=Result.SKIPPED, kind=HOSTILE, message=HOSTILE)
    error = record(softmax_case(2), result=Result.ERROR, message=HOSTILE)
    folder = tmp_path_factory.mktemp("hostile")
    run = synthetic_run(
        folder / "<img src=x onerror=alert(4)>",
        [failed, unknown, error],
        changes={
            "adapter": HOSTILE,
            "profile": HOSTILE,
            "arguments": (HOSTILE,),
            "settings": {HOSTILE: HOSTILE},
            "inputs": {HOSTILE: HOSTILE},
        },
        environment={HOSTILE: Fact(HOSTILE)},
    )
    return render_html(acceptance([run], baseline=run))


def test_text_from_outside_is_never_markup(hostile: str, page: str) -> None:
    made = Page(hostile)
    assert made.tags.count("script") == 1
    assert not {"img", "iframe"} & set(made.tags)
    assert "svg" not in made.tags
    assert not [name for _, name, _ in made.attributes if name.startswith("on")]
    assert hostile.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 10
    assert "{{ 7 * 7 }}" in hostile
    assert {tag for tag, _, _ in made.attributes} <= {tag for tag, _, _ in Page(page).attributes} | {
        "b",
        "a",
        "details",
    }


def test_names_in_the_chart_of_error_ratios_are_text(faulty: Acceptance) -> None:
    row = replace(faulty.precision[0], output="$x<b>&amp;</b>", histogram=(99,) * len(faulty.precision[0].histogram))
    section = render_html(replace(faulty, precision=(row,)), sections=("precision",)).partition("<main")[2]
    assert "<b>&" not in section
    assert "$x&lt;b&gt;" in section


def test_a_list_that_differs_is_written_as_one(tmp_path: Path) -> None:
    runs = [
        synthetic_run(tmp_path / name, [record(softmax_case())], changes={"operators": (*names,)})
        for name, names in (("before", ("aclnnA", "aclnnB")), ("now", ("aclnnA",)))
    ]
    text = render_html(acceptance(runs[1:], baseline=runs[0]), sections=["comparison"])
    assert "<td><code>aclnnA, aclnnB</code></td><td><code>aclnnA</code></td>" in text


def test_each_comparison_of_several_runs_has_its_name(tmp_path: Path) -> None:
    base = synthetic_run(tmp_path / "base", [record(softmax_case())])
    runs = [
        synthetic_run(tmp_path / name, [record(softmax_case(number))], changes={"seed": number})
        for number, name in ((11, "first"), (12, "second"))
    ]
    text = render_html(acceptance(runs, baseline=base), sections=["numbers", "comparison"])
    assert all(f"<h4>{name}</h4>" in text for name in ("first", "second"))
    assert text.count("new means not run before") == 2
    assert "The plans differ (seed 7 in the baseline, 11 now)" in text
    alone = render_html(acceptance(runs[:1], baseline=runs[0]), sections=["numbers", "comparison"])
    assert "<h4>first</h4>" not in alone
    assert "The plans differ" not in alone
