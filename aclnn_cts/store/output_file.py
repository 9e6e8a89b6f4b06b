"""How files are written: what a named output may replace, and files that others read meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias, final

from aclnn_cts.core.errors import HarnessError, UsageError

STANDARD_OUTPUT = Path("-")

Recognizer: TypeAlias = Callable[[BinaryIO], bool]
"""Whether an open file is one that the command has written, by its first bytes."""

_HEAD = 1 << 16
"""First bytes that are looked at."""

_KEY = re.compile(
    rb"^-----BEGIN [A-Z0-9 ]*KEY(?: BLOCK)?-----|\A(?:ssh-|ecdsa-sha2-|sk-)[a-z0-9@.-]+ |\APuTTY-User-Key-File-",
    re.MULTILINE,
)
"""PEM (RFC 7468) and OpenSSH keys, private and public, PGP key blocks and PuTTY's files."""

_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")

_NAME_BYTES, _PATH_BYTES = 255, 4096
"""The most that Linux takes for a name and for a path (NAME_MAX, PATH_MAX)."""

_READ_IN_FOLDERS = (".yaml", ".py")
"""What a command reads of a folder that it is given: specs and oracles."""


def begins_with(pattern: bytes) -> Recognizer:
    """Recognizes a file whose first bytes match the pattern; `.` matches line breaks too."""
    compiled = re.compile(pattern, re.DOTALL)
    return lambda file: compiled.match(file.read(_HEAD)) is not None


def _nobody(_file: BinaryIO) -> bool:
    return False


@final
class OutputFile:
    """Where one output of a command goes.

    - Standard output for `-`; whatever is no regular file is written to as a stream, and never replaced.
    - Else a regular file, after symbolic links are followed, written whole or not at all.

    An existing file is replaced where `written_by_us` recognizes it, or with `force`. Inputs of the command, files in a
    run's directory and keys are never replaced.
    """

    def __init__(
        self,
        path: Path,
        *,
        written_by_us: Recognizer = _nobody,
        command: str = "this command",
        inputs: Iterable[Path] = (),
        force: bool = False,
        option: str = "-o",
        make_folder: bool = False,
    ) -> None:
        """Check the path; nothing is written yet.

        - `command`: the command that asks, for messages.
        - `inputs`: files and folders that the command reads.
        - `make_folder`: make the file's folder when it is written; else the folder must exist.

        Raises UsageError for a path that the command must not write, HarnessError where its folder takes no files.
        """
        self.path = path
        self._where = f"{option} {path}"
        self._make_folder = make_folder
        self._stream: BinaryIO | None = None
        self._descriptor = _descriptor(path)
        self._file: Path | None = None
        if path == STANDARD_OUTPUT or self._descriptor is not None:
            return
        target = Path(os.path.realpath(path))
        try:
            known = target.stat()
        except FileNotFoundError:
            self._check_place(target)
        except OSError as error:
            raise UsageError(f"{self._where}: cannot be written: {error.strerror}; name another file") from None
        else:
            if stat.S_ISDIR(known.st_mode):
                raise UsageError(f"{self._where}: is a folder; expected the name of a file")
            if not stat.S_ISREG(known.st_mode):
                return
            self._check_replacement(target, known, tuple(inputs), written_by_us, command, force=force)
        self._file = target

    def __str__(self) -> str:
        """As a message names it."""
        return "standard output" if self.path == STANDARD_OUTPUT else str(self.path)

    @property
    def is_stream(self) -> bool:
        """Whether it is standard output or no regular file."""
        return self._file is None

    @property
    def is_standard_output(self) -> bool:
        """Whether what is written comes out where the command prints."""
        return self.path == STANDARD_OUTPUT or self._descriptor == 1

    @property
    def folder(self) -> Path | None:
        """The folder in which a regular file lies; None for a stream."""
        return None if self._file is None else self._file.parent

    def write(self, content: bytes | Iterable[bytes]) -> int:
        """Write the file anew, or go on with the stream; the number of bytes.

        Raises HarnessError where it cannot be written, BrokenPipeError where the reader of standard output is gone.
        """
        size = 0

        def counted() -> Iterator[bytes]:
            nonlocal size
            for piece in [content] if isinstance(content, bytes) else content:
                size += len(piece)
                yield piece

        if self._file is None:
            with self._failures_told():
                stream = self._opened()
                stream.writelines(counted())
                stream.flush()
            return size
        with no_new_folders_on_failure(self._file.parent):
            if self._make_folder:
                try:
                    self._file.parent.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise storage_failure(self._file.parent, error) from error
            write_atomically(self._file, counted())
        return size

    def append(self, content: bytes) -> None:
        """Add to what was written. Raises as `write` does."""
        if self._file is None:
            self.write(content)
            return
        with self._failures_told(), self._file.open("ab") as file:
            file.write(content)

    def close(self) -> None:
        """Let go of the stream; what could not be written to it has been told."""
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.close()

    @contextlib.contextmanager
    def _failures_told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # What becomes of standard output is the same for every command, whether it was named or not.
            if self.is_standard_output:
                raise
            raise storage_failure(self.path, error) from error

    def _opened(self) -> BinaryIO:
        """The stream, opened the first time: a FIFO waits for its reader."""
        if self.path == STANDARD_OUTPUT:
            sys.stdout.flush()
            return sys.stdout.buffer
        if self._stream is None:
            if self._descriptor is not None:
                sys.stdout.flush()
                number = os.dup(self._descriptor)
            else:
                number = os.open(self.path, os.O_WRONLY | os.O_NOCTTY)
            self._stream = os.fdopen(number, "wb")
        return self._stream

    def _check_place(self, target: Path) -> None:
        """Whether a new file may be made there."""
        from aclnn_cts.store.run_directory import belongs_to_run, enclosing_run  # noqa: PLC0415 - NumPy comes with it, and a command speaks first

        if belongs_to_run(target):
            raise UsageError(
                f"{self._where}: {target.name} belongs to the run {enclosing_run(target)}; name a file outside of it"
            )
        folder = target.parent
        if not folder.is_dir():
            if self._make_folder:
                return
            shown = folder if self.path.is_symlink() else self.path.parent
            raise UsageError(f"{self._where}: {shown} is no folder; make it first, or name another file")
        self._try_folder(folder)

    def _try_folder(self, folder: Path) -> None:
        """See before the work whether the folder takes files."""
        try:
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise storage_failure(self.path, error) from error

    def _check_replacement(
        self,
        target: Path,
        known: os.stat_result,
        inputs: tuple[Path, ...],
        written_by_us: Recognizer,
        command: str,
        *,
        force: bool,
    ) -> None:
        """Whether the file that is there may be replaced."""
        from aclnn_cts.store.run_directory import enclosing_run  # noqa: PLC0415 - as above

        try:
            with target.open("rb") as file:
                head = file.read(_HEAD)
                file.seek(0)
                ours = written_by_us(file)
        except OSError as error:
            raise UsageError(f"{self._where}: exists and cannot be read: {error.strerror}; name another file") from None
        if (read := _same_input(known, inputs, ours=ours)) is not None:
            raise UsageError(f"{self._where}: the command reads this file ({read}); name another file")
        if (run := enclosing_run(target)) is not None:
            raise UsageError(f"{self._where}: lies in the run {run}; name a file outside of it")
        if _KEY.search(head) is not None:
            raise UsageError(f"{self._where}: holds a key, which is never replaced; name another file")
        if not ours and not force:
            raise UsageError(
                f"{self._where}: exists, and `{command}` did not write it; name another file, or replace this one "
                "with --force"
            )
        self._try_folder(target.parent)


def _descriptor(path: Path) -> int | None:
    """The number of an open descriptor that a path stands for, such as /dev/stdout; None for any other path.

    What is behind it is written to as it was opened: a shell may have opened a file to append.
    """
    place = path.absolute()
    for _ in range(8):
        found = _DESCRIPTOR.fullmatch(str(place))
        if found is not None:
            return int(found[1])
        try:
            place = place.parent / place.readlink()
        except OSError:
            return None
    return None


def _same_input(known: os.stat_result, inputs: Iterable[Path], *, ours: bool) -> Path | None:
    """The input that is the existing file; links of all kinds lead to the same file.

    Of a folder it is what a command reads there, but for a program that the command itself has put beside.
    """
    for path in inputs:
        try:
            if os.path.samestat(path.stat(), known):
                return path
            if path.is_dir() and not ours:
                for suffix in _READ_IN_FOLDERS:
                    for file in path.glob(f"*{suffix}"):
                        if os.path.samestat(file.stat(), known):
                            return file
        except OSError:
            continue
    return None


def unusable_name(path: Path) -> str:
    """Why no file or folder can have this path; empty where one can."""
    try:
        words = str(path.absolute()).encode()
    except UnicodeEncodeError:
        return "is not UTF-8"
    longest = max(map(len, words.split(b"/")))
    if longest > _NAME_BYTES:
        return f"has a part of {longest} bytes; at most {_NAME_BYTES} fit"
    # A run keeps files in folders below its own.
    most = _PATH_BYTES - _NAME_BYTES
    return f"is {len(words)} bytes long; at most {most} fit" if len(words) > most else ""


@contextlib.contextmanager
def no_new_folders_on_failure(path: Path) -> Iterator[None]:
    """Remove the folders of `path`, itself included, that a block which fails has made and left empty."""
    missing = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    try:
        yield
    except BaseException:
        for folder in missing:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_atomically(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file so that readers see the old contents or all of the new, also after a kill or a power failure.

    A file that is replaced hands its permissions on.
    Raises HarnessError where the disk is full or the folder cannot be written; the old file then stands as it was.
    """
    # A shorter name where the file's own is nearly as long as names can be.
    partial = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}.partial")
    try:
        try:
            with partial.open("xb") as file:
                with contextlib.suppress(FileNotFoundError):
                    os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
                file.writelines([content] if isinstance(content, bytes) else content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise
    except OSError as error:
        raise storage_failure(path, error) from error


def storage_failure(path: Path, error: OSError) -> HarnessError:
    """The HarnessError for a write to `path` that failed."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return HarnessError(f"{path}: cannot be written: {reason}; free space on this file system and run again")
    if isinstance(error, BrokenPipeError):
        return HarnessError(f"{path}: cannot be written: its reader is gone; start one that reads to the end")
    return HarnessError(f"{path}: cannot be written: {reason}; check that the folder exists and may be written")
