"""Changes of networks: what they leave, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import cwb
import pytest
from cwb import instances
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, Topology
from cwb.instances.edits import Edit, edit_instance

GB = 10**9


def make_edited(text, *edits):
    """An instance with changes."""
    return edit_instance(instances.load(text), [Edit(*edit) for edit in edits])


def rates(network):
    """GB/s of every link by the names of its ends."""
    return {(link.source, link.target): link.bandwidth_Bps / GB for link in network.links}


def test_some_ranks_alone():
    """Ranks that are kept have the links among them and to switches; a switch without any is left out."""
    network = make_edited("a100(2)", ("--ranks", "0-2,5")).network
    assert network.ranks == ("box0.gpu0", "box0.gpu1", "box0.gpu2", "box0.gpu5")
    assert set(network.switches) == {"box0.nvswitch", "ib0", "ib1"}
    assert len(network.links) == 16
    assert make_edited("torus(4,4)", ("--ranks", "0-3")).network.links == instances.load("ring(4)").network.links


def test_links_are_taken_away_in_both_directions():
    """All links between two nodes go, by name or by rank, also parallel ones."""
    assert len(make_edited("ring(4)", ("--without-link", "0:1")).network.links) == 6
    assert len(make_edited("parallel(ring(4), 3)", ("--without-link", "0:1")).network.links) == 18
    by_rank = make_edited("h100(2)", ("--without-link", "0:box0.nvswitch")).network
    assert by_rank == make_edited("h100(2)", ("--without-link", "box0.gpu0:box0.nvswitch")).network


def test_a_part_of_its_own_bandwidth_stays_on_every_link():
    """Both directions and parallel links between two nodes keep the same part, exactly; latencies stay or change."""
    nodes = tuple(map(Node, "abc"))
    ends = [("a", "b", 10), ("b", "a", 1), ("a", "b", 4), ("b", "c", 5)]
    network = Topology(nodes, tuple(Link(a, b, Fraction(rate), Fraction(1)) for a, b, rate in ends))
    instance = Instance("parts", network)
    third = edit_instance(instance, [Edit("--link", "a:b=100/3%")]).network
    assert [link.bandwidth_Bps for link in third.links] == [Fraction(10, 3), Fraction(1, 3), Fraction(4, 3), 5]
    assert {link.latency_s for link in edit_instance(instance, [Edit("--link", "b:a=50%,2 s")]).network.links} == {1, 2}


def test_links_are_changed_or_added():
    """A link keeps its latency unless there is one; where there is none, one is added in each direction."""
    network = make_edited("ring(4)", ("--link", "0:1=25GB/s"), ("--link", "0:2=1 GB/s, 3 us")).network
    assert (rates(network)["0", "1"], rates(network)["1", "0"], rates(network)["1", "2"]) == (25, 25, 50)
    assert network.links[0].latency_s == Fraction(1, 2 * 10**6)
    assert [(link.source, link.target) for link in network.links[8:]] == [("0", "2"), ("2", "0")]
    assert {link.latency_s for link in network.links[8:]} == {Fraction(3, 10**6)}
    one_way = make_edited("ring(4, false)", ("--link", "1:0=5GB/s")).network
    assert rates(one_way)["0", "1"] == 5
    assert len(one_way.links) == 4


def test_machines_are_made_at_other_rates():
    """A machine's generator is called again with the rates, before links are changed; the name says it."""
    found = make_edited("a100(2)", ("--link", "ib0:box0.gpu0=10GB/s"), ("--rates", "effective"))
    assert found.name == "a100(2) --rates effective --link ib0:box0.gpu0=10GB/s"
    told = rates(found.network)
    assert (told["box0.gpu0", "box0.nvswitch"], told["ib0", "box0.gpu0"], told["ib0", "box0.gpu2"]) == (240, 10, 25)
    at_once = instances.load("a100(2, rates=effective)")
    assert make_edited("a100(2)", ("--rates", "effective")).network == at_once.network
    assert cwb.load("a100(2)", rates="effective").network == at_once.network
    nominal = make_edited("a100(2, rates=effective)", ("--rates", "nominal"))
    assert nominal.network == instances.load("a100(2)").network


@pytest.mark.parametrize("text", ["gscale", "a100x2", "RI(4)_FC(4)"])
def test_only_generators_have_rates(text):
    """The network of a file, and building blocks, have the rates that they state."""
    with pytest.raises(InputError, match=r"--rates: .* is no machine of a generator; expected one such as dgx_h"):
        make_edited(text, ("--rates", "effective"))
    named = Instance("a100(2)", instances.load("ring(4)").network)
    with pytest.raises(InputError, match="is no machine of a generator"):
        edit_instance(named, [Edit("--rates", "effective")])


def test_links_come_before_ranks():
    """Links are told by the ranks of the whole network, in whatever order the options are."""
    edits = ("--ranks", "1-3"), ("--link", "2:3=7GB/s")
    network = make_edited("complete(5)", *edits).network
    assert rates(network)["2", "3"] == 7
    assert make_edited("complete(5)", *reversed(edits)) == make_edited("complete(5)", *edits)


def test_a_lost_rank_leaves_its_part():
    """The others keep the sizes of their parts, and their numbers count up; a switch is lost with its links."""
    whole = instances.load("a100(2)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(16)))
    left = edit_instance(
        whole, [Edit("--without-node", "3"), Edit("--without-node", "box1.gpu0"), Edit("--ranks", "0-4,9")]
    )
    assert left.demand.size_bytes == 14
    assert left.network.ranks == ("box0.gpu0", "box0.gpu1", "box0.gpu2", "box0.gpu4", "box1.gpu1")
    network = edit_instance(whole, [Edit("--without-node", "ib0")]).network
    assert "ib0" not in network.node_index
    assert len(network.ranks) == 16
    reduce = whole.with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(16), 1, (2, 4, 6)))
    demand = edit_instance(reduce, [Edit("--without-node", "4")]).demand
    assert (demand.size_bytes, demand.ranks) == (16, (2, 5))


def test_data_that_are_nowhere_else_are_not_given_up():
    """Without the root of a broadcast nothing is left of it."""
    root = instances.load("ring(4)").with_changes(demand=Demand(Collective.BROADCAST, Fraction(16)))
    with pytest.raises(InputError, match="rank 0 has the only copy of data of the broadcast"):
        edit_instance(root, [Edit("--without-node", "0")])


def test_a_fabric_is_expanded_and_the_name_says_it():
    """Changes of a fabric are those of its links; the name has them, and the digest differs."""
    instance = make_edited("RI(4)_FC(2)", ("--without-link", "npu0:npu1"))
    assert instance.name == "RI(4)_FC(2) --without-link npu0:npu1"
    assert len(instance.network.links) == 22
    assert instance.sha256 != instances.load("RI(4)_FC(2)").sha256
    plain = instances.load("ring(4)")
    assert edit_instance(plain, []) is plain


def test_process_groups_are_numbered_anew():
    """The ranks of a collective are those that are kept, by their new numbers."""
    demand = Demand(Collective.ALL_REDUCE, Fraction(8), 1, (3, 5))
    instance = instances.load("complete(6)").with_changes(demand=demand)
    assert edit_instance(instance, [Edit("--ranks", "3-5")]).demand.ranks == (0, 2)
    with pytest.raises(InputError, match="--ranks: leaves out rank 5 of the collective; expected all of its ranks"):
        edit_instance(instance, [Edit("--ranks", "0-4")])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("--ranks", "0-9"), "--ranks: '0-9' is out of range; expected ranks from 0 to 3, in ascending order"),
        (("--ranks", "2-1"), "--ranks: '2-1' is out of range"),
        (("--ranks", "1"), "--ranks: '1' is a single rank; expected at least 2"),
        (("--ranks", ""), "--ranks: '' is no range of ranks; expected such as 0-3,8"),
        (("--ranks", "a"), "--ranks: 'a' is no range of ranks"),
        (("--ranks", "-1"), "--ranks: '-1' is no range of ranks"),
        (("--without-link", "0:2"), "--without-link: '0:2': there is no link between them"),
        (("--link", "0:2=50%"), "--link: '0:2': there is no link between them"),
        (("--link", "0:1=0%"), "--link: '0%' is no part of a bandwidth; expected such as 50%"),
        (("--link", "0:1=1e300%"), "--link: '1e300%' is no part of a bandwidth; expected such as 50%"),
        (("--link", "0:1=1e-300%"), "--link: '1e-300%' is no part of a bandwidth; expected such as 50%"),
        (("--without-link", "0-1"), "--without-link: '0-1' does not name two nodes; expected such as '0:1'"),
        (("--without-link", "0:0"), "--without-link: '0:0' does not name two nodes"),
        (("--without-link", "0:nobody"), "does not name two nodes"),
        (("--without-node", "7"), "--without-node: '7' names no node; expected a rank or a name such as '3'"),
        (("--without-rank", "7"), "--without-rank: '7' names no node; expected a rank or a name such as '3'"),
        (("--link", "0:1"), "--link: '0:1' has no bandwidth; expected such as a:b=25GB/s or a:b=25GB/s,1us"),
        (("--link", "0:1=25"), "--link: '25' has no unit; expected a bandwidth with its unit"),
        (("--link", "0:1=0GB/s"), "--link: '0GB/s' must be greater than zero"),
        (("--link", "0:1=5GB/s,1"), "--link: '1' has no unit; expected a time with its unit"),
        (("--link", "0:1=1e400%"), "--link: '1e400%' is no part of a bandwidth; expected such as 50%"),
        (("--link", "0:1=1e-400%"), "--link: '1e-400%' is no part of a bandwidth; expected such as 50%"),
        (("--link", "0:7=5GB/s"), "--link: '0:7' does not name two nodes"),
    ],
)
def test_refuses(edit, message):
    """A name that is not in the network is refused with the option, the value and the expectation."""
    with pytest.raises(InputError) as caught:
        make_edited("ring(4)", edit)
    assert message in str(caught.value)


def test_a_design_stays_a_fabric():
    """Links of an instance whose dimensions are designed cannot be changed."""
    with pytest.raises(
        InputError, match="--ranks: an instance with workloads, prices, a design or experts; expected one of links"
    ):
        make_edited("4d", ("--ranks", "0-3"))
