"""Every method answers right, or refuses in one line, on networks and sizes at the ends of what may be asked."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.bench import Request, run_one
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.errors import ExitStatus, InputError
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, Topology
from cwb.models import registry

#: Options that keep the runs short, and those that make grids of the slowest link.
OPTIONS = {
    "tacos": [{"restarts": 2}, {"restarts": 2, "variant": "paper"}],
    "pccl": [{"steps": 200, "restarts": 0}],
    "sccl": [{"max_steps": 4}],
    "blink-wan": [{"steps": 50}],
    **{
        name: [{}, {"epoch": "slow"}] for name in ("teccl", "teccl-milp", "teccl-lp", "teccl-astar", "teccl-all-to-all")
    },
}

#: Methods of workloads, one that needs an option that says what is to be repaired, and three of wide-area networks, whose own tests have such ratios.
LEFT_OUT = {"libra", "libra-equal", "libra-codesign", "mtree-repair", "topoadopt"}

#: An answer, or that there is none: none at all, within limits, or by this method.
ANSWERED = (ExitStatus.OK, ExitStatus.INFEASIBLE, ExitStatus.LIMIT, ExitStatus.UNSUPPORTED)

KINDS = ("all_gather", "all_reduce", "all_to_all", "broadcast")


def both_ways(
    *links: tuple[int, int, int | Fraction, int | Fraction],
) -> list[tuple[int, int, int | Fraction, int | Fraction]]:
    """Links of ``(source, target, bytes per second, seconds of latency)``, and the same back."""
    return [way for a, b, rate, late in links for way in ((a, b, rate, late), (b, a, rate, late))]


GB, SLOW, US = 10**9, Fraction(1, 10**9), Fraction(1, 10**6)

#: Ranks, links and bytes.
EXTREMES = {
    "a link that is 10^21 times slower and not needed": (3, both_ways((0, 1, 10**12, 0), (1, 2, 10**12, 0), (0, 2, SLOW, 0)), 1),
    "a link that is 10^21 times slower and needed": (3, both_ways((0, 1, 10**12, 0), (1, 2, SLOW, 0)), 10**6),
    "a link that is 3 10^9 times slower and needed": (3, both_ways((0, 1, 3 * 10**12, 0), (1, 2, 1000, 0)), 10**6),
    "rates without a common unit": (
        3, both_ways((0, 1, 999999937, 0), (1, 2, 999999929, 0), (0, 2, Fraction(1, 999999893), 0)), 10**6,
    ),
    "much less than a byte": (4, both_ways(*((i, (i + 1) % 4, GB, US) for i in range(4))), Fraction(1, 10**30)),
    "two networks": (4, both_ways((0, 1, GB, 0), (2, 3, GB, 0)), 10**6),
    "one way, and none back": (3, [(0, 1, GB, 0), (1, 2, GB, 0)], 10**6),
}  # fmt: skip


def extreme(name: str, kind: str) -> Instance:
    """An instance of that name."""
    ranks, links, size = EXTREMES[name]
    nodes = tuple(Node(str(rank)) for rank in range(ranks))
    made = (Link(str(a), str(b), Fraction(rate), Fraction(late)) for a, b, rate, late in links)
    return Instance("extreme", Topology(nodes, tuple(made)), Demand(CollectiveKind(kind), Fraction(size)))


@pytest.mark.parametrize("name", [name for name in registry.names() if name not in LEFT_OUT])
def test_extremes_are_answered_right_or_refused_in_a_line(name):
    """No internal error, no warning, no schedule that is refused and no bound above a schedule, whatever the ratios; a refusal is one line."""
    method = registry.get(name)
    for extremes in EXTREMES:
        kind = next((kind for kind in KINDS if method.supports(extreme(extremes, kind)) is None), None)
        for options in OPTIONS.get(name, [{}]) if kind else []:
            try:
                record = run_one(extreme(extremes, kind), Request(name, options=options, time_limit_s=10))
            except InputError as error:
                assert "\n" not in str(error)
                continue
            where = f"{extremes}, {options}: {record.message} {record.violations}"
            assert record.exit_status in ANSWERED, where
            assert record.verified is not False, where
            assert "\n" not in record.message, where
            if record.objective is not None and record.bound is not None:
                assert record.bound <= record.objective * (1 + 1e-12), where
