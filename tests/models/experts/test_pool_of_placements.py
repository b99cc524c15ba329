"""The pool of ``expert-placement/slots`` is not cut off at the load of the published rule."""

from cwb.harness import Request, run
from cwb.instances import load


def test_each_expert_can_be_held_twice():
    """Three numbers of replicas, the best placement of each; the message says by what solutions differ."""
    record = run(load("experts(gpus=2, slots=2, loads=[5,3,2])"), Request("expert-placement/slots", pool=6)).record
    assert [row["objective"] for row in record.pool] == [5, 6, 6.5]
    assert record.message == "3 of 6 answers: no more among the 3 solutions that differ in binary variables"
