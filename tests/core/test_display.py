"""Values of the vocabulary show themselves in one short line, and in a notebook as a table that cannot be broken out
of."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb import load
from cwb.core.bounds import CutCertificate
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.outcome import Verdict
from cwb.core.record import RunRecord
from cwb.core.schedule import Chunks, StepSchedule, sends_from_lists
from cwb.core.topology import Link, Node, Topology
from cwb.core.trees import TreeKind, TreePacking

RECORD = RunRecord("0", "ring", "heuristic", "x", "0" * 64, "all_reduce", None, None, {}, 0, 1, "optimal", 2.0, "s")


def values() -> list[tuple[object, str]]:
    """Large values, and how they begin."""
    many = np.arange(10_000)
    demand = Demand(Collective.ALL_GATHER, Fraction(2**30))
    sends = sends_from_lists([0] * 3, [0] * 3, [1] * 3, False, [[0], [0, 1], [2]])
    chunks = Chunks(np.array([2, 3]), Fraction(1, 2), ((0,), (1,)), np.array([0, 0]), np.array([1, 1]), np.zeros(2) > 1)
    packing = TreePacking(
        "0" * 64,
        TreeKind.OUT,
        many,
        many + 1,
        Fraction(1),
        many[:1].repeat(10_001),
        many[:0],
        many[:0],
        many[:1],
        many[:0],
    )
    return [
        (
            load("torus(8,8)").with_changes(demand=demand),
            "Instance(name='torus(8,8)', ranks=64, switches=0, links=256, ",
        ),
        (load("torus(8,8)").network, "Topology(ranks=64, switches=0, links=256)"),
        (load("4d"), "Instance(name='4d', network='RI(4)_FC(8)_RI(4)_SW(32)', workloads="),
        (load("4d").workloads[0], "Workload(name='gpt-3', layers="),
        (sends, "Sends(sends=3, hops=4)"),
        (chunks, "Chunks(chunks=2, bytes=2.5)"),
        (StepSchedule("0" * 64, chunks, sends, np.array([0, 1, 1])), "StepSchedule(steps=2, sends=3, chunks=2)"),
        (packing, "TreePacking(kind='out', trees=10000, edges=0)"),
        (CutCertificate(tuple(range(10_000))), "CutCertificate(nodes=(0, 1, 2, 3, 4, 5, ...), latency=False)"),
        (RECORD, "RunRecord(model='ring', instance='x', collective='all_reduce', status='optimal', objective='2 s')"),
        (Verdict(("a" * 1000,)), "Verdict(ok=False, violations="),
    ]


@pytest.mark.parametrize(("value", "begins"), values())
def test_one_short_line(value, begins):
    """However large a value is, its line says what it is in less than 200 characters."""
    assert repr(value).startswith(begins)
    assert len(repr(value)) < 200
    assert len(value._repr_html_()) < 1000


def test_names_are_text_in_a_notebook():
    """A name with HTML or control characters in it is shown as it is written and does nothing."""
    name = "<script>alert('x')</script>\x1b[2J"
    link = Link(name, "b", Fraction(1))
    html = Instance(name, Topology((Node(name), Node("b")), (link,)))._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;alert(&#x27;x&#x27;)" in html
    assert "\x1b" not in html
    assert "\x1b" not in repr(Instance(name, Topology((Node(name), Node("b")), (link,))))
