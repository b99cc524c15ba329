"""What is to come is held against the memory and the time that are left, before it is begun."""

from __future__ import annotations

import pytest
from cwb.core.budget import Budget
from cwb.core.effort import (
    HOP_S,
    MOST_COLUMNS,
    SEND_S,
    require_buildable,
    require_schedulable,
    spending,
    too_large,
    too_long,
)
from cwb.core.errors import OutOfTime, Unsupported
from cwb.harness.clock import WallClock


def test_without_a_budget_only_the_size_counts() -> None:
    """A model is built up to the most columns, and any schedule is made."""
    assert not too_large(MOST_COLUMNS, "8 epochs", column_s=1.0)
    assert not too_long(10**12)
    with pytest.raises(Unsupported, match=r"a model of 8 epochs has 5,000,001 columns; at most 5,000,000 are built"):
        require_buildable(MOST_COLUMNS + 1, "8 epochs")
    with pytest.raises(Unsupported, match="at most 10 are built"):
        require_buildable(11, "8 epochs", most=10)


def test_what_takes_more_than_is_left_is_refused() -> None:
    """One line has the size, what it takes and what is left, of time and of memory."""
    short, small = Budget(keep=lambda _: 5.0), Budget(spare_bytes=lambda: 2**20)
    with (
        spending(short),
        pytest.raises(OutOfTime, match=r"1,000,000 columns, which take some 10 s to build, and 5 s are left"),
    ):
        require_buildable(1_000_000, "8 epochs", column_s=1e-5)
    with (
        spending(short),
        pytest.raises(OutOfTime, match=r"^4,000,000 sends over 8,000,000 hops take some .* s are left"),
    ):
        require_schedulable(4_000_000, 8_000_000)
    with spending(small), pytest.raises(OutOfTime, match=r"some 110 MiB of memory to build, and 1 MiB are left"):
        require_buildable(100_000, "8 epochs")
    with spending(small), pytest.raises(OutOfTime, match=r"MiB of memory to verify"):
        require_schedulable(100_000)
    with spending(short):
        require_buildable(1000, "8 epochs")
    stopped = Budget()
    stopped.stop.set()
    with (
        spending(stopped),
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
    """What takes milliseconds, and what is left of less, are not rounded to 0.0 s."""
    with spending(Budget(keep=lambda _: left_s)), pytest.raises(OutOfTime, match=told):
        require_buildable(columns, "8 epochs")


def test_time_is_kept_for_what_comes_after_the_method() -> None:
    """A method is told that its time is up by as much earlier as its schedule takes to be verified and written."""
    clock = WallClock(1000.0)
    with spending(Budget(1000.0, clock=clock, keep=clock.keep)):
        require_schedulable(100_000_000, 300_000_000)
        require_schedulable(10)  # the most that was asked for stays
        left = clock.remaining_s()
    assert left is not None
    assert left == pytest.approx(1000 - 1e8 * SEND_S - 3e8 * HOP_S, abs=60)
    assert clock.keep(0.0) == pytest.approx(1000, abs=60)
