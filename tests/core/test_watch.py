"""What takes long asks whoever waits for it whether to go on, and tells how far it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from cwb.core import watch
from cwb.core.budget import Budget, NoClock
from cwb.core.errors import OutOfTime
from cwb.core.topology import Topology
from cwb.instances import load


class Countdown(NoClock):
    """A clock by which the time is over after so many questions."""

    def __init__(self, questions: int) -> None:
        self.left = questions

    def remaining_s(self) -> float:
        """Count the question."""
        self.left -= 1
        return max(0.0, self.left)


def test_nobody_waits() -> None:
    """Without anybody who waits everything is passed on."""
    assert list(watch.counted(range(100_000), 100_000, "numbers")) == list(range(100_000))


def test_it_ends_where_the_time_does() -> None:
    """After the question that finds no time left nothing more is made, and the message says how far it came."""
    made: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(10**9):
            made.append(number)
            yield number

    with watch.watched(Budget(5, clock=Countdown(3))), pytest.raises(OutOfTime) as caught:
        list(watch.counted(numbers(), 10**9, "numbers"))
    assert len(made) == 3 * watch.STEP
    assert (
        str(caught.value) == "the time limit of 5 s ran out while loading the instance: 49,152 of 1,000,000,000 numbers"
    )


def test_a_stop_is_told_as_such() -> None:
    """Where somebody asked to stop, no time limit is named."""
    stop = threading.Event()
    stop.set()
    with watch.watched(Budget(stop=stop)), pytest.raises(OutOfTime, match="the run was stopped while loading"):
        load("torus(200, 200)")


@pytest.mark.parametrize(
    "text",
    [
        "torus(200, 200)",
        "random_regular(20000, 3)",
        "star(20000)",
        "fat_tree(48)",
        "dgx_a100(1000)",
        "pods(100, 10, 10)",
        'fabric("RI(20)_FC(10)_SW(100)", bandwidth=["1 GB/s", "1 GB/s", "1 GB/s"])',
    ],
)
def test_every_kind_of_network_asks(text: str) -> None:
    """Abstract graphs, drawn ones, switches, machines, clusters and fabrics end when the time does; without a limit
    they are made."""
    with watch.watched(Budget(1, clock=Countdown(1))), pytest.raises(OutOfTime, match="while loading the instance"):
        load(text)
    assert load(text).npus > 1000


def test_files_and_digests_ask(tmp_path: Path) -> None:
    """A file with a large network asks while it is built, and so does the digest of what was loaded in time."""
    path = tmp_path / "x.json"
    path.write_text('{"schema": "cwb-instance/1", "network": "torus(200, 200)"}')
    with watch.watched(Budget(1, clock=Countdown(1))), pytest.raises(OutOfTime):
        load(path)
    loaded = load("torus(200, 200)")
    with watch.watched(Budget(1, clock=Countdown(1))), pytest.raises(OutOfTime, match="names in its digest"):
        loaded.sha256  # noqa: B018
    assert loaded.sha256 == load("torus(200, 200)").sha256


def test_what_is_small_is_loaded_whatever_the_limit() -> None:
    """A run with hardly any time still reaches its method, which may tell a bound."""
    with watch.watched(Budget(1, clock=Countdown(1))):
        assert load("torus(3, 3)").sha256 == load("torus(3, 3)").sha256


def test_the_size_is_told_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line says how large the network will be, by its closed form; the others how far it is."""
    monkeypatch.setattr("cwb.instances.generators.building.TOLD", 1000)
    monkeypatch.setattr(watch, "TOLD", 2 * watch.STEP)
    lines: list[str] = []
    with watch.watched(Budget(progress=lines.append)):
        load("torus(100, 100)")
    assert lines == ["making 10,000 nodes and 40,000 links", "32,768 of 40,000 links"]


def test_quantities_of_a_network_are_shared() -> None:
    """All links of an abstract network hold the same two fractions, so that a million links take no million
    fractions."""
    network = load("torus(10, 10)").network
    assert isinstance(network, Topology)
    links = network.links
    assert len({id(link.bandwidth_Bps) for link in links} | {id(link.latency_s) for link in links}) == 2
    assert links[0].bandwidth_Bps == Fraction(50 * 10**9)
