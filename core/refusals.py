"""Reasons that many methods have against an instance: its network, its collectives, their ranks and their data."""

from collections.abc import Sequence

from .collective import Collective, Demand
from .errors import NO_COLLECTIVE, Refusal
from .instance import Instance
from .topology import Topology


def refuse_unfit(
    instance: Instance,
    collectives: Sequence[Collective] = (),
    *,
    such_as: str = "torus(4,4)",
    single: bool = False,
    of_all: bool = False,
) -> Refusal | None:
    """Return why an instance is no collective over links that has data to move, None if it is.

    ``collectives`` are those that fit, by default all. With ``single`` several at once do not fit, with ``of_all``
    process groups. ``such_as`` names a network that fits.
    """
    if not isinstance(instance.network, Topology):
        return Refusal("network", f"{instance.network} has no links; expected an explicit network such as {such_as}")
    if not instance.demands:
        return NO_COLLECTIVE
    if single and instance.also:
        return Refusal("collective", "the instance has several collectives at once; expected one")
    for demand in instance.demands:
        if (fault := _find_fault(demand, collectives, instance.npus, of_all=of_all)) is not None:
            return fault
    return None if instance.network.links else Refusal("network", "the network has no links")


def _find_fault(demand: Demand, collectives: Sequence[Collective], npus: int, *, of_all: bool) -> Refusal | None:
    if collectives and demand.collective not in collectives:
        names = ", ".join(kind.name for kind in collectives)
        return Refusal("collective", f"it does not define {demand.collective.name}, but {names}")
    if (npus if demand.ranks is None else len(demand.ranks)) < 2:
        return Refusal("ranks", "a collective needs at least two ranks")
    if of_all and not demand.is_of_all(npus):
        return Refusal("ranks", "it is for all ranks of the network, not for a process group")
    return Refusal("data", "the collective has no data to move") if demand.size_bytes <= 0 else None
