from __future__ import annotations

import pytest

from aclnn_cts.core.registry import items_by_name


def test_items_are_found_by_name_in_their_order() -> None:
    assert list(items_by_name("word", ["two", "one"], str.upper).items()) == [("TWO", "two"), ("ONE", "one")]


def test_a_name_that_stands_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="the word 'ONE' is registered twice"):
        items_by_name("word", ["one", "One"], str.upper)
