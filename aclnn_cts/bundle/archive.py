"""A ZIP file that has one spelling: stored entries in the order of their names, one time, nothing extra.

Its bytes follow from names and contents alone, so that a reader can make them again and compare. The form is that of
PKWARE's APPNOTE 6.3.10 (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT), sections 4.3.7, 4.3.12, 4.3.14 to
4.3.16 and 4.5.3; every unzip program reads it.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outside import open_outside

CHUNK = 1 << 20
"""Bytes that are read at a time."""
NAME_LIMIT = 255

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_][A-Za-z0-9_.\-]*)*")
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR_64 = struct.Struct("<4sIQI")
_OFFSET_64 = struct.Struct("<2HQ")

_VERSION, _VERSION_64 = 10, 45
_MADE_BY_UNIX = 3 << 8 | _VERSION_64
_DATE = 1 << 5 | 1
"""The first of January 1980, the first day that the format knows."""
END_SIZE = _END_64.size + _LOCATOR_64.size + _END.size
"""Bytes of all end records."""
_FILE_MODE = 0o100644 << 16
_LAST_16, _LAST_32 = 0xFFFF, 0xFFFFFFFF


class Member(msgspec.Struct, frozen=True):
    """One entry as the headers state it."""

    name: str
    size: int
    crc: int


class Source(msgspec.Struct, frozen=True):
    """Where an entry's bytes come from."""

    member: Member
    sha256: str
    content: bytes | Path


def bad_name(name: str) -> bool:
    """Whether a name could leave a folder that it is unpacked in, or be spelled in two ways."""
    return len(name) > NAME_LIMIT or _NAME.fullmatch(name) is None


def local_header(member: Member) -> bytes:
    """What stands before an entry's bytes."""
    name = member.name.encode()
    size = member.size
    return _LOCAL.pack(b"PK\3\4", _VERSION, 0, 0, 0, _DATE, member.crc, size, size, len(name), 0) + name


def central_header(member: Member, offset: int) -> bytes:
    """An entry's line in the directory at the end; `offset` is where its local header begins."""
    name = member.name.encode()
    extra = _OFFSET_64.pack(1, 8, offset) if offset >= _LAST_32 else b""
    return (
        _CENTRAL.pack(
            b"PK\1\2",
            _MADE_BY_UNIX,
            _VERSION_64 if extra else _VERSION,
            0,
            0,
            0,
            _DATE,
            member.crc,
            member.size,
            member.size,
            len(name),
            len(extra),
            0,
            0,
            0,
            _FILE_MODE,
            min(offset, _LAST_32),
        )
        + name
        + extra
    )


def end_records(*, number: int, start: int, size: int) -> bytes:
    """What stands after the directory of `number` entries, which has `size` bytes from `start` on."""
    large = b""
    if number >= _LAST_16 or start >= _LAST_32 or size >= _LAST_32:
        large = _END_64.pack(
            b"PK\6\6", _END_64.size - 12, _MADE_BY_UNIX, _VERSION_64, 0, 0, number, number, size, start
        ) + _LOCATOR_64.pack(b"PK\6\7", 0, start + size, 1)
    few = min(number, _LAST_16)
    return large + _END.pack(b"PK\5\6", 0, 0, few, few, min(size, _LAST_32), min(start, _LAST_32), 0)


def directory_start(end: bytes) -> int:
    """Where the directory begins, by the last `END_SIZE` bytes of a file; beyond any file where they do not say."""
    if len(end) < _END.size:
        return 1 << 64
    start: int = _END.unpack(end[-_END.size :])[6]
    if start == _LAST_32 and len(end) == END_SIZE:
        start = _END_64.unpack(end[: _END_64.size])[9]
    return start


def archive_bytes(sources: Sequence[Source]) -> Iterator[bytes]:
    """The whole file, piece by piece; the sources in the order of their names."""
    offset = 0
    central: list[bytes] = []
    for source in sources:
        header = local_header(source.member)
        central.append(central_header(source.member, offset))
        yield header
        yield from read_chunks(source.content)
        offset += len(header) + source.member.size
    yield from central
    yield end_records(number=len(sources), start=offset, size=sum(map(len, central)))


def read_chunks(content: bytes | Path | BinaryIO, limit: int | None = None) -> Iterator[bytes]:
    """Bytes, or those of a file, in pieces; at most `limit` of an open file."""
    if isinstance(content, bytes):
        yield content
    elif isinstance(content, Path):
        with open_outside(content, expected="a file of a run", error=HarnessError, regular=True) as file:
            yield from read_chunks(file)
    else:
        while (limit is None or limit) and (piece := content.read(CHUNK if limit is None else min(CHUNK, limit))):
            if limit is not None:
                limit -= len(piece)
            yield piece


def sums_of(pieces: Iterable[bytes]) -> tuple[int, int, str]:
    """Size, CRC-32, which the headers state, and SHA-256, which the manifest does."""
    size = crc = 0
    digest = hashlib.sha256()
    for piece in pieces:
        size += len(piece)
        crc = zlib.crc32(piece, crc)
        digest.update(piece)
    return size, crc, digest.hexdigest()


def source_of(name: str, content: bytes | Path) -> Source:
    """An entry of these contents."""
    size, crc, sha256 = sums_of(read_chunks(content))
    return Source(Member(name, size, crc), sha256, content)
