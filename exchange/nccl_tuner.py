"""Input of NCCL's example tuner plugin: algorithms of NCCL by range of sizes.

A line is ``collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks``, with both sizes included and -1
for any number (NVIDIA/nccl 5067397, ``plugins/tuner/example``). The plugin silently replaces words that it does not
know, so that only known ones are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.collective import Collective

#: Names of the collectives that can be tuned.
COLLECTIVES: Mapping[Collective, str] = {
    Collective.ALL_REDUCE: "allreduce",
    Collective.ALL_GATHER: "allgather",
    Collective.REDUCE_SCATTER: "reducescatter",
    Collective.BROADCAST: "broadcast",
    Collective.REDUCE: "reduce",
}

#: Algorithms of NCCL by the method of cwb that makes the same; NCCL's trees are for all-reduce alone.
ALGORITHMS: Mapping[str, str] = {"ring": "ring", "dbt": "tree"}


def algorithm_of(kind: Collective, model: str) -> str | None:
    """NCCL's name of what a method makes; None if NCCL has it not."""
    name = ALGORITHMS.get(model)
    if kind not in COLLECTIVES or (name == "tree" and kind is not Collective.ALL_REDUCE):
        return None
    return name


def tuner_text(kind: Collective, spans: Sequence[tuple[int, int, str]], ranks: int, protocol: str) -> str:
    """Write the file.

    Parameters
    ----------
    spans : sequence of (int, int, str)
        First and last size in bytes, and NCCL's algorithm.
    """
    head = "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n"
    lines = [
        f"{COLLECTIVES[kind]},{first},{last},{algorithm},{protocol.lower()},-1,-1,{ranks}\n"
        for first, last, algorithm in spans
    ]
    return "".join([head, *lines])
