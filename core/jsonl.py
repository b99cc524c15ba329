"""JSONL files that several processes append to, with whole lines only even if a writer dies."""

import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from .errors import InputError, locate_os_errors
from .files import NO_LINK, write_whole

if sys.platform != "win32":
    import fcntl

BROKEN = ".broken"  #: Beside the file, with this at the end of its name: what was found in it and is no line of JSON.


@dataclass(frozen=True)
class Appendable:
    """Open JSONL file, locked against changes by others."""

    path: Path
    descriptor: int

    def append(self, line: bytes) -> None:
        """Append a line with its newline; if the disk is full, remove the written part.

        Devices and pipes are written to directly. An incomplete last line is healed first: completed if only its
        newline is missing, else moved aside. Raises InputError if only a part of the line could be written, OSError if
        nothing.
        """
        if not stat.S_ISREG(os.fstat(self.descriptor).st_mode):
            with os.fdopen(os.dup(self.descriptor), "wb") as stream:
                stream.write(line)
            return
        self._heal_tail()
        end = os.lseek(self.descriptor, 0, os.SEEK_END)
        try:
            count = os.write(self.descriptor, line)
            os.fsync(self.descriptor)
        except OSError:
            os.ftruncate(self.descriptor, end)
            raise
        if count != len(line):
            os.ftruncate(self.descriptor, end)
            problem = f"took {count:,} of a record's {len(line):,} bytes: is the disk full?"
            raise InputError(problem, source=str(self.path))

    def _heal_tail(self) -> None:
        """Complete a last line that lacks only its newline; move any other rest aside."""
        end = os.lseek(self.descriptor, 0, os.SEEK_END)
        if end == 0 or os.pread(self.descriptor, 1, end - 1) == b"\n":
            return
        start = self._last_line(end)
        tail = os.pread(self.descriptor, end - start, start)
        if is_object(tail):
            os.write(self.descriptor, b"\n")
        else:
            move_aside(self.path, [tail])
            os.ftruncate(self.descriptor, start)

    def _last_line(self, end: int, block: int = 2**16) -> int:
        while end > 0:
            start = max(0, end - block)
            place = os.pread(self.descriptor, end - start, start).rfind(b"\n")
            if place >= 0:
                return start + place + 1
            end = start
        return 0


@contextmanager
def lock_for_append(path: Path) -> Iterator[Appendable]:
    """Open or create a file for appending, and lock it against every other writer."""
    descriptor = _open(path)
    try:
        yield Appendable(path, descriptor)
    finally:
        os.close(descriptor)  # which ends the lock


def _open(path: Path) -> int:
    if is_stream(path):
        return os.open(path, os.O_WRONLY)  # nothing to lock, and nothing to heal
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        if lock(descriptor, wait=True) and is_open(descriptor, path):
            return descriptor
        os.close(descriptor)  # replaced by another file while the lock was waited for


def lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file against every other opening; False if it is locked and ``wait`` is off.

    The lock ends when the file is closed, also by the death of the process. On a system without such locks the
    result is always True.
    """
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
    return True


def is_stream(path: Path) -> bool:
    """Check if a path is a device or a pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def is_open(descriptor: int, path: Path) -> bool:
    """Check if an open file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def move_broken_lines(path: Path) -> int:
    """Move lines that are not JSON objects to a file with the suffix ``.broken``; return their number."""
    if not path.exists() or is_stream(path):
        return 0
    with locate_os_errors("cannot be read", str(path)), lock_for_append(path) as file:
        lines = BytesIO(path.read_bytes()).readlines()
        bad_lines = [line for line in lines if not is_object(line)]
        if bad_lines:
            move_aside(path, bad_lines)
            whole = [line if line.endswith(b"\n") else line + b"\n" for line in lines if is_object(line)]
            write_whole(path, b"".join(whole))
        elif lines and not lines[-1].endswith(b"\n"):
            os.write(file.descriptor, b"\n")
        return len(bad_lines)


def is_object(line: bytes) -> bool:
    """Check if a line is a JSON object."""
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(line), dict)
    return False


def move_aside(path: Path, lines: list[bytes]) -> None:
    """Append lines to the file of broken lines, before their removal."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_LINK
    with os.fdopen(os.open(path.with_name(path.name + BROKEN), flags, 0o666), "ab") as aside:
        aside.write(b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines))
        aside.flush()
        os.fsync(aside.fileno())
