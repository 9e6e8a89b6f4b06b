"""Counts what a MessagePack value holds before it is built: one byte of a file can stand for 72 bytes of memory.

The format: https://github.com/msgpack/msgpack/blob/master/spec.md.
"""

from __future__ import annotations

from aclnn_cts.core.strict_json import JSON_CONTAINERS, JSON_ITEMS, JSON_WIDE_BYTES

__all__ = ["check_items"]

_FIXED = {
    **dict.fromkeys((0xC0, 0xC2, 0xC3), 0),
    0xCA: 4,
    0xCB: 8,
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
    0xD4: 2,
    0xD5: 3,
    0xD6: 5,
    0xD7: 9,
    0xD8: 17,
}
"""Bytes after the first of a value of fixed size."""
_SIZED = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
"""Bytes of the length of strings and binary values."""
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_LISTS = {0xDC: 2, 0xDD: 4}
_MAPPINGS = {0xDE: 2, 0xDF: 4}


def check_items(content: bytes | bytearray) -> None:
    """ValueError where there are more values than a JSON document may have, or bytes that are no MessagePack.

    Strings count as containers do, since each takes at least 49 bytes; a character beyond ASCII makes all of its string
    take four bytes each, so that long ones have a limit together.
    """
    place, values, objects, texts = 0, 0, 0, 0
    left = 1
    size = len(content)
    while left and place < size:
        head = content[place]
        place += 1
        left -= 1
        values += 1
        if head < 0x80 or head >= 0xE0:
            continue
        if head in _FIXED:
            place += _FIXED[head]
            continue
        objects += 1
        if head < 0x90:
            left += 2 * (head & 0x0F)
        elif head < 0xA0:
            left += head & 0x0F
        elif head < 0xC0:
            place += head & 0x1F
        else:
            start = place
            place, more = _long(content, head, place)
            left += more
            texts += 0 if more else place - start
        if texts > JSON_WIDE_BYTES and place <= size:
            raise ValueError("longer texts than a record can have")
        if objects > JSON_CONTAINERS or values + left > JSON_ITEMS:
            raise ValueError("more values than a record can have")
    if left or place != size:
        raise ValueError("no MessagePack value")


def _long(content: bytes | bytearray, head: int, place: int) -> tuple[int, int]:
    """Where a value with a length of its own ends, and how many values it holds."""
    for table, factor, extra in ((_LISTS, 1, 0), (_MAPPINGS, 2, 0), (_SIZED, 0, 0), (_EXTENSIONS, 0, 1)):
        if head in table:
            width = table[head]
            length = int.from_bytes(content[place : place + width], "big")
            return place + width + extra + (0 if factor else length), factor * length
    raise ValueError("no MessagePack value")
