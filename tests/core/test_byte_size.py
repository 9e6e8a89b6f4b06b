"""Sizes with and without units."""

from __future__ import annotations

import pytest

from aclnn_cts.core.byte_size import bytes_of


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("4096", 4096),
        ("7B", 7),
        ("4MiB", 4 << 20),
        ("1 GiB", 1 << 30),
        ("1.5 KiB", 1536),
        ("2kB", 2000),
        ("3 GB", 3_000_000_000),
    ],
)
def test_a_size_with_or_without_a_unit(word: str, expected: int) -> None:
    assert bytes_of(word) == expected


def test_a_number_alone_is_in_the_unit_of_the_option() -> None:
    assert (bytes_of("2", alone="MiB"), bytes_of("2B", alone="MiB")) == (2 << 20, 2)


@pytest.mark.parametrize(
    "word", ["", "0", "0GiB", "-1", "1.5", "4M", "4Mb", "4KB", "4  MiB", "MiB", "1e9", "٣", "4MiB\n4"]
)
def test_what_is_no_size_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="expected a number of bytes, at least 1, or a size such as"):
        bytes_of(word)
