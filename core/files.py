"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from .errors import InputError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file by renaming a finished one, so that no half-written file is ever seen.

    Raises
    ------
    InputError
        If it cannot be written; nothing is left behind.
    """
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".cwb-", suffix=".partial", dir=path.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()
        raise InputError((error.strerror or "cannot be written").lower(), source=str(path)) from None


def _umask() -> int:
    """Permissions that new files do not get; mkstemp's file would be its owner's alone."""
    current = os.umask(0)
    os.umask(current)
    return current
