"""Compilation outside the measured time of a run; small instances do not wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from ..core.instance import Instance
from ..core.kernel import Allowance, compilation_observed, prefer_interpreted
from .clock import WallClock
from .request import Listener

_SMALL = 32  #: Instances of up to this many NPUs begin without compiled loops.
ALLOWANCE = Allowance(3.0)  #: Seconds of the processor that loops may take uncompiled, in all runs of a process.


@contextmanager
def time_compiling_apart(instance: Instance, clock: WallClock, listener: Listener) -> Iterator[None]:
    """Stop the clock while loops are compiled, and notify the listener.

    Small instances start with interpreted loops. Compiled code is cached on disk, once per version of the code.
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

    small = prefer_interpreted(ALLOWANCE, clock.cpu_s) if instance.npus <= _SMALL else nullcontext()
    with compilation_observed(apart), small:
        yield
