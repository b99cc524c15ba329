"""One tree for all ranks: at the slot bound, verified without being written out, and the same as when it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cwb.core.equal_steps import TranslatedTrees
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.simulate import simulate
from cwb.schedules.verify import verify
from cwb.schedules.verify.answers import write_out

NETWORKS = ["torus(3,3)", "torus(4,6)", "torus(2,8)", "torus(2,3,4)", "ring(7)", "hypercube(4)", "complete(5)",
    "circulant(9,[1,2])",
            "ring(5, bidirectional=false)"]  # fmt: skip


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce"])
@pytest.mark.parametrize("network", NETWORKS)
def test_right_and_optimal(pose, solve, kind, network):
    """The verifier accepts the tree, and all its sends written out, which take as long; an all-reduce may lose a step
    by rounding up twice."""
    done = solve(pose(network, kind, chunks=2), answer="trees")
    if kind == "all_reduce" and "bidirectional" in network:
        assert "does not look the same" in done.record.message  # one tree cannot be gone through both ways
        return
    assert done.record.verified, done.record.violations
    assert done.record.metrics["epochs"] <= done.record.metrics["lower_bound_epochs"] + (kind == "all_reduce")
    assert kind == "all_reduce" or done.record.status == "optimal"
    written = write_out(done.answer, done.instance)
    assert not verify(done.instance, written).violations
    assert np.isclose(written.end_s.max(), done.record.objective)
    assert len(written.sends) == done.answer.sends
    assert simulate(done.instance, done.answer).completion_s <= done.record.objective * (1 + 1e-9)


def damaged_trees(answer: TranslatedTrees) -> dict[str, TranslatedTrees]:
    """Wrong trees, by the kind of violation."""
    early = answer.step.copy()
    early[-1] = 0
    twice = answer.child.copy()
    twice[0] = twice[1]
    return {
        "not-held": replace(answer, step=answer.step * 0),
        "tree": replace(answer, child=twice),
        "demand": replace(answer, kind=type(answer.kind).IN),
        "path": replace(answer, sizes=(answer.ranks,)),
        "range": replace(answer, copy=answer.copy + 1),
        "instance": replace(answer, instance_sha256="0" * 64),
    }


@pytest.mark.parametrize("kind", ["not-held", "tree", "demand", "path", "range", "instance"])
def test_wrong_trees_are_refused(pose, solve, kind):
    """The verifier tells an edge that comes too early, a rank that is missed, the wrong collective, links that are not
    there, and unknown numbers."""
    done = solve(pose("torus(4,4)"), answer="trees")
    assert kind in verify(done.instance, damaged_trees(done.answer)[kind]).counts


def test_a_generator_used_twice_is_refused(pose, solve):
    """All edges in steps by depth alone are trees, but links would have several chunks at once."""
    done = solve(pose("torus(4,4)"), answer="trees")
    depth = np.zeros(16, dtype=np.int64)
    for parent, child in zip(done.answer.parent.tolist(), done.answer.child.tolist(), strict=True):
        depth[child] = depth[parent] + 1
    crowded = replace(done.answer, step=depth[done.answer.child] - 1)
    assert set(verify(done.instance, crowded).counts) == {"capacity"}


def test_file(pose, solve, tmp_path):
    """A file of trees reads back as it was."""
    done = solve(pose("torus(3,4)", "all_reduce"), answer="trees")
    write_schedule(tmp_path / "trees.json", done.instance, done.answer, done.certificate)
    read = read_schedule(tmp_path / "trees.json")
    assert read.certificate == done.certificate
    assert isinstance(read.answer, TranslatedTrees)
    assert (read.answer.sizes, read.answer.kind) == (done.answer.sizes, done.answer.kind)
    assert all(
        np.array_equal(getattr(read.answer, c), getattr(done.answer, c)) for c in ("copy", "parent", "child", "step")
    )
    assert not verify(read.instance, read.answer).violations
