"""Simulation of one tree that is translated to all ranks, by the edges of the first alone.

The links of one generator have equal bandwidth and latency, which is checked, and each serves the same edges in the
same order: those of its generator, by their steps. So all links of g carry the data of corresponding ranks (on the
link from w to w + g, of rank w - u) simultaneously, and one link represents its generator. The times are those of
the simulation of all sends (:func:`~cwb.schedules.verify.answers.write_out`).
"""

from __future__ import annotations

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Floats
from ...core.trace import Routing
from ...core.translated_trees import TranslatedTrees, translate_ranks
from ...core.trees import TreeKind
from ..verify.network import network_of
from ..verify.translated_trees import generator_links
from .network import wires


def simulate_translated(instance: Instance, answer: TranslatedTrees) -> tuple[float, Floats] | None:
    """Simulate translated trees with congestion.

    Returns
    -------
    tuple of float and array of float, shape (links,), or None
        Arrival of the last byte, and busy seconds of every link; None if links of a generator differ, ranks have
        costs, or sends take other paths.
    """
    if instance.demand is None:
        raise InputError("expected a collective", place="collective")
    if instance.rank_costs is not None or instance.routing is not Routing.FIXED:
        return None  # ranks serve the sends of all generators in turn
    network = network_of(instance)
    columns = wires(network.topology)
    size = float(instance.demand.size_bytes / (answer.ranks * instance.demand.chunks))
    ranks, chunks = answer.ranks, instance.demand.chunks
    generator = translate_ranks(answer.sizes, answer.child, answer.parent, -1)
    length = answer.steps // answer.phases
    free: dict[int, float] = {}
    busy = np.zeros(len(columns))
    here = np.zeros(chunks * ranks)  # when each rank has what it passes on, of every chunk of rank 0
    last = 0.0
    for inwards in (True, False):
        if answer.kind is (TreeKind.OUT if inwards else TreeKind.IN):
            continue
        if not inwards:
            here[:] = here.reshape(chunks, ranks)[:, :1].repeat(ranks, axis=1).ravel()
        wire, late, link_of = {}, {}, {}
        for g in np.unique(generator).tolist():
            links = generator_links(network, answer, g, inwards=inwards)
            if len(set(columns.bandwidth_Bps[links])) > 1 or len(set(columns.latency_s[links])) > 1:
                return None
            wire[g], late[g] = size / float(columns.bandwidth_Bps[links[0]]), float(columns.latency_s[links[0]])
            link_of[g] = int(links[0])
            busy[links] += wire[g] * int((generator == g).sum())
        order = np.argsort(length - 1 - answer.step if inwards else answer.step, kind="stable")
        ends = (answer.child, answer.parent) if inwards else (answer.parent, answer.child)
        rows = zip(*(column[order].tolist() for column in (answer.copy, *ends, generator)), strict=True)
        for copy, source, target, g in rows:
            # From rank 0 a link by g of the broadcast may be the one by -g of the reduction: its number tells.
            left = max(here[copy * ranks + source], free.get(link_of[g], 0.0)) + wire[g]
            free[link_of[g]] = left
            came = left + late[g]
            last = max(last, came)
            place = copy * ranks + target
            here[place] = max(here[place], came) if inwards else came
    return last, busy
