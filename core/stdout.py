"""Redirection of the process's stdout, including output of C libraries."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any


@contextmanager
def stdout_to(descriptor: int) -> Iterator[None]:
    """Redirect stdout to another file descriptor, such as 2 for stderr, within the context."""
    sys.stdout.flush()
    try:
        copy = os.dup(1)
        os.dup2(descriptor, 1)
    except OSError:  # one of them is closed: nothing to keep apart
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError, TypeError, AttributeError):  # where the C library cannot be had this way
            ctypes.CDLL(None).fflush(None)  # C's own buffer of stdout
        os.dup2(copy, 1)
        os.close(copy)


def silent_highs() -> Any:
    """Create a HiGHS instance that writes nothing.

    From 1.16 on the first one of a process writes its version and licence on stdout before any option can be set.
    """
    import highspy

    _first_highs()
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    return highs


@cache
def _first_highs() -> None:
    import highspy

    with Path(os.devnull).open("w") as nothing, stdout_to(nothing.fileno()):
        highspy.Highs()
