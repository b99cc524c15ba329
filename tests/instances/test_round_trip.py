"""Whatever cwb writes of an instance is read back as the same instance, also where its numbers have no finite
decimals."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.schedule import StepSchedule
from cwb.core.topology import Link, Node, Topology
from cwb.core.units import UnitKind, parse
from cwb.exchange.graph_network import Defaults, rate_of
from cwb.exchange.graphs import SiteLink
from cwb.harness import Request, run
from cwb.instances import load
from cwb.schedules.files import read_schedule, write_schedule
from cwb.studies.find_topology import instance_data
from draws import draws
from hypothesis import example, given, settings
from hypothesis import strategies as st

rates = st.fractions(min_value=Fraction(1, 10**9), max_value=10**15, max_denominator=10**18)
times = st.fractions(min_value=Fraction(1, 10**15), max_value=10**6, max_denominator=10**18) | st.just(Fraction(0))


def _ring(rates_Bps: list[Fraction], latency_s: Fraction, size_bytes: Fraction) -> Instance:
    """Make a ring of one-way links of these rates."""
    count = len(rates_Bps)
    links = [Link(str(i), str((i + 1) % count), rate, latency_s) for i, rate in enumerate(rates_Bps)]
    network = Topology(tuple(Node(str(i)) for i in range(count)), tuple(links))
    return Instance("ring", network, Demand(Collective.ALL_GATHER, size_bytes))


@given(rates, times, rates)
def test_networks_of_the_topology_finder(rate: Fraction, latency_s: Fraction, size: Fraction) -> None:
    """The instance file of a network with any bandwidth, latency and size has the instance's digest."""
    instance = _ring([rate] * 3, latency_s, size)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_text(json.dumps(instance_data(instance, {"nodes": 3, "degree": 1})))
        assert load(path).sha256 == instance.sha256


@settings(max_examples=draws(25))
@given(st.lists(rates, min_size=2, max_size=4), times, rates)
@example([Fraction(1, 10**9)] * 2, Fraction(2**53 + 1, 10**15), Fraction(1))
@example([Fraction(1, 10**9)] * 2, Fraction(0), Fraction(2**63 + 1, 10**9))
def test_schedule_files(rates_Bps: list[Fraction], latency_s: Fraction, size: Fraction) -> None:
    """A schedule file holds its instance exactly, every link with a bandwidth of its own."""
    instance = _ring(rates_Bps, latency_s, size)
    done = run(instance, Request("ring"))
    assert isinstance(done.answer, StepSchedule)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.json"
        write_schedule(path, instance, done.answer)
        assert read_schedule(path).instance.sha256 == instance.sha256


@given(st.floats(min_value=1e-3, max_value=1e20, allow_nan=False))
def test_rates_of_wide_area_networks(number: float) -> None:
    """A rate of a foreign file is the number that stands there, to its last digit, in bits per second or the unit that
    is given."""
    written = Fraction(repr(number))
    assert parse(rate_of(SiteLink("a", "b", fields={"LinkSpeedRaw": number}), Defaults()), UnitKind.RATE) == written / 8
    found = rate_of(SiteLink("a", "b", fields={"capacity": number}), Defaults(bandwidth_unit="Mb/s"))
    assert parse(found, UnitKind.RATE) == written * 10**6 / 8
