from __future__ import annotations

import pytest

from aclnn_cts.core.registry import registered


def test_items_are_found_by_name_in_their_order() -> None:
    assert list(registered("word", ["two", "one"], str.upper).items()) == [("TWO", "two"), ("ONE", "one")]


def test_a_name_that_stands_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="the word 'ONE' is registered twice"):
        registered("word", ["one", "One"], str.upper)
