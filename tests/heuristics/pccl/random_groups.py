"""Random networks of ranks and switches with links of different speeds, and collectives of process groups."""

from __future__ import annotations

from fractions import Fraction

from cwb.core.collective import Collective, Demand, collectives
from cwb.core.topology import Link, Node, NodeKind, Topology
from hypothesis import strategies as st


@st.composite
def networks(draw, switches=True):
    """A network that a cycle connects, of two to six ranks and up to two switches."""
    ranks, others = draw(st.integers(2, 6)), draw(st.integers(0, 2)) if switches else 0
    buffers = st.sampled_from([None, Fraction(0), Fraction(64), Fraction(1000), Fraction(2500)])
    nodes = [Node(f"r{i}") for i in range(ranks)]
    nodes += [Node(f"s{i}", NodeKind.SWITCH, draw(st.booleans()), draw(buffers)) for i in range(others)]
    names = draw(st.permutations([node.name for node in nodes]))
    alike = draw(st.booleans())
    ends = list(zip(names, [*names[1:], names[0]], strict=True))
    ends += [(b, a) for a, b in ends if draw(st.booleans())]
    pairs = st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda pair: pair[0] != pair[1])
    ends += draw(st.lists(pairs, max_size=5))
    rates = st.just(Fraction(100)) if alike else st.sampled_from([Fraction(100), Fraction(200), Fraction(300)])
    latencies = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(3, 10)])
    links = [Link(a, b, draw(rates), Fraction(0) if alike else draw(latencies)) for a, b in ends]
    return Topology(tuple(draw(st.permutations(nodes))), tuple(links))


@st.composite
def demands(draw, ranks):
    """A collective of any kind among some of the ranks."""
    kind = draw(st.sampled_from(list(collectives())))
    count = 2 if kind is Collective.POINT_TO_POINT else draw(st.integers(2, ranks))
    group = tuple(draw(st.permutations(range(ranks)))[:count])
    return Demand(kind, Fraction(draw(st.sampled_from([600, 997, 1200]))), draw(st.integers(1, 3)), group)
