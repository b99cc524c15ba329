"""All-reduces over switches that add and copy, against all trees that there are."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from cwb.algorithms.schedules.compose import drop_idle_switches
from cwb.core.bounds import CutCertificate
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.topology import NodeKind
from cwb.core.trees import TreeKind, TreePacking
from cwb.exchange.msccl.flow import flow_of
from cwb.harness import Request, run_one
from cwb.harness.run import run
from cwb.instances import load
from cwb.models.forestcoll.problem import hubs_of
from cwb.schedules.collective import exact_bound
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.verify import heaviest_load, verify
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from small_networks import make_instance, network


def ways(topology, tree):
    """Paths between every two nodes of a tree that lead through no other one of them, as links."""
    found = {}
    for start in tree:
        waiting = [((start,), ())]
        while waiting:
            nodes, links = waiting.pop()
            for link, (a, b) in enumerate(topology.link_ends):
                if a != nodes[-1] or b in nodes:
                    continue
                if b in tree:
                    found.setdefault((start, b), []).append((*links, link))
                elif topology.nodes[b].kind is NodeKind.SWITCH:
                    waiting.append(((*nodes, b), (*links, link)))
    return found


def loads(topology, root, able, *, backwards):
    """The link loads of all trees out of a root, or into it, over all ranks and any of the switches that are able."""
    found = set()
    others = [node for node in topology.rank_nodes if node != root]
    for chosen in product([False, True], repeat=len(able)):
        rest = others + [switch for switch, taken in zip(able, chosen, strict=True) if taken]
        way = ways(topology, [root, *rest])
        for parents in product([root, *rest], repeat=len(rest)):
            if any(above == node for above, node in zip(parents, rest, strict=True)):
                continue
            above = dict(zip(rest, parents, strict=True))
            if not all(reaches(node, above, root) for node in rest):
                continue
            edges = [(node, up) if backwards else (up, node) for node, up in above.items()]
            for paths in product(*(way.get(edge, ()) for edge in edges)):
                load = [0] * len(topology.links)
                for path in paths:
                    for link in path:
                        load[link] += 1
                found.add(tuple(load))
    return found


def reaches(node, above, root):
    """Check if a node is under the root."""
    for _ in above:
        if node == root:
            return True
        node = above[node]
    return node == root


def best_by_trees(topology, size):
    """Seconds of the best all-reduce by any trees to and from any ranks: one linear program over all of them."""
    able = {
        backwards: [
            i
            for i, n in enumerate(topology.nodes)
            if n.kind is NodeKind.SWITCH and (n.may_add if backwards else n.copies)
        ]
        for backwards in (True, False)
    }
    columns, owner = [], []
    for place, root in enumerate(topology.rank_nodes):
        for backwards in (True, False):
            for column in loads(topology, root, able[backwards], backwards=backwards):
                columns.append(column)
                owner.append((place, backwards))
    ranks = len(topology.rank_nodes)
    balance = np.zeros((ranks, len(columns)))
    for column, (place, backwards) in enumerate(owner):
        balance[place, column] = 1 if backwards else -1
    gain = np.array([-float(backwards) for _, backwards in owner])
    rates = [float(link.bandwidth_Bps) for link in topology.links]
    found = linprog(gain, A_ub=np.array(columns).T, b_ub=rates, A_eq=balance, b_eq=np.zeros(ranks))
    return size / -found.fun


@st.composite
def switched_networks(draw, *, two_way=False):
    """Three ranks around one or two switches that add, copy, store, or do not; with links between ranks."""
    switches = draw(st.integers(1, 2))
    rate = st.sampled_from([1, 2, 3, 8])
    links = []
    for switch in range(3, 3 + switches):
        for rank in range(3):
            if switch == 3 or draw(st.booleans()):
                links += [(rank, switch, c := draw(rate)), (switch, rank, c)]
        if not two_way and draw(st.booleans()):
            a, b = draw(st.sampled_from(list(permutations(range(3), 2))))
            links += [(a, switch, c := draw(rate)), (switch, b, c)]
    if switches == 2:
        links += [(3, 4, c := draw(rate)), (4, 3, c)]
    for a, b in draw(st.sets(st.sampled_from(list(permutations(range(3), 2))), max_size=3)):
        links += [(a, b, c := draw(rate)), (b, a, c)][: 2 if two_way else 1]
    topology = network(3, switches, links)
    can = st.fixed_dictionaries(
        {"multicast": st.booleans(), "reduces": st.booleans(), "buffer_bytes": st.sampled_from([None, Fraction(0)])}
    )
    return replace(topology, nodes=(*topology.nodes[:3], *(replace(n, **draw(can)) for n in topology.nodes[3:])))


@pytest.mark.slow
@settings(max_examples=draws(15), deadline=None)
@given(topology=switched_networks())
def test_no_bound_is_above_the_best_trees_and_no_trees_are_better(topology):
    """Of all trees over switches that can, none is faster than what is proved, and none of the method's faster than
    these."""
    instance = make_instance(topology)
    record = run_one(instance, Request("forestcoll-allreduce", options={"always_solve": True}))
    assert record.verified, record
    best = best_by_trees(topology, 12)
    assert record.bound <= best * (1 + 1e-9)
    assert record.objective >= best * (1 - 1e-9)


def test_four_ranks_on_a_switch_that_adds_and_copies():
    """An all-reduce of 1 GB over links of 1 GB/s takes 1 s, which a cut proves; without the switch's help 1.5 s."""
    instance = load("sharp")
    done = run(instance, Request("forestcoll-allreduce"))
    assert (done.record.status, done.record.verified) == ("optimal", True)
    assert heaviest_load(instance, done.answer) == 1
    assert isinstance(done.certificate, CutCertificate)
    assert exact_bound(instance, done.certificate) == 1
    plain = replace(instance.network.nodes[4], multicast=False, reduces=False)
    without = instance.with_changes(network=replace(instance.network, nodes=(*instance.network.nodes[:4], plain)))
    record = run_one(without, Request("forestcoll-allreduce"))
    assert (record.status, record.objective) == ("optimal", 1.5)


@pytest.mark.parametrize(
    ("expression", "rate"),
    [
        ("star(5, bandwidth='50 GB/s', multicast=true)", 50),
        ("dgx_h100(nvls=true)", 450),
        # Every GPU has a NIC of 50 GB/s: eight of them leave a box, and take the sum in.
        ("dgx_h100(boxes=2, nvls=true)", 400),
        ("fat_tree(4, bandwidth='50 GB/s', multicast=true)", 50),
    ],
)
def test_machines_whose_switches_add_and_copy(expression, rate):
    """The rate is that of the narrowest rank or box, once: optimal, verified, and proved by a cut or a partition."""
    instance = load(expression).with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(10**9)))
    done = run(instance, Request("forestcoll-allreduce"))
    assert done.record.verified
    assert heaviest_load(instance, done.answer) == exact_bound(instance, done.certificate) == Fraction(1, rate)


def test_switches_that_are_too_narrow_are_no_nodes_of_trees():
    """Trees may pass what is as fast as a rank; rails of two NICs are not."""
    topology = load("dgx_h100(boxes=2, nvls=true)").network
    reducing = tuple(replace(n, reduces=n.kind is NodeKind.SWITCH, multicast=True) for n in topology.nodes)
    names = [topology.nodes[hub].name for hub in hubs_of(replace(topology, nodes=reducing))]
    assert names == ["box0.nvswitch", "box1.nvswitch"]


def test_files_have_such_trees_and_other_runtimes_do_not(tmp_path):
    """A schedule file says what the switch can do and reads back alike; MSCCL, whose GPUs add, refuses it in one
    line."""
    instance = load("sharp")
    done = run(instance, Request("forestcoll-allreduce"))
    write_schedule(tmp_path / "trees.json", instance, done.answer, done.certificate)
    read = read_schedule(tmp_path / "trees.json")
    assert read.instance.network == instance.network
    assert read.instance.sha256 == instance.sha256
    assert int(read.answer.child.max()) == len(instance.network.ranks)
    with pytest.raises(InputError, match="switch switch adds"):
        flow_of(instance, done.answer)


def violation_kinds(instance, node):
    """Kinds of violations of the instance's trees after a change of its switch."""
    answer = run(instance, Request("forestcoll-allreduce")).answer
    nodes = (*instance.network.nodes[:4], replace(instance.network.nodes[4], **node))
    changed = instance.with_changes(network=replace(instance.network, nodes=nodes))
    new = {"instance_sha256": changed.sha256}
    again = replace(answer, reduction=replace(answer.reduction, **new), **new)
    return {violation.kind for violation in verify(changed, again).violations}


@pytest.mark.parametrize(
    ("node", "kinds"),
    [
        ({}, set()),
        ({"reduces": False, "buffer_bytes": None}, set()),
        ({"reduces": False}, {"buffer"}),
        ({"multicast": False}, {"multicast"}),
    ],
)
def test_trees_over_switches_that_cannot_are_refused(node, kinds):
    """A switch in a tree has to add on the way in, or store, and to copy on the way out."""
    assert violation_kinds(load("sharp"), node) == kinds


def test_a_switch_is_no_leaf():
    """A tree that ends at switches is refused; without what leads there it is right."""
    topology = network(2, 2, [(0, 1, 1), (0, 2, 1), (2, 3, 1), (1, 0, 1)])
    able = replace(topology, nodes=(*topology.nodes[:2], *(replace(n, multicast=True) for n in topology.nodes[2:])))
    instance = make_instance(able, Collective.BROADCAST, 1)
    root, units, edges, parent, child = (np.array(c) for c in ([0], [1], [0, 3], [0, 0, 2], [1, 2, 3]))
    columns = edges, parent, child, np.arange(4), np.arange(3)
    tree = TreePacking(instance.sha256, TreeKind.OUT, root, units, Fraction(1), *columns)
    assert [v.kind for v in verify(instance, tree).violations] == ["tree"]
    pruned = drop_idle_switches(tree, 2)
    assert (pruned.child.tolist(), pruned.path_links.tolist(), pruned.edge_offset.tolist()) == ([1], [0], [0, 1])
    assert not verify(instance, pruned).violations
