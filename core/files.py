"""Atomic writing of files and folders, and reading of whole files up to a limit.

Content goes to a new file in the same folder, with a name that cannot be guessed or taken by others; it is flushed
to disk and renamed. So no reader sees half a file, one of several writers wins as a whole, and nothing is written
through a link that somebody has put in the way. An intended link stays: its target is replaced. Devices, pipes and
the targets of stdout and stderr are written to directly, since they cannot be replaced.
"""

from __future__ import annotations

import gc
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, BinaryIO

from .errors import InputError, locate_errors, locate_os_errors

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)  #: Follow no link where a file is opened; not every system can.

#: Beginnings of files as cwb writes them: its own marks, and first lines in formats that have no room for one.
_OWN = re.compile(
    rb'\{\s*"schema": "cwb-(?!instance|record|workload)|PK.{28}file\.json'  # answers and results
    rb'|\[\s*\{\s*"table": |\{\s*"\$defs": |\{"displayTimeUnit": "ns", |\{"name": "[^"]*", "collective": '
    rb'|<!DOCTYPE html>.*<meta name="generator" content="cwb">|.PNG.*Software.cwb|<\?xml .*>cwb<|%PDF.*/Creator \(cwb\)'
    rb"|\\(?:begin\{table\}|begingroup\n|documentclass\{article\}\n\\usepackage\[paperwidth)"  # tables
    rb'|\*\*[^\n]+\*\*\n\n\||[^\n]+\n\n(?:[^\n]*  [^\n]+\n){1,5}-{9,}\n|"[^"\n]*"(?:,"[^"\n]*")*\n'
    rb"|\\\* Source Pyomo |\\ File written by HiGHS|\* Source: +Pyomo |NAME *\nROWS"  # models
    rb'|<algo name="|num_ranks \d|Nodes \d+\nConnections ',  # programs
    re.DOTALL,
)
_OWN_INSTANCE = re.compile(rb'\{\s*"schema": "cwb-instance/1",.*"source": ', re.DOTALL)
_HEAD_BYTES = 65536  #: Bytes of a file in which its mark is looked for.


@contextmanager
def without_collector() -> Iterator[None]:
    """Pause the collector while much data is made: it has no cycles, and to search millions of objects takes longer."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def is_replaceable(path: Path, *, with_instance: bool) -> bool:
    """Return True if a file is new, empty, not regular, or one that cwb wrote.

    ``with_instance`` also counts instance files that name their source, as imported ones do.
    """
    if not path.is_file() or str(path).startswith("/dev/") or path.stat().st_size == 0:
        return True
    with path.open("rb") as stream:
        head = stream.read(-1 if path.suffix == ".pdf" else _HEAD_BYTES)  # a PDF names its maker at the end
    if head.startswith(b"\x1f\x8b"):
        with suppress(zlib.error):
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD_BYTES)
    return bool(_OWN.match(head) or (with_instance and _OWN_INSTANCE.match(head)))


def read_whole(path: Path | Traversable, most: int, kind: str) -> bytes:
    """Read a file of at most ``most`` bytes; the caller names it in errors.

    ``kind`` is the expected input, such as ``a JSON file``, for the error if the path is a directory.
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
        raise InputError("cannot be read: invalid file name") from None
    if len(raw) > most:
        raise InputError(f"more than {most:,} bytes")
    return raw


def read_text(path: Path, max_bytes: int) -> str:
    """Read a UTF-8 text file of at most ``max_bytes``; the caller names it in errors."""
    raw = read_whole(path, max_bytes, "a text file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text at byte {error.start:,}") from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically, or raise InputError and leave nothing; see :func:`open_atomic`."""
    with open_atomic(path) as stream:
        stream.write(content)


@contextmanager
def open_atomic(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that appears only when the block has ended.

    A new file has the permissions that the umask leaves, a replaced one keeps its own. If the block raises an
    exception, nothing has changed, except for devices and pipes.
    """
    with locate_os_errors("cannot be written", str(path)):
        there = _status(path)
        if there is not None and stat.S_ISDIR(there.st_mode):
            raise InputError("is a directory", source=str(path))
        if there is not None and (descriptor := _open_in_place(path, there)) is not None:
            with os.fdopen(descriptor, "wb") as stream:
                yield stream
        else:
            yield from _open_replacement(Path(os.path.realpath(path)), there)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except ValueError:  # a null character
        raise InputError("cannot be written: invalid file name", source=str(path)) from None


def _open_in_place(path: Path, there: os.stat_result) -> int | None:
    """Open a target that is written directly, a device, a pipe, or the file of stdout or stderr; else None."""
    if not stat.S_ISREG(there.st_mode):
        return os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
    for standard in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(standard), there):
                return os.dup(standard)
    return None


def _open_replacement(path: Path, there: os.stat_result | None) -> Iterator[BinaryIO]:
    temporary = path.with_name(f".cwb-{token_hex(8)}.partial")
    # Created exclusively, without following links; the umask is applied.
    stream = open(temporary, "xb", opener=lambda path, flags: os.open(path, flags | NO_LINK, 0o666))  # noqa: SIM115
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


def check_new(folder: Path) -> None:
    """Reject a folder that is not empty, or has no parent folder, before anything is computed."""
    with locate_errors(source=str(folder)):
        try:
            if not folder.absolute().parent.is_dir():
                raise InputError("its folder does not exist")
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise InputError("already exists; expected a new folder, or an empty one")
        except (OSError, ValueError) as error:
            raise InputError((getattr(error, "strerror", None) or "cannot be made").lower()) from None


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder to fill; it gets its name when the block ends, and is removed on an exception."""
    with locate_errors(source=str(folder)), locate_os_errors("cannot be written"):
        parent = folder.absolute().parent
        with tempfile.TemporaryDirectory(prefix=".cwb-", dir=parent, ignore_cleanup_errors=True) as temporary:
            draft = Path(temporary) / "new"
            draft.mkdir()
            yield draft
            draft.rename(folder)
