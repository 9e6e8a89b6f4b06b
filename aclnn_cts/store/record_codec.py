"""Records as bytes, without loss.

MessagePack and not JSON: JSON has no word for inf and nan, and a nan attribute that came back as null would be another
case. A compressed record of an ordinary case has about 600 bytes.

What a MessagePack value (https://github.com/msgpack/msgpack/blob/master/spec.md) holds is counted before it is built:
one byte of a file can stand for 72 bytes of memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outside import DOCUMENT_BYTES, JSON_CONTAINERS, JSON_ITEMS, JSON_WIDE_BYTES
from aclnn_cts.core.printable import ECHO_LIMIT, printable, quote
from aclnn_cts.core.verdict import Record

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


_LEVEL = 1
"""zlib's fastest: level 6 saves a tenth of the bytes for three times the time."""

_SMALL = 1 << 20
"""Bytes of MessagePack that cannot become more than 72 MiB of objects, whatever they hold."""
_BROKEN = (zlib.error, msgspec.MsgspecError, ValueError, RecursionError)


def _plain(value: object) -> object:
    """A NumPy scalar as the Python number that it stands for."""
    item: Any = getattr(value, "item", None)
    shape: Any = getattr(value, "shape", None)
    if shape != ():
        raise NotImplementedError(f"{value!r} of type {type(value).__name__}; expected plain JSON values")
    return item()


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_plain)
_DECODER = msgspec.msgpack.Decoder(Record)


def encode_record(record: Record) -> bytes:
    """A record as compressed MessagePack; raises HarnessError where its facts hold no plain values."""
    return encode_value(record)


def decode_record(content: bytes, *, where: str) -> Record:
    """The record of `encode_record`; damage raises HarnessError that names `where`."""
    try:
        return _DECODER.decode(_decompressed(content))
    except _BROKEN as error:
        raise HarnessError(
            f"{where}: not a record of this version ({printable(str(error), ECHO_LIMIT)}); the file is damaged or newer"
        ) from None


def encode_value(value: object) -> bytes:
    """Any plain value (numbers, strings, lists, mappings, structs of them) as compressed MessagePack."""
    try:
        return zlib.compress(_ENCODER.encode(value), _LEVEL)
    except (NotImplementedError, TypeError, ValueError, OverflowError) as error:
        raise HarnessError(f"a record cannot be stored: {error}") from error


def decode_value(content: bytes, *, where: str) -> Any:  # noqa: ANN401 - whatever was stored
    """The value of `encode_value`."""
    try:
        return msgspec.msgpack.decode(_decompressed(content))
    except _BROKEN as error:
        raise HarnessError(f"{where}: {printable(str(error), ECHO_LIMIT)}; the file is damaged") from None


def _decompressed(content: object) -> bytes | bytearray:
    """The bytes of a value, of which a small file may claim very many."""
    if not isinstance(content, bytes):
        raise ValueError("no compressed value")  # noqa: TRY004 - one kind of error for all damage
    stream = zlib.decompressobj()
    plain = stream.decompress(content, _SMALL)
    if stream.eof and not stream.unused_data:
        return plain
    # Measured before it is kept: what is too large is never held, and all else once.
    size = 0
    for piece in _pieces(content):
        size += len(piece)
        if size > DOCUMENT_BYTES:
            raise ValueError(f"no compressed value of at most {DOCUMENT_BYTES} bytes")
    whole, end = bytearray(size), 0
    for piece in _pieces(content):
        whole[end : end + len(piece)] = piece
        end += len(piece)
    check_items(whole)
    return whole


def _pieces(content: bytes) -> Iterator[bytes]:
    stream = zlib.decompressobj()
    while not stream.eof:
        piece = stream.decompress(content, _SMALL)
        if not piece and not stream.eof:
            raise ValueError("a compressed value that ends too soon")
        yield piece
        content = stream.unconsumed_tail
    if stream.unused_data:
        raise ValueError("bytes follow the compressed value")


def key_text(key: Fingerprint) -> str:
    """One spelling for equal keys, which `Fingerprint.text` is not: it leaves out the names of the fields."""
    return msgspec.json.encode(key).decode()


def key_from_text(text: str) -> Fingerprint:
    """The key that a text spells; HarnessError where it spells none."""
    try:
        key = msgspec.json.decode(text, type=Fingerprint)
        if key_text(key) == text:
            return key
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        pass
    raise HarnessError(f"{quote(text)}: not the key of a finding; the file is damaged or newer")
