"""Folders that commands create, whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import InputError, locate_errors, locate_os_errors


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
            made = Path(temporary) / "new"
            made.mkdir()
            yield made
            made.rename(folder)
