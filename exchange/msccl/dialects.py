"""Limits and conventions of the three runtimes.

Read from their sources: microsoft/msccl b23e9cd (``src/include/msccl.h``, ``src/graph/topo.cc``), ROCm/rccl 0cbce2a
(``src/include/msccl/msccl_struct.h``, ``src/misc/msccl/msccl_parser.cc``, ``msccl_setup.cc``) and
Azure/msccl-executor-nccl c6f6b36, whose parser is RCCL's.
"""

from dataclasses import dataclass

from ...core.errors import InputError

#: A step moves fewer chunks than this, and a chain of ``re`` has at most so many; common to all.
MAX_COUNT = 72
MAX_FUSION = 16
BLOCKS_PER_CHANNEL = 32  #: Thread blocks that send over a channel, and as many that receive.
MAX_WAITED = 128  #: Thread blocks from this number on cannot be waited for: the number is kept in 8 bits with a sign.
MAX_OFFSET = 2**15  #: Offsets are kept in 16 bits with a sign.
#: What a runtime's XML reader holds: elements that it keeps of a file, children of one, attributes, characters.
MAX_ELEMENTS = 4096
MAX_CHILDREN = 1024
MAX_ATTRIBUTES = 16
MAX_CHARACTERS = 255
PROTOCOLS = ("Simple", "LL", "LL128")
#: What a connection holds that is sent and not yet received, in parts of a step, and bytes of a part, by protocol: of
#: NCCL's 8 slots a part of Simple takes 4; sizes are those of NCCL's default buffers.
SLOTS = {"Simple": 2, "LL": 8, "LL128": 8}
SLOT_BYTES = {"Simple": 2**21, "LL": 2**15, "LL128": 576_000}
DEFAULT_MAX_BYTES = 2**27  #: ``maxBytes`` of a file that does not say it.


@dataclass(frozen=True)
class Dialect:
    """A runtime."""

    name: str
    steps: int
    blocks: int
    channels: int
    collectives: dict[str, str]
    also: frozenset[str] = frozenset()
    #: Whether files have both ``inplace`` and ``outofplace``; otherwise ``inplace`` alone, which must match the call.
    placed: bool = True
    #: Whether ``maxBytes`` is the first size beyond a file's range; otherwise the last within, and 0 is no limit.
    exclusive: bool = False
    fused: bool = True  #: Whether the default build has fused steps.
    checked: bool = False
    residual_add: bool = False


_COMMON = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "all_to_all": "alltoall",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
_EXECUTOR = _COMMON | {
    "reduce_scatter": "reducescatter",
    "gather": "gather",
    "scatter": "scatter",
    "point_to_point": "alltoallv",
}

_OF_MSCCL = _COMMON | {"reduce_scatter": "reduce_scatter", "point_to_point": "custom"}

DIALECTS = {
    one.name: one
    for one in (
        Dialect("msccl", 256, 216, 32, _OF_MSCCL, placed=False, exclusive=True, checked=True, residual_add=True),
        Dialect("msccl-executor", 256, 1024, 32, _EXECUTOR, frozenset({"send", "recv"})),
        Dialect("rccl", 64, 64, 128, _EXECUTOR, frozenset({"send", "recv"}), fused=False),
    )
}


def dialect_of(name: str) -> Dialect:
    """Return a dialect by its name."""
    if name not in DIALECTS:
        raise InputError(f"{name!r} is no dialect; expected {', '.join(DIALECTS)}", source="--dialect")
    return DIALECTS[name]
