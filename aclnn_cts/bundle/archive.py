"""A ZIP file that has one spelling, written and read from its first byte to its last.

Its bytes follow from names and contents alone, so that a reader can make them again and compare. The form is that of
PKWARE's APPNOTE 6.3.10 (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT), sections 4.3.7, 4.3.12, 4.3.14 to
4.3.16 and 4.5.3; every unzip program reads it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from aclnn_cts.bundle.recount import Recount
from aclnn_cts.bundle.statement import (
    MANIFEST_LIMIT,
    MANIFEST_NAME,
    SIGNATURE_NAME,
    Problem,
    Statement,
    Subject,
    envelope_bytes,
    limit_of,
    read_envelope,
    read_statement,
)
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


_LOCAL_MARK = b"PK\3\4"
_CRC, _SIZE = slice(14, 18), slice(18, 22)


@dataclass(slots=True)
class Reading:
    """What came of reading a bundle."""

    problems: list[Problem] = field(default_factory=list)
    statement: Statement | None = None
    manifest: bytes = b""
    signature: bytes | None = None
    """Out of the envelope around the manifest."""
    offsets: dict[str, int] = field(default_factory=dict)
    """Where the contents of each entry begin."""
    size: int = 0

    def add(self, where: str, what: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(where, what))


class _Broken(Exception):  # noqa: N818 - ends the reading; the problem is noted already
    """Nothing after this place can be told."""


def read_bundle(path: Path, records: Recount) -> Reading:
    """Read a bundle whole, once. UsageError where there is no such file."""
    reading = Reading()
    with open_outside(path, expected="a file that `bundle` wrote", regular=True) as file:
        reading.size = os.fstat(file.fileno()).st_size
        with contextlib.suppress(_Broken):
            _read(file, reading, records)
    return reading


def _read(file: BinaryIO, reading: Reading, records: Recount) -> None:
    statement = _manifest(file, reading)
    records.begin(statement)
    members = [Member(MANIFEST_NAME, len(reading.manifest), zlib.crc32(reading.manifest))]
    if statement.predicate.signer:
        members.append(_signature(file, reading, statement.predicate.signer))
    members += [_entry(file, reading, subject, records) for subject in statement.subject]
    _directory(file, reading, members)


def _manifest(file: BinaryIO, reading: Reading) -> Statement:
    """The first entry. It ends where its header says, or else before the next entry's mark, which JSON cannot hold.

    Each shows the other to be wrong.
    """
    length = len(local_header(Member(MANIFEST_NAME, 0, 0)))
    header = file.read(length)
    reading.offsets[MANIFEST_NAME] = length
    if not header.startswith(_LOCAL_MARK) and not header.endswith(MANIFEST_NAME.encode()):
        reading.add(
            "file",
            "is no bundle: it does not begin with the entry MANIFEST.json; expected a file that `bundle` wrote",
        )
        raise _Broken
    statement = None
    for end in (_stated_end, _marked_end):
        file.seek(length)
        reading.manifest = end(file, header)
        try:
            statement = read_statement(reading.manifest)
            break
        except HarnessError as error:
            reason = str(error)
    if statement is None:
        reading.add(MANIFEST_NAME, reason)
        raise _Broken
    member = Member(MANIFEST_NAME, len(reading.manifest), zlib.crc32(reading.manifest))
    file.seek(length + member.size)
    if header != local_header(member):
        if header[_CRC] != local_header(member)[_CRC] and _crc_at_the_end(file) == header[_CRC]:
            reading.add(MANIFEST_NAME, "its contents have been changed: their CRC-32 is not that of the headers")
            raise _Broken
        reading.add(MANIFEST_NAME, "its header has been changed")
    names = [subject.name for subject in statement.subject]
    if names != sorted(set(names)) or any(map(bad_name, names)) or {MANIFEST_NAME, SIGNATURE_NAME} & set(names):
        reading.add(MANIFEST_NAME, "names entries twice, out of order, or by names that no bundle has")
        raise _Broken
    if any(subject.annotations.size < 0 for subject in statement.subject):
        reading.add(MANIFEST_NAME, "states a size below zero")
        raise _Broken
    reading.statement = statement
    return statement


def _stated_end(file: BinaryIO, header: bytes) -> bytes:
    return file.read(min(int.from_bytes(header[_SIZE], "little"), MANIFEST_LIMIT))


def _marked_end(file: BinaryIO, _header: bytes) -> bytes:
    content = bytearray()
    while (at := content.find(_LOCAL_MARK, max(0, len(content) - CHUNK - 4))) < 0:
        piece = file.read(CHUNK)
        if not piece or len(content) > MANIFEST_LIMIT:
            return b""
        content += piece
    return bytes(content[:at])


def _crc_at_the_end(file: BinaryIO) -> bytes:
    """The CRC-32 that the directory at the end states of its first entry, found by the end record alone."""
    place = file.tell()
    size = file.seek(0, 2)
    file.seek(max(0, size - END_SIZE))
    start = directory_start(file.read(END_SIZE))
    found = b""
    if start < size:
        file.seek(start)
        found = file.read(20)[16:]
    file.seek(place)
    return found


def _signature(file: BinaryIO, reading: Reading, key_id: str) -> Member:
    """The envelope, whose size follows from that of the manifest; whether it is right is for others to say."""
    size = len(envelope_bytes(reading.manifest, signature=bytes(64), key_id=key_id))
    header, content, crc, _ = _contents(file, reading, SIGNATURE_NAME, size, kept=True)
    try:
        reading.signature = read_envelope(content, reading.manifest, key_id=key_id)
    except HarnessError as error:
        reading.add(SIGNATURE_NAME, str(error))
    return _checked(reading, Member(SIGNATURE_NAME, size, crc), header, good=True)


def _entry(file: BinaryIO, reading: Reading, subject: Subject, records: Recount) -> Member:
    """One entry: its header made again, its sum compared, its contents handed on where they are right."""
    name, size = subject.name, subject.annotations.size
    wanted = records.wants(name)
    if wanted and size > limit_of(name):
        reading.add(name, f"has {size} bytes; expected at most {limit_of(name)} of an entry of its kind")
        wanted = False
    header, content, crc, sha256 = _contents(file, reading, name, size, kept=wanted)
    good = sha256 == subject.digest.sha256
    if not good:
        reading.add(name, "its contents have been changed: their SHA-256 is not that of the manifest")
    elif wanted:
        records.take(name, content)
    return _checked(reading, Member(name, size, crc), header, good=good)


def _contents(file: BinaryIO, reading: Reading, name: str, size: int, *, kept: bool) -> tuple[bytes, bytes, int, str]:
    """Header, contents where they are `kept`, CRC-32 and SHA-256 of the next entry."""
    header = file.read(len(local_header(Member(name, 0, 0))))
    reading.offsets[name] = file.tell()
    # What is kept at once and not in pieces, which would be held twice.
    content = file.read(size) if kept else b""
    read, crc, sha256 = sums_of([content] if kept else read_chunks(file, size))
    if read < size:
        reading.add(name, "the file ends within it")
        raise _Broken
    return header, content, crc, sha256


def _checked(reading: Reading, member: Member, header: bytes, *, good: bool) -> Member:
    """The member with the CRC-32 that the rest of the file is to state of it."""
    if not good:
        # What was changed is told already; the directory is to be held to what the header says.
        member = Member(member.name, member.size, int.from_bytes(header[_CRC], "little"))
    if header != local_header(member):
        reading.add(member.name, "its header has been changed, or the bytes before it are too few or too many")
    return member


def _directory(file: BinaryIO, reading: Reading, members: list[Member]) -> None:
    """The directory at the end, entry by entry, and the end records, after which nothing may follow."""
    offset, start, size = 0, file.tell(), 0
    for member in members:
        expected = central_header(member, offset)
        if file.read(len(expected)) != expected:
            reading.add(member.name, "its line in the directory at the end of the file has been changed")
        offset += len(local_header(member)) + member.size
        size += len(expected)
    expected = end_records(number=len(members), start=start, size=size)
    found = file.read(len(expected))
    if found != expected:
        reading.add("end record", "has been changed" if len(found) == len(expected) else "the file ends within it")
    if file.read(1):
        reading.add("file", f"{reading.size - start - size - len(expected)} bytes follow its end")
