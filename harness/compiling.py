"""Compiling is no part of an answer: it is timed apart, and small instances do not wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from ..core.instance import Instance
from ..core.kernel import Allowance, compilation_observed, interpreted_first
from .clock import WallClock
from .request import Listener

#: Instances of up to this many NPUs begin without compiled loops.
_SMALL = 32

#: Seconds of the processor that loops may take uncompiled, in all runs of a process.
ALLOWANCE = Allowance(3.0)


@contextmanager
def compiled_apart(instance: Instance, clock: WallClock, listener: Listener) -> Iterator[None]:
    """Stop the clock of a run while loops are compiled, and tell that they are; small instances run them as they are.

    Compiled code is kept on disk, so this happens once for every version of the code.
    """
    told = False

    @contextmanager
    def apart() -> Iterator[None]:
        nonlocal told
        if not told:
            listener.progress("compiling loops, which takes some seconds once; 'cwb warm' does it ahead")
        told = True
        listener.compiling(True)
        try:
            with clock.apart("compile"):
                yield
        finally:
            listener.compiling(False)

    small = interpreted_first(ALLOWANCE, clock.cpu_s) if instance.npus <= _SMALL else nullcontext()
    with compilation_observed(apart), small:
        yield
