"""``all-to-all-mcf``: the method, as the registry knows it."""

from __future__ import annotations

from ...core.answers import BoundOnly
from ...core.collective import CollectiveKind
from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.instance import Instance
from ...core.method import Kind, Method
from ...core.topology import Topology


class McfOptions(Strict):
    """Options of ``all-to-all-mcf``: none."""


def supports(instance: Instance) -> str | None:
    """Only explicit networks with one all-to-all (``Method.supports``)."""
    if not isinstance(instance.network, Topology):
        return f"{instance.network} has no links; expected an explicit network such as torus(4,4)"
    if instance.demand is None or instance.also:
        return "several collectives at once; expected one" if instance.also else "the instance has no collective"
    if instance.demand.collective is not CollectiveKind.ALL_TO_ALL:
        return f"it bounds all_to_all alone, not {instance.demand.collective.value}"
    if (instance.npus if instance.demand.ranks is None else len(instance.demand.ranks)) < 2:
        return "a collective needs at least two ranks"
    if instance.demand.size_bytes <= 0:
        return "the collective has no data to move"
    return None if instance.network.links else "the network has no links"


PAPER = "Zhao et al., Efficient Direct-Connect Topologies for Collective Communications, appendix A.5"

METHOD = Method(
    name="all-to-all-mcf",
    kind=Kind.RELAXATION,
    summary="how fast an all-to-all can be, by the maximum concurrent flow: a bound, and no schedule",
    paper=PAPER,
    answer_type=BoundOnly,
    options=McfOptions,
    solve=f"{__package__}.solve:run",
    supports=supports,
)

FLOW = Formulation(
    "mcf/flow",
    summary="maximum concurrent flow between all pairs, one commodity a source: how fast an all-to-all can be",
    paper=PAPER,
    equations="LP (3)",
    build=f"{__package__}.formulation:build",
    value=f"{__package__}.solve:seconds",
    supports=supports,
    agrees_with="all-to-all-mcf",
)
