"""The programs behind the pages of findings agree with each other and with the package."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from cwb.benchmarks.findings import buffers, exact_epochs, exact_paths, fluid
from cwb.benchmarks.findings.exact_epochs import Net
from cwb.harness.run import Request, run
from cwb.instances import load

ROOT = Path(__file__).parents[2]
EQUAL = Net(4, ((0, 1, 1, 1), (0, 3, 1, 1), (1, 2, 1, 1), (2, 0, 1, 1), (3, 0, 1, 1)))
RING = Net(3, ((0, 1, 3, 2), (1, 2, 3, 2), (2, 0, 2, 1)))


@pytest.mark.parametrize(
    ("name", "net", "collective", "epochs"),
    [("equal_links", EQUAL, "all_gather", (3, 4)), ("unequal_ring", RING, "all_to_all", (7, 8))],
)
def test_storing_helps(name, net, collective, epochs):
    """The exact search and teccl-milp find the same fewest epochs, with and without storage."""
    assert buffers.fewest(net, collective, states=10_000) == epochs
    for relays, fewest in zip(("store", "pass"), epochs, strict=True):
        instance = load(str(ROOT / f"benchmarks/findings/{name}.json"))
        record = run(instance, Request("teccl-milp", options={"relays": relays})).record
        assert (record.status, record.metrics["epochs"], record.verified) == ("optimal", fewest, True)


def test_two_searches_agree():
    """The searches over states and over paths agree on all networks of 3 ranks and two speeds."""
    tried = list(buffers.networks(buffers.Family(3, (buffers.FAST, buffers.SLOW), "all_to_all")))
    assert len(tried) == 78
    for net in tried:
        first, _ = exact_epochs.fewest(net, "all_to_all", passing=False)
        passed, _ = exact_epochs.fewest(net, "all_to_all", passing=True)
        assert (first, passed) == buffers.fewest(net, "all_to_all", states=10_000)


def test_divisible_data_needs_no_storage_on_the_ring():
    """On the ring where whole chunks lose an epoch, divisible data loses nothing: both programs deliver all in 7."""
    half = Fraction(1, 2)
    ring = fluid.Flow(3, ((0, 1, 2, half), (1, 2, 2, half), (2, 0, 2, Fraction(1))))
    shares = {passing: [fluid.share(ring, epochs, passing=passing) for epochs in (6, 7)] for passing in (False, True)}
    assert shares == {False: [Fraction(5, 6), 1], True: [Fraction(5, 6), 1]}


def test_path_search_refuses_too_many_states():
    """A search that may visit few states says so, and claims nothing."""
    with pytest.raises(exact_epochs.TooManyStatesError):
        exact_paths.fewest_epochs(RING, passing=True, states=2)
