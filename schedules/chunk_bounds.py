"""Verification of bounds on schedules that move chunks whole."""

from __future__ import annotations

from fractions import Fraction

from ..core.answers import Answer
from ..core.bounds import WholeChunks
from ..core.conditions import Condition
from ..core.errors import InputError
from ..core.instance import Instance
from ..core.schedule import Schedule, StepSchedule
from ..core.topology import NodeKind, Topology
from .verify.sizes import demanded_bytes


def recomputed_chunk_bound(instance: Instance, certificate: WholeChunks) -> Fraction:
    """Return the seconds until every rank has a rank's last whole chunk, see :class:`~cwb.core.bounds.WholeChunks`.

    Raises
    ------
    InputError
        If the rank does not exist or has no outgoing link, a switch copies, or chunks have no size.
    """
    topology = instance.network
    if not isinstance(topology, Topology):
        raise InputError("expected a network of nodes and links, not of dimensions without bandwidth", place="network")
    if not 0 <= certificate.rank < len(topology.ranks):
        raise InputError(f"rank {certificate.rank} of {len(topology.ranks)}", place="certificate.rank")
    if certificate.chunk_bytes <= 0:
        raise InputError(f"{certificate.chunk_bytes} bytes; expected more than 0", place="certificate.chunk_bytes")
    if any(node.kind is not NodeKind.COMPUTE and node.copies for node in topology.nodes):
        raise InputError("a switch copies chunks in transit", place="certificate")
    needs = {c: size for c, size in demanded_bytes(instance).items() if _stems_from(c, certificate.rank)}
    if not needs:
        return Fraction(0)
    leaving = [Fraction(0)] * len(topology.nodes)
    for link, (tail, _) in zip(topology.links, topology.link_ends, strict=True):
        leaving[tail] += link.bandwidth_Bps
    own, most = leaving[topology.rank_nodes[certificate.rank]], max(leaving[node] for node in topology.rank_nodes)
    if not own:
        raise InputError("data must leave the rank, but no link does", place="certificate.rank")
    having = min(len({certificate.rank, *needed}) for _, needed, _ in needs)
    doublings = (having - 1).bit_length() - 1
    return sum(needs.values(), Fraction(0)) / own + doublings * certificate.chunk_bytes / most


def fault_of_chunks(certificate: WholeChunks, answer: Answer) -> str | None:
    """Explain why the certificate does not apply to an answer: no schedule, or finer chunks."""
    if not isinstance(answer, StepSchedule | Schedule):
        return "speaks of whole chunks, and the answer is no schedule of chunks"
    chunks = answer.chunks
    theirs = [certificate.rank in group for group in chunks.groups]
    sizes = (int(u) for u, held in zip(chunks.units.tolist(), chunks.held_by.tolist(), strict=True) if theirs[held])
    finest = min(sizes, default=None)
    if finest is not None and finest * chunks.unit_bytes < certificate.chunk_bytes:
        return f"speaks of chunks of {certificate.chunk_bytes} bytes, and the answer has finer ones"
    return None


def _stems_from(condition: Condition, rank: int) -> bool:
    held, needed, reduced = condition
    return (rank in held if reduced else held == (rank,)) and any(other != rank for other in needed)
