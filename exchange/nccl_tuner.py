"""What NCCL's example tuner plugin reads: which of NCCL's own algorithms it is to use for which sizes.

A line is ``collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks``, with both sizes included and -1 for any
number (NVIDIA/nccl 5067397, ``plugins/tuner/example``). Words that the plugin does not know become others without a word,
so that only those are written here that it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.collective import CollectiveKind

#: Names of the collectives that can be tuned.
COLLECTIVES: Mapping[CollectiveKind, str] = {
    CollectiveKind.ALL_REDUCE: "allreduce",
    CollectiveKind.ALL_GATHER: "allgather",
    CollectiveKind.REDUCE_SCATTER: "reducescatter",
    CollectiveKind.BROADCAST: "broadcast",
    CollectiveKind.REDUCE: "reduce",
}

#: Algorithms of NCCL by the method of cwb that makes the same; NCCL's trees are for all-reduce alone.
ALGORITHMS: Mapping[str, str] = {"ring": "ring", "dbt": "tree"}


def algorithm_of(kind: CollectiveKind, model: str) -> str | None:
    """NCCL's name of what a method makes; None if NCCL has it not."""
    name = ALGORITHMS.get(model)
    if kind not in COLLECTIVES or (name == "tree" and kind is not CollectiveKind.ALL_REDUCE):
        return None
    return name


def tuner_text(kind: CollectiveKind, spans: Sequence[tuple[int, int, str]], ranks: int, protocol: str) -> str:
    """Write the file.

    Parameters
    ----------
    kind : CollectiveKind
        One of :data:`COLLECTIVES`.
    spans : sequence of (int, int, str)
        First and last size in bytes, and NCCL's algorithm.
    ranks : int
        Ranks of the communicators that it is for.
    protocol : str
        ``Simple``, ``LL`` or ``LL128``.
    """
    head = "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n"
    lines = [
        f"{COLLECTIVES[kind]},{first},{last},{algorithm},{protocol.lower()},-1,-1,{ranks}\n"
        for first, last, algorithm in spans
    ]
    return "".join([head, *lines])
