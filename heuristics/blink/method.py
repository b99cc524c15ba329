"""Blink's methods with their options and what they are for; compiled kernels are imported when a method runs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ...core.collective import Collective
from ...core.errors import Refusal
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Metric
from ...core.topology import Topology
from ...core.trees import TreePacking
from ...models.forestcoll.method import PACKING, PAPER
from ...models.forestcoll.method import supports as supports_trees
from .. import heuristic

#: What trees from one root make.
SUPPORTED = (Collective.ALL_REDUCE, Collective.BROADCAST, Collective.REDUCE)
BLINK_PAPER = "Wang et al., Blink: Fast and Generic Collectives for Distributed ML, MLSys 2020"


def supports_switches(instance: Instance) -> Refusal | None:
    """Return why an instance cannot be served by trees from one root."""
    if (reason := supports_trees(instance)) is not None:
        return reason
    if instance.demand is not None and instance.demand.collective not in SUPPORTED:
        defined = ", ".join(kind.name for kind in SUPPORTED)
        return Refusal(
            "collective", f"trees from one root do not support {instance.demand.collective.name}, but {defined}"
        )
    return None


def supports(instance: Instance) -> Refusal | None:
    """Return why an instance cannot be served by trees from one root that go through ranks of the group alone."""
    if (reason := supports_switches(instance)) is not None:
        return reason
    topology = instance.network
    if isinstance(topology, Topology):
        members = {topology.rank_nodes[rank] for rank in group(instance)}
        for index, node in enumerate(topology.nodes):
            if index not in members:
                return Refusal(
                    "network",
                    f"{node.name!r} only forwards data, and Blink supports no switches; blink-switch removes them "
                    "first",
                )
    return None


def group(instance: Instance) -> tuple[int, ...]:
    """Return the ranks of the group, the root of a broadcast or reduce first."""
    if instance.demand is not None and instance.demand.ranks is not None:
        return instance.demand.ranks
    return tuple(range(instance.npus))


class BlinkOptions(Strict):
    """Options of ``blink`` and ``blink-switch``."""

    root: Literal["best", "fastest"] | Annotated[int, Field(ge=0)] = Field(
        default="best",
        description="Rank that an all-reduce adds up at and broadcasts from: best, the first with the highest rate; "
        "fastest, of all with the highest rate the one whose trees take the least time both ways together; or a "
        "number.",
    )
    k: Literal["optimal", "smallest"] | Annotated[int, Field(ge=1, le=10**6)] = Field(
        default="optimal",
        description="Trees: optimal, as many as make every link's share whole (proposition 3); "
        "smallest, as few as are still optimal; or a number.",
    )
    repack: int = Field(
        default=100,
        ge=0,
        le=100_000,
        description="Rounds in which pairs of trees exchange edges, to bring the tallest down; for networks of up to "
        "512 ranks.",
    )


#: What the methods' metrics mean, beside those of the verifier.
METRICS = PACKING | {
    "root": Metric("rank of the root"),
    "broadcast_GBps": Metric("rate of the broadcast from the root, as a fraction", "GB/s"),
    "reduce_GBps": Metric("rate of the reduction to the root, as a fraction", "GB/s"),
    "in_turn_s": Metric("size over both rates in turn, or over the one that the collective has", "s"),
    "k": Metric("trees; a list where both directions differ"),
    "optimal_k": Metric("trees that make every link's share whole"),
    "smallest_k": Metric("the fewest trees found that are as fast"),
}


BLINK = heuristic(
    name="blink",
    summary="the most spanning trees from one root: reduce along them, broadcast back; no switches",
    paper=BLINK_PAPER,
    answer_type=TreePacking,
    options=BlinkOptions,
    solve=f"{__package__}.blink:run",
    supports=supports,
    metrics=METRICS,
)


BLINK_SWITCH = heuristic(
    name="blink-switch",
    summary="Blink after ForestColl's removal of switches: trees from one root on any network",
    paper=f"{BLINK_PAPER}; {PAPER}",
    answer_type=TreePacking,
    options=BlinkOptions,
    solve=f"{__package__}.blink:run",
    supports=supports_switches,
    metrics=METRICS,
)
