"""Every method answers right, or refuses in one line, on networks and sizes at the ends of what may be asked."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.collective import Demand, collective_named
from cwb.core.errors import ExitStatus, InputError
from cwb.core.instance import Instance
from cwb.core.record import RunRecord
from cwb.core.topology import Link, Node, Topology
from cwb.harness import Request, registry, run_one

pytestmark = pytest.mark.slow  # every method on many networks

#: Options that keep the runs short, and those that make grids of the slowest link.
OPTIONS = {
    "tacos": [{"restarts": 2}, {"restarts": 2, "variant": "paper"}],
    "pccl": [{"steps": 200, "restarts": 0}],
    "sccl": [{"max_steps": 4}],
    "blink-wan": [{"steps": 50}],
    "topoadopt": [{"moves": 50}],
    **{
        name: [{}, {"epoch": "slow"}] for name in ("teccl", "teccl-milp", "teccl-lp", "teccl-astar", "teccl-all-to-all")
    },
}

#: Methods of networks without explicit links, which none of the extremes is (tests/models/libra), and one that needs an
#: older plan, asked below.
LEFT_OUT = {"libra", "libra-equal", "libra-codesign", "mtree-repair"}

#: An answer, or that there is none: none at all, within limits, or by this method.
ANSWERED = (ExitStatus.OK, ExitStatus.INFEASIBLE, ExitStatus.LIMIT, ExitStatus.UNSUPPORTED)

KINDS = ("all_gather", "all_reduce", "all_to_all", "broadcast")


#: Links: source, target, bytes per second, seconds of latency.
Links = list[tuple[int, int, int | Fraction, int | Fraction]]


def both_ways(*links: tuple[int, int, int | Fraction, int | Fraction]) -> Links:
    """Links, and the same back."""
    return [way for a, b, rate, late in links for way in ((a, b, rate, late), (b, a, rate, late))]


GB, SLOW, US = 10**9, Fraction(1, 10**9), Fraction(1, 10**6)

#: Ranks, links and bytes.
EXTREMES = {
    "a link that is 10^21 times slower and not needed": (3, both_ways((0, 1, 10**12, 0), (1, 2, 10**12, 0),
        (0, 2, SLOW, 0)), 1),
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
    return extreme_of(*EXTREMES[name], kind)


def extreme_of(ranks: int, links: Links, size: int | Fraction, kind: str) -> Instance:
    """An instance of these ranks, links and bytes."""
    nodes = tuple(Node(str(rank)) for rank in range(ranks))
    made = (Link(str(a), str(b), Fraction(rate), Fraction(late)) for a, b, rate, late in links)
    return Instance("extreme", Topology(nodes, tuple(made)), Demand(collective_named(kind), Fraction(size)))


def right_or_none(record: RunRecord, where: str) -> None:
    """Hold a record to what is asked of all."""
    where = f"{where}: {record.message} {record.violations}"
    assert record.exit_status in ANSWERED, where
    assert record.verified is not False, where
    assert "\n" not in record.message, where
    if record.objective is not None and record.bound is not None:
        assert record.bound <= record.objective * (1 + 1e-12), where


@pytest.mark.parametrize("name", [name for name in registry.names() if name not in LEFT_OUT])
def test_extremes_are_answered_right_or_refused_in_a_line(name):
    """No internal error, no warning, no schedule that is refused and no bound above a schedule, whatever the ratios; a
    refusal is one line."""
    method = registry.get(name)
    for extremes in EXTREMES:
        kind = next((kind for kind in KINDS if method.supports(extreme(extremes, kind)) is None), None)
        for options in OPTIONS.get(name, [{}]) if kind else []:
            try:
                record = run_one(extreme(extremes, kind), Request(name, options=options, time_limit_s=10))
            except InputError as error:
                assert "\n" not in str(error)
                continue
            right_or_none(record, f"{extremes}, {options}")


@pytest.mark.parametrize("slower", [1, 10**3, 10**6, 3 * 10**9])
def test_plans_are_repaired_whatever_the_ratios(slower):
    """A plan of trees over links that are so much slower than another one is repaired right when one of them loses
    half."""
    rate = 3 * 10**12 // slower
    asked = extreme_of(3, both_ways((0, 1, 3 * 10**12, 0), (1, 2, rate, 0), (0, 2, rate, 0)), 10**6, "all_reduce")
    previous = [{"links": [[*ends, 0] for ends in tree], "root": "2"} for tree in (("01", "12"), ("02", "12"))]
    options = {"previous": previous, "changes": ["1-2=0.5"], "new_trees": 1}
    record = run_one(asked, Request("mtree-repair", options=options, time_limit_s=10))
    assert record.verified
    right_or_none(record, str(slower))
