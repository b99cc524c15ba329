"""Schedules in steps of a few ranks' data, which translations of the network move to all other data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .display import AnswerMixin
from .errors import InputError
from .schedule import Chunks, Ints, Sends, StepSchedule, offsets
from .topology import Topology
from .trees import OrbitMixin, Translation, orbit_of, translation_images

MOST_WRITTEN = 2**26  #: Schedules of more links on the paths of all sends are not written out.


@dataclass(frozen=True, eq=False, repr=False)
class StepOrbits(OrbitMixin, AnswerMixin, name="step-orbits"):
    """Schedule in steps of some chunks, whose images under all motions are the sends of all chunks.

    Motions are products of translations (:class:`~.trees.TreeOrbits`). A motion moves a chunk to one that the images
    of its ranks hold and need, and its sends to the images of their nodes and links, in the same steps. Sends of one
    step are in the order of the given ones, and images of one send in that of the motions.
    """

    base: StepSchedule  #: All sends of the chunks of one rank in every orbit, or of one chunk in every orbit of sums.
    translations: tuple[Translation, ...]

    @property
    def instance_sha256(self) -> str:
        """Digest of the instance that the schedule is for."""
        return self.base.instance_sha256

    @property
    def sends(self) -> int:
        """Number of sends of all chunks."""
        return self.motions * len(self.base.sends)

    def _size(self) -> dict[str, Any]:
        return {
            "sends": self.sends,
            "given": len(self.base.sends),
            "orders": list(self.orders),
            "chunks": self.motions * len(self.base.chunks),
            "steps": self.base.steps,
        }


def expand_steps(answer: StepOrbits, topology: Topology) -> StepSchedule:
    """Return all sends; raise InputError for too many, or a translation that is no symmetry."""
    base, sends, motions = answer.base, answer.base.sends, answer.motions
    if (size := motions * len(sends.path_links)) > MOST_WRITTEN:
        text = f"{answer.sends:,} sends over {size:,} links are not written out; expected at most {MOST_WRITTEN:,}"
        raise InputError(text, place="answer")
    orders = answer.orders
    images = translation_images(answer.translations, topology)
    nodes, links = [node for node, _ in images], [link for _, link in images]
    source, target = (orbit_of(column, orders, nodes).ravel() for column in (sends.source, sends.target))
    chunk, reduce = np.arange(motions)[:, None] * len(base.chunks) + sends.chunk, np.tile(sends.reduce, motions)
    offset, path_links = offsets(np.tile(sends.hops, motions)), orbit_of(sends.path_links, orders, links).ravel()
    orbit = Sends(chunk.ravel(), source, target, reduce, offset, path_links)  # motion by motion
    order = np.arange(len(orbit)).reshape(motions, -1).T.ravel()
    chunks = _move_chunks(base.chunks, topology, orders, nodes)
    return StepSchedule(base.instance_sha256, chunks, orbit.take(order), np.repeat(base.step, motions))


def _move_chunks(chunks: Chunks, topology: Topology, orders: Sequence[int], nodes: list[Ints]) -> Chunks:
    """Return the images of chunks, motion by motion."""
    rank_node = np.array(topology.rank_nodes, dtype=np.int64)
    rank_of = np.zeros(len(topology.nodes), dtype=np.int64)
    rank_of[rank_node] = np.arange(len(rank_node))
    number: dict[tuple[int, ...], int] = {(rank,): rank for rank in range(len(rank_node))}
    places: list[Ints] = []
    for group in chunks.groups:
        images = np.sort(rank_of[orbit_of(rank_node[list(group)], orders, nodes)], axis=1)
        if len(group) == 1:
            places.append(images[:, 0])
        elif len(group) == len(rank_node):
            places.append(np.full(len(images), number.setdefault(group, len(number))))
        else:
            places.append(np.array([number.setdefault(tuple(each), len(number)) for each in images.tolist()]))
    place = np.stack(places, axis=1)
    holders, receivers = place[:, chunks.held_by].ravel(), place[:, chunks.needed_by].ravel()
    units, reduced = np.tile(chunks.units, len(place)), np.tile(chunks.reduced, len(place))
    return Chunks(units, chunks.unit_bytes, tuple(number), holders, receivers, reduced)
