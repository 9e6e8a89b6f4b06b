"""A sentence on a code that names one end of a range has no code for the other end."""

from __future__ import annotations

import pytest

from tests.speclang.small_spec import SMALL, messages

RULE = "{id: pad.range, kind: range, of: pad, in: [0, 7], strength: limit}"
CLAUSE = 'params.pad: [{en: "pad.", zh: "pad。", constraints: [pad.range]}]'


def with_codes(rule: str, en: str, zh: str) -> str:
    """The small spec with a listed rule in the place of one of its own, and a sentence on its code."""
    identifier, rest = rule.split(": ", maxsplit=1)
    entry = f"{{id: {identifier}, {rest}, strength: listed, status: ACLNN_ERR_PARAM_INVALID}}"
    clause = f'returns: [{{en: "{en}", zh: "{zh}", constraints: [{identifier}]}}]'
    assert RULE in SMALL
    assert CLAUSE in SMALL
    return SMALL.replace(RULE, entry).replace(CLAUSE, clause)


PAD = "pad.range: kind: range, of: pad, in: [1, 7]"
RANK = "x.rank: kind: rank, of: x, in: [1, 4]"


@pytest.mark.parametrize(
    ("rule", "en", "zh", "named"),
    [
        (PAD, "More than 7 gives 161002.", "大于 7 时返回 161002。", "7 and not 1"),
        (PAD, "Less than 1 gives 161002.", "小于 1 时返回 161002。", "1 and not 7"),
        (RANK, "Too many dimensions give 161002.", "超过 4 维时返回 161002。", "4 and not 1"),
    ],
)
def test_code_at_an_end_that_its_sentence_does_not_name_is_a_mistake(
    rule: str, en: str, zh: str, *, named: str
) -> None:
    found = [message for message in messages(with_codes(rule, en, zh)) if "has its code at both ends" in message]
    assert len(found) == 1
    assert f"clause returns.1: names {named}" in found[0]


@pytest.mark.parametrize(
    ("rule", "en", "zh"),
    [
        (PAD, "Other values than 1 to 7 give 161002.", "不在 1 至 7 之内时返回 161002。"),
        (PAD, "Other values give 161002.", "其他取值返回 161002。"),
        (
            PAD.replace("1, 7", "null, 7"),
            "More than 7 gives 161002.",
            "大于 7 时返回 161002。",
        ),
        (RANK.replace("1, 4", "0, 4"), "More than 4 give 161002.", "超过 4 维时返回 161002。"),
        (RANK.replace("1, 4", "4, 4"), "Not 4 gives 161002.", "不是 4 维时返回 161002。"),
    ],
)
def test_sentence_with_both_ends_or_none_is_right(rule: str, en: str, zh: str) -> None:
    assert not [message for message in messages(with_codes(rule, en, zh)) if "at both ends" in message]
