"""Code without a budget asks the limits of whoever waits: time as it goes on, memory and time before it begins."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from cwb.core import budget
from cwb.core.budget import (
    HOP_S,
    MOST_COLUMNS,
    SEND_S,
    Budget,
    NoClock,
    limited_by,
    require_buildable,
    require_schedulable,
    why_unbuildable,
    why_unschedulable,
)
from cwb.core.errors import OutOfTime, Unsupported
from cwb.core.topology import Topology
from cwb.harness.clock import WallClock
from cwb.instances import load

LOADING = "loading the instance"


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
    assert list(budget.iterate_in_time(range(100_000), 100_000, "numbers")) == list(range(100_000))


def test_it_ends_where_the_time_does() -> None:
    """After the question that finds no time left nothing more is made, and the message says how far it came."""
    made: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(10**9):
            made.append(number)
            yield number

    with limited_by(Budget(5, clock=Countdown(3)), LOADING), pytest.raises(OutOfTime) as caught:
        list(budget.iterate_in_time(numbers(), 10**9, "numbers"))
    assert len(made) == 3 * budget.ITEMS_PER_CHECK
    assert (
        str(caught.value) == "the time limit of 5 s ran out while loading the instance: 49,152 of 1,000,000,000 numbers"
    )


def test_a_stop_is_told_as_such() -> None:
    """A stop on request names no time limit."""
    stop = threading.Event()
    stop.set()
    with limited_by(Budget(stop=stop), LOADING), pytest.raises(OutOfTime, match="the run was stopped while loading"):
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
    with (
        limited_by(Budget(1, clock=Countdown(1)), LOADING),
        pytest.raises(OutOfTime, match="while loading the instance"),
    ):
        load(text)
    assert load(text).npus > 1000


def test_files_and_digests_ask(tmp_path: Path) -> None:
    """A file with a large network asks while it is built, and so does the digest of what was loaded in time."""
    path = tmp_path / "x.json"
    path.write_text('{"schema": "cwb-instance/1", "network": "torus(200, 200)"}')
    with limited_by(Budget(1, clock=Countdown(1)), LOADING), pytest.raises(OutOfTime):
        load(path)
    loaded = load("torus(200, 200)")
    with limited_by(Budget(1, clock=Countdown(1)), LOADING), pytest.raises(OutOfTime, match="names in its digest"):
        loaded.sha256  # noqa: B018
    assert loaded.sha256 == load("torus(200, 200)").sha256


def test_what_is_small_is_loaded_whatever_the_limit() -> None:
    """A run with hardly any time still reaches its method, which may tell a bound."""
    with limited_by(Budget(1, clock=Countdown(1)), LOADING):
        assert load("torus(3, 3)").sha256 == load("torus(3, 3)").sha256


def test_the_size_is_told_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line says how large the network will be, by its closed form; the others how far it is."""
    monkeypatch.setattr("cwb.instances.generators.building.ITEMS_PER_REPORT", 1000)
    monkeypatch.setattr(budget, "ITEMS_PER_REPORT", 2 * budget.ITEMS_PER_CHECK)
    lines: list[str] = []
    with limited_by(Budget(progress=lines.append)):
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


def test_a_method_is_not_interrupted_by_what_it_calls() -> None:
    """Unless an abandoned part is named, a block ends by itself with the best that it has."""
    stopped = Budget()
    stopped.stop.set()
    with limited_by(stopped):
        assert isinstance(load("torus(200, 200)").network, Topology)


def test_without_a_budget_only_the_size_counts() -> None:
    """A model is built up to the most columns, and any schedule is made."""
    assert not why_unbuildable(MOST_COLUMNS, "8 epochs", column_s=1.0)
    assert not why_unschedulable(10**12)
    with pytest.raises(Unsupported, match=r"a model of 8 epochs has 5,000,001 columns; at most 5,000,000 are built"):
        require_buildable(MOST_COLUMNS + 1, "8 epochs")
    with pytest.raises(Unsupported, match="at most 10 are built"):
        require_buildable(11, "8 epochs", most=10)


def test_what_takes_more_than_is_left_is_refused() -> None:
    """One line has the size, what it takes and what is left, of time and of memory."""
    short, small = Budget(reserve_seconds=lambda _: 5.0), Budget(spare_bytes=lambda: 2**20)
    with (
        limited_by(short),
        pytest.raises(OutOfTime, match=r"1,000,000 columns, which take some 10 s to build, and 5 s are left"),
    ):
        require_buildable(1_000_000, "8 epochs", column_s=1e-5)
    with (
        limited_by(short),
        pytest.raises(OutOfTime, match=r"^4,000,000 sends over 8,000,000 hops take some .* s are left"),
    ):
        require_schedulable(4_000_000, 8_000_000)
    with limited_by(small), pytest.raises(OutOfTime, match=r"some 110 MiB of memory to build, and 1 MiB are left"):
        require_buildable(100_000, "8 epochs")
    with limited_by(small), pytest.raises(OutOfTime, match=r"MiB of memory to verify"):
        require_schedulable(100_000)
    with limited_by(short):
        require_buildable(1000, "8 epochs")
    stopped = Budget()
    stopped.stop.set()
    with (
        limited_by(stopped),
        pytest.raises(OutOfTime, match=r"some 240 s to verify and write, and the run was stopped"),
    ):
        require_schedulable(100_000_000)


@pytest.mark.parametrize(
    ("columns", "left_s", "told"),
    [
        (10_000, 0.0004, "some 20 ms to build, and 400 us are left"),
        (1000, 0.0, "some 2 ms to build, and nothing is left"),
    ],
)
def test_little_is_told_in_small_units(columns: int, left_s: float, told: str) -> None:
    """Times of milliseconds, and remainders of less, are not rounded to 0.0 s."""
    with limited_by(Budget(reserve_seconds=lambda _: left_s)), pytest.raises(OutOfTime, match=told):
        require_buildable(columns, "8 epochs")


def test_time_is_kept_for_what_comes_after_the_method() -> None:
    """A method is told that its time is up by as much earlier as its schedule takes to be verified and written."""
    clock = WallClock(1000.0)
    with limited_by(Budget(1000.0, clock=clock, reserve_seconds=clock.reserve_seconds)):
        require_schedulable(100_000_000, 300_000_000)
        require_schedulable(10)  # the most that was asked for stays
        left = clock.remaining_s()
    assert left is not None
    assert left == pytest.approx(1000 - 1e8 * SEND_S - 3e8 * HOP_S, abs=60)
    assert clock.reserve_seconds(0.0) == pytest.approx(1000, abs=60)
