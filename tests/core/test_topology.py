"""The network as a graph."""

from __future__ import annotations

import pytest
from cwb.instances import load
from cwb.schedules.verify.network import network_of


def test_ends_of_links_cannot_be_written():
    """A method that writes the ends of links fails, and the verifier has arrays of its own."""
    instance = load("ring(4)")
    for ends in instance.topology.end_arrays:
        with pytest.raises(ValueError, match="read-only"):
            ends[0] = 3
    network_of(instance).link_source[:] = 0
    assert instance.topology.end_arrays[0].tolist() == [a for a, _ in instance.topology.link_ends]
