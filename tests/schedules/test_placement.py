"""The verifier of placements: what is wrong with one, what its certificate proves, and its file."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from click.testing import CliRunner
from cwb.cli.schedules import check
from cwb.core.answers import Placement
from cwb.core.bounds import LeastLoads, PairPrices
from cwb.core.errors import InputError
from cwb.core.experts import Experts
from cwb.harness import Request
from cwb.harness.run import run
from cwb.instances import load
from cwb.schedules import verdict_of
from cwb.schedules.files import begins_with
from cwb.schedules.placement import (
    SCHEMA,
    is_refuted_by_prices,
    proved_loads,
    read_placement,
    write_placement,
)
from hypothesis import given, settings
from hypothesis import strategies as st

INSTANCE = load("experts(gpus=4, slots=2, groups=2, nodes=2, loads=[4, 2, 1, 1])")
RIGHT = Placement((((0, 1), (0, 1), (2, 3), (2, 3)),))
PROOF = LeastLoads((Fraction(3),), (None,))


def test_a_right_placement():
    """Loads are added up again, and the certificate is recomputed: one of the nodes has 6 on two GPUs."""
    verdict = verdict_of(INSTANCE, RIGHT, PROOF)
    assert (verdict.ok, verdict.objective, verdict.bound) == (True, 3, 3)
    assert verdict.metrics["layer_loads"] == [3]
    assert verdict.metrics["balancedness"] == pytest.approx(2 / 3)
    assert verdict.metrics["most_replicas"] == 2


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        ([], "0 layers"),
        ([[(0, 1), (0, 1), (2, 3)]], "3 GPUs; expected 4"),
        ([[(0, 1, 1), (0, 1), (2, 3), (2, 3)]], "GPU 0 has 3 replicas"),
        ([[(0, 1), (0,), (2, 3), (2, 3)]], "GPU 1 has 1 replicas"),
        ([[(0, 1), (0, 1), (2, 4), (2, 3)]], "GPU 2 has expert 4"),
        ([[(0, 1), (0, 1), (2, 2), (2, 2)]], "expert 3 has no replica"),
        ([[(0, 2), (0, 1), (2, 3), (2, 3)]], "group 1 is on nodes 0, 1"),
    ],
)
def test_what_is_wrong_is_said(layers, told):
    """Layers, GPUs, slots, experts and groups on nodes are checked, each with a line that says where."""
    verdict = verdict_of(INSTANCE, Placement(tuple(tuple(layer) for layer in layers)))
    assert not verdict.ok
    assert told in verdict.violations[0]


def test_a_bound_above_the_placement_is_not_proved():
    """A certificate that says more than holds proves the average alone; one of other layers is a violation."""
    verdict = verdict_of(INSTANCE, RIGHT, LeastLoads((Fraction(13, 4),), (None,)))
    assert (verdict.ok, verdict.bound) == (True, 2)
    assert "other layers" in verdict_of(INSTANCE, RIGHT, LeastLoads((), ())).violations[0]


@settings(max_examples=12)
@given(
    st.lists(st.fractions(0, 9, max_denominator=3), min_size=3, max_size=5),
    st.sampled_from([(3, 2), (2, 3), (5, 1)]),
    st.fractions(0, 10, max_denominator=12),
    st.fractions(0, 1, max_denominator=4),
    st.fractions(0, 4, max_denominator=6),
)
def test_no_certificate_proves_more_than_a_placement_has(loads, shape, claimed, price, light):
    """Whatever a certificate says, what is proved is no more than the largest load of the placement that is found."""
    experts = Experts((tuple(loads),), *shape)
    instance = load(f"SW({shape[0]})").with_changes(experts=experts)
    done = run(instance, Request("expert-placement"))
    assert done.record.verified, done.record.violations
    assert done.record.status == "optimal"
    prices = PairPrices(price, ((light, Fraction(1)),))
    for each in (prices, None):
        (proved,) = proved_loads(experts, LeastLoads((claimed,), (each,)))
        assert float(proved) <= done.record.objective


def test_prices_of_two_slots():
    """Two of three experts of 10 are beside one of 1 on four GPUs: prices prove 11 and no more, and wrong ones
    nothing."""
    experts = Experts((tuple(map(Fraction, (10, 10, 10, 1, 1, 1, 1))),), 4, 2)
    good = PairPrices(Fraction(1, 2), ((Fraction(1), Fraction(1)),))
    assert is_refuted_by_prices(experts, Fraction(11), good)
    assert not is_refuted_by_prices(experts, Fraction(12), good)
    for wrong in (
        replace(good, light=((Fraction(6), Fraction(1)),)),
        replace(good, light=((Fraction(1), Fraction(2)),)),
        replace(good, light=()),
        replace(good, replica=Fraction(-1)),
    ):
        assert not is_refuted_by_prices(experts, Fraction(11), wrong)


def write_file(path, certificate=PROOF, extra=None):
    write_placement(path, INSTANCE, RIGHT, certificate, extra)
    return path


@pytest.mark.parametrize("name", ["p.json", "p.json.gz"])
@pytest.mark.parametrize(
    "certificate",
    [PROOF, None, LeastLoads((Fraction(2),), (PairPrices(Fraction(1, 2), ((Fraction(1), Fraction(1)),)),))],
)
def test_a_file_is_read_as_it_was_written(tmp_path, name, certificate):
    """Experts, placement and certificate come back, compressed or not, and the file is known for what it is."""
    path = write_file(tmp_path / name, certificate, {"bound": 3.0})
    read = read_placement(path)
    assert begins_with(path, SCHEMA)
    assert (read.experts, read.answer, read.certificate) == (INSTANCE.experts, RIGHT, certificate)
    assert (read.instance_sha256, read.extra) == (INSTANCE.sha256, {"bound": 3.0})


def run_check(*arguments):
    runner = CliRunner()
    with runner.isolation() as (out, _, _):
        status = check.main([str(a) for a in arguments], standalone_mode=False)
        return status, out.getvalue().decode()


def test_check_tells_what_a_file_proves(tmp_path):
    """Status 0, the load exactly, and that the certificate proves it; as JSON too; for the instance that it is of."""
    path = write_file(tmp_path / "p.json")
    status, out = run_check(path, "--instance", INSTANCE.name)
    assert status == 0
    assert out.splitlines() == [
        f"{path}: right, a placement of 4 experts on 4 GPUs",
        "largest load of a GPU: 3, exactly 3",
        "its certificate proves 3: optimal",
    ]
    status, out = run_check(path, "--json")
    assert (status, json.loads(out)["exact"]) == (0, {"load": "3", "bound": "3"})
    with pytest.raises(InputError, match="different experts"):
        run_check(path, "--instance", "experts(gpus=4, slots=2, loads=[4, 2, 1, 1])")


def test_check_refuses_what_is_wrong(tmp_path):
    """Status 5 where a group is apart, and where the file claims more than its certificate proves."""
    path = write_file(tmp_path / "p.json", PROOF, {"bound": 3.5})
    status, out = run_check(path)
    assert status == 5
    assert out.startswith("the file claims the bound 3.5, its certificate proves 3.0")
    data = json.loads(path.read_text())
    data["placement"][0][0] = [0, 2]
    path.write_text(json.dumps(data))
    assert run_check(path)[0] == 5


def test_check_refuses_a_certificate_of_other_layers(tmp_path):
    """Status 5 where a certificate has more layers than the experts."""
    status, out = run_check(write_file(tmp_path / "p.json", LeastLoads((Fraction(1),) * 2, (None,) * 2)))
    assert status == 5
    assert out.startswith("certificate: it has other layers than the 1 of the experts")


@pytest.mark.parametrize(("slots", "nodes"), [(1, 1), (2, 2000)])
def test_a_forged_certificate_of_many_gpus_proves_the_average(slots, nodes):
    """Neither thousands of GPUs nor thousands of nodes overflow what the verifier recurses into."""
    experts = Experts(((Fraction(1),) * (2000 * slots),), 2000, slots, nodes, nodes)
    assert proved_loads(experts, LeastLoads((slots + Fraction(1, 2),), (None,))) == [slots]


def test_prices_of_a_tiny_replica_are_counted_at_once():
    """A light load of which an expert has more than any number of replicas takes no time; it proves nothing."""
    prices = PairPrices(Fraction(0), ((Fraction(1, 10**20), Fraction(1)),))
    assert not is_refuted_by_prices(INSTANCE.experts.layer(0), Fraction(7, 3), prices)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"placement": [[3]]}, "placement[0][0]: expected a list"),
        ({"placement": [[[-1]]]}, "placement[0][0][0]"),
        ({"experts": {"gpus": 4, "slots": 2, "groups": 3, "nodes": 1, "loads": [["4", "2"]]}}, "experts.groups"),
        ({"experts": {"gpus": 4, "slots": 2, "groups": 1, "nodes": 1, "loads": [["-4"]]}}, "experts.loads[0][0]"),
        ({"certificate": {"certificate": "least-loads", "loads": ["1"], "prices": []}}, "certificate.prices"),
        ({"more": 1}, "more"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, change, told):
    """An error names the file and the place of what is wrong."""
    path = write_file(tmp_path / "p.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError) as caught:
        read_placement(path)
    assert told in str(caught.value)
    assert str(path) in str(caught.value)
