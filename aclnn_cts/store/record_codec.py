"""Records as bytes, without loss.

MessagePack and not JSON: JSON has no word for inf and nan, and a nan attribute that came back as null would be another
case. A compressed record of an ordinary case has about 600 bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outside import DOCUMENT_BYTES
from aclnn_cts.core.printable import ECHO_LIMIT, printable, shown
from aclnn_cts.core.verdict import Record, Signature
from aclnn_cts.store.msgpack_items import check_items

__all__ = ["decode_record", "decode_value", "encode_record", "encode_value", "signature_from_key", "signature_key"]

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


def signature_key(signature: Signature) -> str:
    """One spelling for equal signatures, which `Signature.text` is not: it leaves out the names of the fields."""
    return msgspec.json.encode(signature).decode()


def signature_from_key(key: str) -> Signature:
    """The signature that a key spells; HarnessError where it spells none."""
    try:
        signature = msgspec.json.decode(key, type=Signature)
        if signature_key(signature) == key:
            return signature
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        pass
    raise HarnessError(f"{shown(key)}: not the key of a finding; the file is damaged or newer")
