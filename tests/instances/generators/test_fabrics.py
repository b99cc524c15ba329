"""Fabrics as explicit networks."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.errors import InputError
from cwb.instances import load


def test_each_block_shares_the_bandwidth_of_an_npu():
    """Every NPU sends and receives its dimension's bandwidth, over two neighbours, all peers or its switch."""
    network = load(
        'fabric("RI(4)_FC(3)_SW(2)", bandwidth=["8 GB/s","6 GB/s","5 GB/s"], latency=["1 us","2 us","3 us"])'
    ).network
    assert len(network.ranks) == 24
    assert len(network.switches) == 12
    leaving: dict[str, Fraction] = {}
    for link in network.links:
        leaving[link.source] = leaving.get(link.source, Fraction(0)) + link.bandwidth_Bps
    assert {leaving[rank] for rank in network.ranks} == {Fraction(19 * 10**9)}
    assert {link.latency_s for link in network.links} == {Fraction(n, 10**6) for n in (1, 2)} | {Fraction(3, 2 * 10**6)}


def test_rank_order_is_innermost_first():
    """NPU 0's neighbours are 1 and 3 on the ring, 4 and 8 in the fully connected block, and through its switch 12."""
    network = load('fabric("RI(4)_FC(3)_SW(2)", bandwidth=["8 GB/s","6 GB/s","5 GB/s"])').network
    targets = {link.target for link in network.links if link.source == "npu0"}
    assert targets == {"npu1", "npu3", "npu4", "npu8", "switch3.0"}
    assert "npu12" in {link.target for link in network.links if link.source == "switch3.0"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ('fabric("RI(4)_SW(2)", bandwidth=["8 GB/s"])', "1 entries for 2 dimensions"),
        ('fabric("RI(4)", bandwidth="8 GB/s")', "is no list"),
        ('fabric("RI(4)", bandwidth=["0 GB/s"])', "greater than zero"),
        ('fabric("XX(4)", bandwidth=["8 GB/s"])', "RI"),
        ('fabric("FC(100000)", bandwidth=["8 GB/s"])', "too many"),
    ],
)
def test_wrong_arguments(spec, words):
    """Arguments that do not fit are refused in one line, before memory is allocated."""
    with pytest.raises(InputError, match=words):
        load(spec)
