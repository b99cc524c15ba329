"""Files that are read whole up to a limit, and written whole or not at all: the one way in which cwb writes for somebody.

What is written goes to a new file in the same folder, whose name nobody can guess and which nobody else can have made; it
is brought to the disk, and renamed. So no reader sees half a file, of several writers one wins as a whole, and nothing
is written through a link that somebody has put in the way. A link that is there on purpose stays: what it leads to is
replaced. Devices, pipes and what stdout and stderr go to are written to, since there is nothing to replace.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, BinaryIO

from .errors import InputError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

#: Follow no link where a file is opened; not every system can.
NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)


def read_whole(path: Path | Traversable, most: int, kind: str) -> bytes:
    """Read a file, unless it has more than so many bytes.

    Parameters
    ----------
    path : Path or Traversable
        The file.
    most : int
        A larger file is rejected before it is read.
    kind : str
        What is expected where there is a directory, such as ``a JSON file``.

    Raises
    ------
    InputError
        If it cannot be read, or is larger; the caller names the file.
    """
    try:
        if path.is_dir():
            raise InputError(f"is a directory; expected {kind}")
        if isinstance(path, Path) and (size := path.stat().st_size) > most:
            raise InputError(f"{size:,} bytes; expected at most {most:,}")
        with path.open("rb") as stream:
            raw = stream.read(most + 1)
    except OSError as error:
        raise InputError((error.strerror or "cannot be read").lower()) from None
    except ValueError:
        raise InputError("cannot be read: no file has such a name") from None
    if len(raw) > most:
        raise InputError(f"more than {most:,} bytes")
    return raw


def write_whole(path: Path, content: bytes) -> None:
    """Write a file at once; see :func:`written`.

    Raises
    ------
    InputError
        If it cannot be written; nothing is left behind.
    """
    with written(path) as stream:
        stream.write(content)


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Open a file to be written; it is there when the block has ended, and not before.

    A new file has the permissions that the umask leaves, one that is replaced keeps its own. If the block raises
    anything, nothing has changed, but for devices and pipes.

    Parameters
    ----------
    path : Path
        Where to.

    Raises
    ------
    InputError
        If it cannot be written; errors of the block are passed on.
    """
    try:
        there = _status(path)
        if there is not None and stat.S_ISDIR(there.st_mode):
            raise InputError("is a directory", source=str(path))
        if there is not None and (descriptor := _written_through(path, there)) is not None:
            with os.fdopen(descriptor, "wb") as stream:
                yield stream
        else:
            yield from _replaced(Path(os.path.realpath(path)), there)
    except OSError as error:
        raise InputError((error.strerror or "cannot be written").lower(), source=str(path)) from None


def _status(path: Path) -> os.stat_result | None:
    """What is there, links followed; None if nothing is."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except ValueError:  # a null character
        raise InputError("cannot be written: no file has such a name", source=str(path)) from None


def _written_through(path: Path, there: os.stat_result) -> int | None:
    """Open what is not replaced: a device, a pipe, and the file that stdout or stderr go to; None if it is none."""
    if not stat.S_ISREG(there.st_mode):
        return os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
    for standard in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(standard), there):
                return os.dup(standard)
    return None


def _replaced(path: Path, there: os.stat_result | None) -> Iterator[BinaryIO]:
    """Write a new file, and give it the name when it is complete."""
    temporary = path.with_name(f".cwb-{token_hex(8)}.partial")
    stream = open(temporary, "xb", opener=_new)  # noqa: SIM115 (Path.open has no opener)
    try:
        with stream:
            if there is not None:
                temporary.chmod(stat.S_IMODE(there.st_mode) & 0o777)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        with suppress(OSError):  # it has its name
            temporary.unlink()


def _new(path: str, flags: int) -> int:
    """Make a file that nobody else has made, not even as a link; the umask is applied."""
    return os.open(path, flags | os.O_EXCL | NO_LINK, 0o666)
