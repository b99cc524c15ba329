"""Costs of ranks: checked, told in words, and part of the problem."""

from __future__ import annotations

from fractions import Fraction

import cwb
import pytest
from cwb.core.errors import InputError
from cwb.core.timing import RankCosts
from cwb.core.topology import NodeKind


@pytest.mark.parametrize(("kind", "rate"), [(NodeKind.COMPUTE, 1), (NodeKind.SWITCH, 2)])
def test_switches_have_their_own_rate(kind, rate):
    """The rate of adding is that of the kind of the node."""
    assert RankCosts(Fraction(0), Fraction(1), Fraction(2)).reduce_rate(kind) == rate


def test_bad_costs_are_rejected():
    """A negative overhead or a rate of zero is an input error that names the field."""
    with pytest.raises(InputError, match="rank_overhead"):
        RankCosts(Fraction(-1))
    with pytest.raises(InputError, match="reduce_rate"):
        RankCosts(reduce_rate_Bps=Fraction(0))


def test_words():
    """The text has every cost with its unit, and says that bounds leave the costs out."""
    costs = RankCosts(Fraction(2, 10**6), Fraction(10**10))
    words = "a message costs its rank 2 us, ranks add 10 GB/s of data that has arrived; bounds leave these costs out"
    assert costs.in_words == words


def test_costs_are_part_of_the_digest():
    """An instance with costs has another digest; without them the digest is what it always was."""
    bare = cwb.load("ring(4)")
    assert bare.sha256 == "b9fc5bb34af43006b3231aba73b4955a0c7060567c88b2b18ef24c2a3fb61e29"
    assert bare.with_changes(rank_costs=RankCosts(Fraction(1))).sha256 != bare.sha256
