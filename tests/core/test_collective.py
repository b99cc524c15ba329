"""Collectives: digests and conditions as files have them, declarations that are true, and others that are
registered."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import cwb
import pytest
from cwb.core import collective
from cwb.core.collective import (
    BUILT_IN,
    Collective,
    Demand,
    collective_named,
    collective_names,
    conditions,
    register_collective,
)
from cwb.core.errors import InputError
from hypothesis.vendor.pretty import pretty

#: Digests of ``ring(4)`` with 1 MiB in two chunks among the ranks 2, 0 and 3, or from 2 to 0, in files until now.
INSTANCES = {
    "all_gather": "4e293212ff895d387edfba3625d57da83f185ef5f18727d65d38f7678ab9d59e",
    "reduce_scatter": "434afd1e5ff77c30e2782458966dd720f3944a6fbde8764fc0ab77d847234319",
    "all_reduce": "d0f99bae8739fc3fd408da9700a977a79f481d0ca8a27a6116e0f5c0412d4b14",
    "late_all_reduce": "dd812450c7e4610b5f6e842e83c6ae6e7f0af1c4d50eef04abbc9c9f016d783e",
    "all_to_all": "989c8ff990b35cf5497bec9b3fb16cf1e203d1e74c7483a609a47db112b4d981",
    "broadcast": "99809edc0ffe8f556711e51ba28fed43072d7ce6240d14d19885499e3d91d850",
    "reduce": "50ccc3ae7a0a0a21f9fc618bab46ac73523b0308be99b52d366835e7edd8acba",
    "gather": "6d07c9783d3bbaa721d9358cda16b911be70f36e661e14f967d42f00bd6bbd7d",
    "scatter": "fdc608bb70cffb69c7d8c3ba13600e55c8c2d21b9be31a50b4ddb66ec521c39c",
    "point_to_point": "30a71d2973eecacd92b92b1fa6123f5f81e359584be781139685a86ff391f1b3",
}

#: Digests of the conditions of 60 bytes among all of five ranks, and among three groups of them.
CONDITIONS = {
    "all_gather": "447ab4036cb7306e848f7be70a70c7e5d7da24fb8f78bace76097d88c409fe31",
    "reduce_scatter": "4ac8413b470c4639849a2a6a5714680c683716201f39f6b09148ecc5a0d66245",
    "all_reduce": "93fe245026a7d79ddbb443d25d190c9ff29801558c8e53b28cdb215107e3a295",
    "late_all_reduce": "a3af195619a96ac653b0814ae6d1838479b012bc865382dbb224e551524b6755",
    "all_to_all": "282025eb407437d8f10976b33bea83325c63b4d92e38c110d671f84074306fe5",
    "broadcast": "cce24d156ac91937682c1d0d714e6022d0eca571e12fc5bfe29fa7a2f251f521",
    "reduce": "d6a3d3f41338017f719843d668d2e249b244c0ef66961ec0a110646a4cc3babf",
    "gather": "1ae61d7892b320386cc002e52801d8e73628412948955492ac7d7ecc262f46a4",
    "scatter": "b78772c53331fd2e583bd32ab5ac8a79cea6f9c72767de4246d09b8cf47b5e13",
    "point_to_point": "5f1f8c0361aaab6eeabdff3b893bee2238a1719aedb1ec0c7508c9b1f4f8d94d",
}


@pytest.fixture(autouse=True)
def forget_registrations(monkeypatch):
    """Drop registrations of a test after it."""
    monkeypatch.setattr(collective, "_registry", dict(collective._registry))


@pytest.mark.parametrize("name", INSTANCES)
def test_digests_of_instances_are_those_of_records_and_files(name):
    """An instance with a collective has the digest that schedule files and records of it hold."""
    ranks = (2, 0) if name == "point_to_point" else (2, 0, 3)
    demand = Demand(collective_named(name), Fraction(2**20), 2, ranks)
    assert cwb.load("ring(4)").with_changes(demand=demand).sha256 == INSTANCES[name]


@pytest.mark.parametrize("name", BUILT_IN)
def test_conditions_are_as_before_and_in_the_same_order(name):
    """Holders, receivers, sums and sizes of every piece, also in groups that are not in order."""
    found = []
    for ranks in (None, (2, 0, 3), (1, 4), (3, 1)):
        if name != "point_to_point" or (ranks and len(ranks) == 2):
            bytes_of = conditions(Demand(collective_named(name), Fraction(60), 2, ranks), 5).bytes_of
            found.append(
                [[list(held), list(needed), summed, str(size)] for (held, needed, summed), size in bytes_of.items()]
            )
    assert hashlib.sha256(json.dumps(found).encode()).hexdigest() == CONDITIONS[name.removesuffix("_v")]


def place_pieces(kind: Collective, order: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pieces among ranks in another order."""
    pieces = kind.pieces_of(len(order))
    groups = [tuple(sorted(order[position] for position in group)) for group in pieces.groups]
    return sorted((groups[held], groups[needed]) for held, needed in zip(pieces.held_by, pieces.needed_by, strict=True))


@pytest.mark.parametrize("name", BUILT_IN)
def test_ranks_that_are_said_to_be_alike_can_be_exchanged(name):
    """No order of the ranks, or of all but the first of a rooted one, changes the pieces, and some other order does."""
    kind, n = collective_named(name), 2 if name == "point_to_point" else 4
    everyone = tuple(range(n))
    orders = [order for order in permutations(everyone) if not kind.rooted or order[0] == 0]
    assert kind.alike
    assert all(place_pieces(kind, order) == place_pieces(kind, everyone) for order in orders)
    assert (place_pieces(kind, everyone[::-1]) != place_pieces(kind, everyone)) == kind.rooted


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_reverse_sends_the_same_pieces_backwards(name):
    """Reversal swaps the holders and the receivers of a piece; reversing twice gives the original."""
    kind = collective_named(name)
    if kind.reverse is not None:
        back = collective_named(kind.reverse)
        assert back.reverse == name
        assert back.parts_of(4) == kind.parts_of(4)
        swapped = sorted((needed, held) for held, needed in place_pieces(kind, (0, 1, 2, 3)))
        assert place_pieces(back, (0, 1, 2, 3)) == swapped


@pytest.mark.parametrize("name", [name for name in BUILT_IN if name.endswith("_v")])
def test_messages_of_equal_sizes_do_what_the_collective_does(name):
    """In any group, parts of 6 bytes each have the conditions of one collective with equal parts, and bear its name."""
    kind = collective_named(name)
    for ranks in ((0, 1, 2, 3), (2, 0, 3), (3, 1)):
        sizes = [Fraction(6)] * len(ranks)
        messages = kind.messages([sizes] * len(ranks) if kind.sized_by == "pair" else sizes, 2, ranks)
        whole = conditions(Demand(kind, Fraction(6 * len(ranks)), ranks=ranks), 4).bytes_of
        assert {piece: size for each in messages for piece, size in conditions(each, 4).bytes_of.items()} == whole
        assert {(each.part_of, each.chunks) for each in messages} == {(kind, 2)}


def test_only_pieces_of_one_rank_have_sizes_of_their_own():
    """A collective that sums has no messages."""
    with pytest.raises(InputError, match="cannot have sizes"):
        replace(Collective.REDUCE_SCATTER, sized_by="receiver").messages([Fraction(1)] * 3, 1, (0, 1, 2))


def test_sums_and_copies_are_passes_over_the_data():
    """Data is copied where several ranks need a piece; only an all-reduce, early or late, sums and copies it."""
    copied = {name for name in BUILT_IN if collective_named(name).copies}
    assert copied == {"all_gather", "all_gather_v", "all_reduce", "late_all_reduce", "broadcast"}
    assert {name for name in BUILT_IN if collective_named(name).passes == 2} == {"all_reduce", "late_all_reduce"}


def test_a_collective_stays_itself_in_copies():
    """A copy of a demand, and what a pickle is made of again, is the same collective, not an equal one."""
    demand = Demand(Collective.ALL_GATHER, Fraction(1))
    make, arguments = Collective.ALL_GATHER.__reduce__()
    assert make(*arguments) is Collective.ALL_GATHER
    assert copy.deepcopy(demand).collective is Collective.ALL_GATHER


def test_a_name_is_registered_once():
    """Another collective of a known name, or of a name that is no word, is rejected; the same one is not."""
    assert register_collective(Collective.SCATTER) is Collective.SCATTER
    for name, words in (("scatter", "another collective"), ("Ring Shift", "no name of a collective")):
        with pytest.raises(InputError, match=words):
            register_collective(replace(Collective.SCATTER, name=name))
    assert collective_names() == list(BUILT_IN)


def test_an_unknown_name_is_told_with_those_that_there_are():
    """The error lists the collectives and suggests the nearest one."""
    with pytest.raises(InputError, match=r"'all_gathr' is unknown; expected one of all_gather, .*'all_gather'"):
        collective_named("all_gathr")


def test_failing_examples_are_printed_in_one_line():
    """Hypothesis prints a collective by its name, and not by its class variables, each of which has them all."""
    assert pretty(Collective.ALL_REDUCE) == "Collective('all_reduce')"
