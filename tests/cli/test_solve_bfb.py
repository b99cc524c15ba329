"""What ``cwb solve`` shows of methods whose numbers are T_L, T_B and the rate of an all-to-all."""

import json

import pytest
from click.testing import CliRunner
from cwb.cli.main import cwb


def solved(*words):
    done = CliRunner().invoke(cwb, ["solve", *words], standalone_mode=False)
    assert done.exception is None, done.exception
    return done.stdout


@pytest.mark.parametrize(
    ("network", "steps", "time"),
    [
        ("circulant(n=15, offsets=[1,4,5])", 2, "1"),
        ("generalized_kautz(d=4, n=200)", 4, "191/150"),
        ("complete_bipartite(4,4)", 2, "7/8"),
        ("torus(50,50)", 50, "2499/2500"),
    ],
)
def test_steps_and_bandwidth_time_without_a_size(network, steps, time):
    """A network and a collective are enough for T_L and T_B; a schedule that is too large to be made unasked does not matter."""
    record = json.loads(solved("--model", "bfb", network, "--collective", "all_gather", "--json"))
    assert (record["metrics"]["T_L"], record["metrics"]["T_B"], record["exit_status"]) == (steps, time, 0)


def test_metrics_alone_are_shown():
    """Without a schedule the summary has T_L, T_B and the bound, and says why there is no more."""
    shown = solved("--model", "bfb", "torus(50,50)", "--collective", "all_gather")
    for text in ("steps, T_L", "2499/2500 M/B", "bound (attested)", "metrics alone"):
        assert text in shown


def test_the_rate_of_an_all_to_all_is_shown():
    """The rate of every pair stands beside the time that it proves."""
    assert "0.25 links" in solved("--model", "all-to-all-mcf", "hypercube(3)", "--collective", "all_to_all")
