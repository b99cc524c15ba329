"""What is proved of an outcome, and what the proof speaks of: any schedule, or the trees that were asked.

The judge recomputes two kinds: cuts and partitions of the network as it is posed (:mod:`..common.wan.ceiling`), which bound any schedule, and
prices of links (:class:`~cwb.core.bounds.TreePrices`), which bound trees. Everything else is somebody's word.
Only where both directions of every link are the same do trees see the whole network, so that what bounds them bounds the all-reduce
along trees that was asked; elsewhere nothing but the first kind is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from ...core.bounds import Certificate, SolverBound, TreePrices
from ..common.schedule_bounds import network_of
from .arborescence import Arborescences
from .pricing import Prices, cheapest_trees

if TYPE_CHECKING:
    from .answer import Asked, Found

#: Relative gap at which an answer is called optimal, unless the budget says otherwise.
GAP = 1e-6

#: What a bound on the network holds for.
ANY_SCHEDULE = "any schedule"


@dataclass(frozen=True)
class Proof:
    """A bound with what it rests on and holds for.

    Parameters
    ----------
    rate : Fraction
        In units.
    certificate : Certificate
        What proves it.
    holds_for : str
        Which schedules.
    """

    rate: Fraction
    certificate: Certificate
    holds_for: str


def proof_of(asked: Asked, found: Found, *, trees_only: bool) -> Proof:
    """Choose the bound that is claimed: one on any schedule where it is as sharp, then one that is recomputed, then a word.

    Parameters
    ----------
    asked : Asked
        The problem.
    found : Found
        What was found.
    trees_only : bool
        Whether the answer is among the trees that were asked, so that a bound on these may be told of it.
    """
    best = Proof(asked.highest.rate, asked.highest.certificate, ANY_SCHEDULE)
    if not trees_only or not asked.wan.balanced or found.bound >= best.rate * (1 - Fraction(GAP) / 10):
        return best
    recomputed = [proof for prices in found.prices if (proof := _of_prices(asked, found, prices)) is not None]
    sharpest = min(recomputed, key=lambda proof: proof.rate, default=best)
    if sharpest.rate * (1 - Fraction(GAP) / 10) <= found.bound:
        return sharpest
    return Proof(found.bound, SolverBound(*found.prover), f"{_which(asked, found)}, each with the same links both ways")


def _of_prices(asked: Asked, found: Found, prices: Prices) -> Proof | None:
    """Give what prices prove of trees, reduced and broadcast over any links of the network; None if nothing."""
    wan, limit = asked.wan, None if asked.any_height else asked.limit
    links = network_of(asked.instance).links
    if (
        limit is not None
        and limit.unit == "ns"
        and any(
            links[a].latency_s != links[b].latency_s for a, b in zip(wan.forth.tolist(), wan.back.tolist(), strict=True)
        )
    ):
        return None  # trees are as long as the slower direction, which the judge does not take for both
    if limit is None:
        least = min(one.cost for one in cheapest_trees(wan, prices, asked.least))
    else:
        least = Arborescences(wan, limit, asked.least).least(prices)
    rate = prices.proves(wan, found.trees, asked.floor, least)
    if rate is None:
        return None
    both = [0] * len(links)
    for price, *pair in zip(prices.link.tolist(), wan.forth.tolist(), wan.back.tolist(), strict=True):
        for link in pair:
            both[link] = price
    certificate = TreePrices(
        tuple(both),
        2 * prices.tree * wan.unit_Bps,
        found.trees,
        None if limit is None else limit.most,
        "ns" if limit is not None and limit.unit == "ns" else "links",
        asked.floor * wan.unit_Bps,
    )
    return Proof(rate, certificate, _which(asked, found))


def _which(asked: Asked, found: Found) -> str:
    """Say which trees were asked."""
    if found.among:
        return found.among
    text = "trees" if found.trees is None else f"at most {found.trees} tree{'s' if found.trees > 1 else ''}"
    if not asked.any_height:
        text += f" of a height of at most {asked.limit.shown(asked.limit.most)}"
    if asked.floor:
        text += f" with rates of at least {float(asked.floor * asked.wan.unit_Bps) * 8e-6:.6g} Mb/s"
    return text
