"""Sources and targets of plan operations, and the executor's limits.

Letters denote them: ``L`` memory of the GPU, ``R`` memory of another one, ``P`` packets in the GPU's scratch memory,
``Q`` packets in that of another one, ``S`` a switch channel, ``T`` packets over one. Packets are data with a flag of
the call, twice as long; their readers wait for the flag.
"""

from __future__ import annotations

from dataclasses import dataclass

from .plan import MEMORY, PORT, SWITCH

#: Operations of a thread block (those of pipelines too), channels of a kind, channels and buffers of an operation.
MAX_OPERATIONS = 64
MAX_CHANNELS = 16
MAX_OP_CHANNELS = 8
MAX_OP_BUFFERS = 10

#: Barriers of a GPU, semaphores of an operation, operations of a pipeline, threads of a block.
MAX_BARRIERS = 16
MAX_SEMAPHORES = 16
MAX_PIPELINE = 16
MAX_THREADS = 1024

#: Scratch memory where it is reused.
SCRATCH_BYTES = 2**26

#: Thread blocks that run at once on an H100, one on each multiprocessor.
RESIDENT = 132


@dataclass(frozen=True)
class Kind:
    """An operation that moves data.

    Parameters
    ----------
    src, dst : str
        What is read and written.
    more_src, more_dst : str
        What may follow, any number of times.
    each : bool
        Whether every source is written to the target of the same place; otherwise the sum of all is written to all.
    over : tuple of str
        Kinds of channels of what is remote.
    """

    src: str
    dst: str
    more_src: str = ""
    more_dst: str = ""
    each: bool = False
    over: tuple[str, ...] = (MEMORY,)

    def letters(self, sources: int, targets: int) -> tuple[str, str]:
        """Return a letter for each of so many sources and targets; fewer if they are too many."""
        src = self.src + self.more_src * max(sources - len(self.src), 0)
        return src[:sources], (self.dst + self.more_dst * max(targets - len(self.dst), 0))[:targets]

    def fits(self, sources: int, targets: int) -> bool:
        """Return whether so many sources and targets are allowed."""
        if self.each:
            return 0 < sources == targets
        right = sources == len(self.src) or (sources > len(self.src) and bool(self.more_src))
        return right and (targets == len(self.dst) or (targets > len(self.dst) and bool(self.more_dst)))


_ANY = (MEMORY, PORT)

MOVES = {
    "copy": Kind("L", "L"),
    "put": Kind("", "", "L", "R", each=True, over=_ANY),
    "pws": Kind("", "", "L", "R", each=True, over=(PORT,)),
    "pwsf": Kind("", "", "L", "R", each=True, over=(PORT,)),
    "get": Kind("", "", "R", "L", each=True),
    "re": Kind("L", "L", "L"),
    "res": Kind("L", "L", "L", "R"),
    "rre": Kind("L", "L", "R"),
    "rres": Kind("L", "L", "R", "R"),
    "ppkt": Kind("", "", "L", "Q", each=True, over=_ANY),
    "rppkt": Kind("P", "", "", "Q", over=_ANY),
    "cpkt": Kind("L", "P"),
    "upkt": Kind("P", "L"),
    "repkt": Kind("L", "L", "P"),
    "respkt": Kind("L", "L", "P", "Q"),
    "recpkt": Kind("L", "LP", "P"),
    "recspkt": Kind("L", "LP", "P", "Q"),
    "glres": Kind("S", "S", over=(SWITCH,)),
    "gstore": Kind("L", "S", over=(SWITCH,)),
    "gstorepkt": Kind("P", "T", over=(SWITCH,)),
}

#: Operations that move nothing, and the kinds of channels of those that have some.
OTHERS: dict[str, tuple[str, ...]] = {
    "nop": (),
    "barrier": (),
    "signal": _ANY,
    "wait": _ANY,
    "rlxsignal": _ANY,
    "rlxwait": _ANY,
    "flush": (PORT,),
    "pipeline": (),
    "sem_acquire": (),
    "sem_release": (),
}

SIGNALS, WAITS = frozenset({"signal", "rlxsignal"}), frozenset({"wait", "rlxwait"})

#: Operations whose data is packets, for which pipelines do not cut it.
PACKETS = frozenset(
    name for name, kind in MOVES.items() if set("PQT") & set(kind.src + kind.dst + kind.more_src + kind.more_dst)
)


def letters_of(name: str, sources: int, targets: int, over: str) -> tuple[str, str]:
    """Return the letters of an operation; over a port, only packets are put as packets."""
    src, dst = MOVES[name].letters(sources, targets)
    return (src.replace("L", "P"), dst) if name == "ppkt" and over == PORT else (src, dst)
