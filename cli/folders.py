"""Folders that commands make, whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core.errors import InputError, located


def check_new(folder: Path) -> None:
    """Reject a folder that cannot be made, before anything is computed.

    Raises
    ------
    InputError
        If there is something in it already, or the folder that it is to be in does not exist.
    """
    with located(source=str(folder)):
        try:
            if not folder.absolute().parent.is_dir():
                raise InputError("its folder does not exist")
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise InputError("is there already; expected a new folder, or an empty one")
        except (OSError, ValueError) as error:
            raise InputError((getattr(error, "strerror", None) or "cannot be made").lower()) from None


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to be filled, which has the wanted name when the block has ended, and is gone if the block raises anything.

    Raises
    ------
    InputError
        If it cannot be written; nothing is left behind.
    """
    with located(source=str(folder)):
        try:
            parent = folder.absolute().parent
            with tempfile.TemporaryDirectory(prefix=".cwb-", dir=parent, ignore_cleanup_errors=True) as temporary:
                made = Path(temporary) / "new"
                made.mkdir()
                yield made
                made.rename(folder)
        except OSError as error:
            raise InputError((error.strerror or "cannot be written").lower()) from None
