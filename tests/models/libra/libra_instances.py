"""Small LIBRA instances, and random ones for properties."""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
from cwb.core.collective import Collective
from cwb.core.design import Design, Objective
from cwb.core.fabric import CostModel, parse_fabric
from cwb.core.instance import Instance
from cwb.core.workload import Communication, Layer, Phase, TrainingLoop, Workload

GB = Fraction(10**9)
KINDS = [
    Collective.ALL_REDUCE,
    Collective.REDUCE_SCATTER,
    Collective.ALL_GATHER,
    Collective.ALL_TO_ALL,
    Collective.POINT_TO_POINT,
]


def two_dimensional(objective: Objective = Objective.PERF, loop: TrainingLoop = TrainingLoop.NO_OVERLAP) -> Instance:
    """RI(4)_SW(2), 3 GB/s in all, one layer with 8 GB all-reduces of both groups: every number in the model is
    simple."""
    reduce_tp = Communication(Collective.ALL_REDUCE, 8 * GB, "tp")
    reduce_dp = Communication(Collective.ALL_REDUCE, 8 * GB, "dp")
    layer = Layer(
        "layer",
        forward=Phase(Fraction(1), (reduce_tp,)),
        input_gradient=Phase(Fraction(1), (reduce_tp,)),
        weight_gradient=Phase(Fraction(2), (reduce_dp,)),
    )
    prices = {
        "inter-node": {"link": Fraction(1, 10**9)},
        "inter-pod": {c: Fraction(1, 10**9) for c in ("link", "switch", "nic")},
    }
    return Instance(
        "two-dimensional",
        parse_fabric("RI(4)_SW(2)"),
        workloads=(Workload("work", (layer,), {"tp": (4, 1), "dp": (4, 2)}, loop),),
        cost_model=CostModel(prices),
        design=Design(objective, total_Bps=4 * GB, constraints=("B1 >= B2", "B2 <= 2 GB/s")),
    )


def unequal_traffic(
    hidden_bytes: int = 2**10, total_Bps: int = 667 * 10**9, *constraints: str, objective: Objective
) -> Instance:
    """Megabytes in dimensions 1 and 3, and in all dimensions a message that a computation hides."""
    tp = Communication(Collective.POINT_TO_POINT, Fraction(hidden_bytes), "dp")
    dp = Communication(Collective.ALL_GATHER, Fraction(12_766_948), "tp")
    layer = Layer(
        "layer",
        forward=Phase(Fraction(21259, 500_000), ()),
        input_gradient=Phase(Fraction(197, 31250), (tp,)),
        weight_gradient=Phase(Fraction(24203, 250_000), (dp,)),
        repeat=2,
    )
    prices = {
        "inter-chiplet": {"link": 22, "switch": 100, "nic": 51},
        "inter-package": {"link": 74, "switch": 55, "nic": 97},
        "inter-node": {"link": 84, "switch": 92, "nic": 100},
        "inter-pod": {"link": 100, "switch": 84, "nic": 73},
    }
    groups = {"tp": (6, 1, 2, 1), "dp": (2, 2, 2, 2)}
    return Instance(
        "unequal-traffic",
        parse_fabric("SW(6)_FC(4)_FC(8)_RI(2)").with_in_network(frozenset({0})),
        workloads=(Workload("work", (layer,), groups, TrainingLoop.TP_DP_OVERLAP),),
        cost_model=CostModel({t: {c: Fraction(p, 10**9) for c, p in tier.items()} for t, tier in prices.items()}),
        design=Design(objective, total_Bps=Fraction(total_Bps), constraints=constraints),
    )


def without_total(
    blocks: str,
    communication: Communication,
    groups: dict[str, tuple[int, ...]],
    prices: list[tuple[int, int, int]],
    *constraints: str,
    most_Bps: Fraction | None = None,
    loop: TrainingLoop = TrainingLoop.NO_OVERLAP,
    seconds: tuple[Fraction, ...] = (Fraction(1, 3), Fraction(0), Fraction(1, 250)),
) -> Instance:
    """Perf-per-cost of one layer, a communication in every phase; limits on bandwidths, and no exact total."""
    fabric = parse_fabric(blocks)
    layer = Layer("layer", *(Phase(compute_s, (communication,)) for compute_s in seconds))
    parts = {
        d.tier: {part: Fraction(price, 10**9) for part, price in zip(("link", "switch", "nic"), tier, strict=True)}
        for d, tier in zip(fabric.dimensions, prices, strict=True)
    }
    return Instance(
        "without-total",
        fabric,
        workloads=(Workload("work", (layer,), groups, loop),),
        cost_model=CostModel(parts),
        design=Design(Objective.PERF_PER_COST, max_total_Bps=most_Bps, constraints=constraints),
    )


@st.composite
def random_instances(draw: st.DrawFn, objective: Objective = Objective.PERF) -> Instance:
    """Fabrics of up to four dimensions with a few layers of any collectives, in either loop."""
    count = draw(st.integers(1, 4))
    blocks = [
        f"{draw(st.sampled_from(['RI', 'FC', 'SW']))}({draw(st.sampled_from([2, 4, 6, 8]))})" for _ in range(count)
    ]
    fabric = parse_fabric("_".join(blocks))
    in_network = {i for i, d in enumerate(fabric.dimensions) if d.block.value == "SW" and draw(st.booleans())}
    fabric = fabric.with_in_network(frozenset(in_network))
    divisors = {2: [1, 2], 4: [1, 2, 4], 6: [1, 2, 3, 6], 8: [1, 2, 4, 8]}
    groups = {name: tuple(draw(st.sampled_from(divisors[d.size])) for d in fabric.dimensions) for name in ("tp", "dp")}

    def phase() -> Phase:
        communications = draw(
            st.lists(
                st.builds(
                    Communication,
                    st.sampled_from(KINDS),
                    st.integers(2**10, 2**32).map(Fraction),
                    st.sampled_from(["tp", "dp"]),
                ),
                max_size=2,
            )
        )
        return Phase(Fraction(draw(st.integers(0, 10**6)), 10**6), tuple(communications))

    layers = tuple(
        Layer(f"l{i}", phase(), phase(), phase(), repeat=draw(st.integers(1, 3)))
        for i in range(draw(st.integers(1, 3)))
    )
    prices = {
        d.tier: {c: Fraction(draw(st.integers(1, 100)), 10**9) for c in ("link", "switch", "nic")}
        for d in fabric.dimensions
    }
    return Instance(
        "random",
        fabric,
        workloads=(
            Workload("w", layers, groups, draw(st.sampled_from(TrainingLoop)), Fraction(draw(st.integers(1, 3)))),
        ),
        cost_model=CostModel(prices),
        design=Design(objective, total_Bps=Fraction(draw(st.integers(1, 2000))) * GB),
    )
