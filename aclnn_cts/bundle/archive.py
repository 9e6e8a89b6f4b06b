"""An ordinary ZIP file with fixed dates: its bytes follow from the names and contents of its entries.

So a reader can pack the entries again and compare.
"""

from __future__ import annotations

import functools
import hashlib
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, BinaryIO

import msgspec

from aclnn_cts.core.printable import quote
from aclnn_cts.store.run_directory import RUN_DOCUMENT_BYTES

CHUNK = 1 << 20
"""Bytes that are read at a time."""
NAME_LIMIT = 255
DIRECTORY_LIMIT = 8 * 1024 * 1024
"""Bytes of the directory at the end of the file: that of some 70,000 entries."""
MEMORY_LIMIT = 64 * 1024 * 1024
"""Bytes of an entry that is looked into."""

BUNDLE_FORMAT = "aclnn-cts/bundle/3"
ABOUT = "bundle.json"
"""The first entry."""
REPORT = "report.html"
BLOBS = "blobs/"
"""Before the SHA-256 of a recorded output: together the name of its entry."""
LOOKED_INTO = frozenset((ABOUT, "records", "run", "specs", "cases", REPORT))
"""First words of the names of entries that a verifier looks into."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_][A-Za-z0-9_.\-]*)*")
_UNIX = 3
_FILE_MODE = 0o100644 << 16
_UNREADABLE = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, OverflowError, EOFError, OSError)
"""What zipfile raises for a file that is no ZIP or is damaged."""


@dataclass(frozen=True, slots=True)
class BundleProblem:
    """What is wrong with a bundle, and with which entry or part of the file."""

    where: str
    what: str


class BundleHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What only the bundle can say of itself."""

    format: str = BUNDLE_FORMAT
    left_out: Mapping[str, str]
    """What one might look for and does not find, and why."""


def bad_name(name: str) -> bool:
    """Whether a name could leave a folder that it is unpacked in, or be spelled in two ways."""
    return len(name) > NAME_LIMIT or _NAME.fullmatch(name) is None


def limit_of(name: str) -> int | None:
    """Bytes of an entry that is looked into; None for any other."""
    folder = name.partition("/")[0]
    if folder not in LOOKED_INTO:
        return None
    return RUN_DOCUMENT_BYTES if folder in ("run", ABOUT) else MEMORY_LIMIT


def add_entry(archive: zipfile.ZipFile, name: str, content: Iterable[bytes], *, size: int) -> str:
    """Add an entry of `size` bytes, and return its SHA-256."""
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr, entry.file_size = _UNIX, _FILE_MODE, size
    digest = hashlib.sha256()
    with archive.open(entry, "w") as file:
        for piece in content:
            file.write(piece)
            digest.update(piece)
    return digest.hexdigest()


def read_chunks(file: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a file in pieces."""
    return iter(functools.partial(file.read, CHUNK), b"")


class BoundedReader(io.BufferedReader):
    """Reads no more at once than the directory of a bundle may have: zipfile reads that in one piece."""

    def __init__(self, file: BinaryIO) -> None:
        """Read an open file, and leave it open."""
        super().__init__(io.FileIO(file.fileno(), closefd=False))

    def read(self, size: int | None = -1, /) -> bytes:
        """As any file. Raises BadZipFile beyond the limit."""
        most = DIRECTORY_LIMIT + 1
        content = super().read(most if size is None or size < 0 else min(size, most))
        if len(content) > DIRECTORY_LIMIT:
            raise zipfile.BadZipFile(f"its directory has more than {DIRECTORY_LIMIT} bytes")
        return content


class _Comparison:
    """An output that compares with a file what is written; of what is written twice, the last counts."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._place = 0
        self.different: set[int] = set()
        """Where something else was written than the file holds."""

    def tell(self) -> int:
        return self._place

    def seek(self, place: int) -> int:
        self._place = place
        return place

    def write(self, content: bytes) -> int:
        self._file.seek(self._place)
        if self._file.read(len(content)) == content:
            self.different.discard(self._place)
        else:
            self.different.add(self._place)
        self._place += len(content)
        return len(content)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is held open."""


class InvalidBundleError(Exception):
    """A file of which nothing can be said but what is wrong with it."""

    def __init__(self, where: str, what: str) -> None:
        """With the words of a `BundleProblem`."""
        super().__init__(what)
        self.problem = BundleProblem(where, what)


def open_archive(file: BinaryIO) -> tuple[zipfile.ZipFile, BundleHeader]:
    """A bundle whose entries can be read within their limits. Raises InvalidBundleError for any other file."""
    try:
        archive = zipfile.ZipFile(file)
    except _UNREADABLE as error:
        raise InvalidBundleError("file", f"is no bundle: {error}; expected a file that `bundle` wrote") from None
    _check_directory(archive, file)
    try:
        about = msgspec.json.decode(archive.read(ABOUT), type=BundleHeader)
    except (msgspec.MsgspecError, RecursionError, *_UNREADABLE) as error:
        raise InvalidBundleError(ABOUT, f"cannot be read: {error}") from None
    if about.format != BUNDLE_FORMAT:
        raise InvalidBundleError(ABOUT, f"has the format {quote(about.format)}; this version reads {BUNDLE_FORMAT!r}")
    return archive, about


def _check_directory(archive: zipfile.ZipFile, file: BinaryIO) -> None:
    entries, names = archive.infolist(), archive.namelist()
    if names[:1] != [ABOUT]:
        raise InvalidBundleError(
            "file", f"is no bundle: its first entry is not {ABOUT}; expected a file that `bundle` wrote"
        )
    if len(set(names)) < len(names) or any(map(bad_name, names)):
        raise InvalidBundleError("directory", "names entries twice, or by names that no bundle has")
    if any(entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits for entry in entries):
        raise InvalidBundleError("directory", "has entries that are compressed or encrypted; expected stored ones")
    if sum(entry.file_size for entry in entries) > file.seek(0, io.SEEK_END):
        raise InvalidBundleError("directory", "has entries that are larger than the file")
    for entry in entries:
        if (limit := limit_of(entry.filename)) is not None and entry.file_size > limit:
            what = f"has {entry.file_size} bytes; expected at most {limit} of an entry of its kind"
            raise InvalidBundleError(entry.filename, what)


def read_entries(archive: zipfile.ZipFile, file: BinaryIO, take: Callable[[str, bytes], None]) -> list[BundleProblem]:
    """Read all entries of the bundle in `file`, pack them again, and compare; the problems.

    `take` is given the names and contents of those that a verifier looks into.
    """
    problems: list[BundleProblem] = []
    comparison = _Comparison(file)
    with zipfile.ZipFile(comparison, "w") as again:
        for entry in archive.infolist():
            name = entry.filename
            kept = io.BytesIO() if limit_of(name) is not None else None
            try:
                with archive.open(entry) as source:
                    digest = add_entry(again, name, _kept(read_chunks(source), kept), size=entry.file_size)
            except _UNREADABLE as error:
                problems.append(BundleProblem(name, f"its contents have been changed: {error}"))
                continue
            if name.startswith(BLOBS) and digest != name.removeprefix(BLOBS):
                problems.append(BundleProblem(name, "its SHA-256 is not its name"))
            if kept is not None:
                take(name, kept.getvalue())
    size, end = file.seek(0, io.SEEK_END), comparison.tell()
    if not problems and comparison.different:
        problems.append(_difference(again, min(comparison.different)))
    elif not problems and size != end:
        problems.append(BundleProblem("file", f"{size - end} bytes follow its end"))
    return problems


def _kept(pieces: Iterable[bytes], kept: io.BytesIO | None) -> Iterator[bytes]:
    # Its `getvalue` copies nothing, unlike joining the pieces.
    for piece in pieces:
        if kept is not None:
            kept.write(piece)
        yield piece


def _difference(again: zipfile.ZipFile, place: int) -> BundleProblem:
    """The problem of a bundle that is another one from this place on than its contents packed again."""
    names = [entry.filename for entry in again.infolist() if entry.header_offset <= place]
    where = names[-1] if place < again.start_dir else "directory"
    return BundleProblem(where, f"has been changed: packed again, the bundle has other bytes from byte {place} on")
