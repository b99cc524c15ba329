"""Sends that are made step by step and not kept: right, the same at every call, and verified one by one."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.graphs.translations import ColouredNetwork, find_reflections
from cwb.algorithms.matching.network import arcs_of
from cwb.algorithms.matching.step_matching import stream_bytes
from cwb.core.budget import Budget
from cwb.core.equal_steps import Digest, StreamedSteps
from cwb.core.errors import InputError
from cwb.core.outcome import Status
from cwb.core.trees import Translation, TreeKind
from cwb.heuristics.tacos.method import METHOD
from cwb.heuristics.tacos.portfolio import make_stream
from cwb.schedules.files import read_schedule
from cwb.schedules.lowering import store_sends
from cwb.schedules.verify import verify
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

KINDS = ("all_gather", "reduce_scatter", "all_reduce")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("network", "chunks"), [("mesh(4,3)", 1), ("mesh(3,3,2)", 3), ("torus(4,5)", 4), ("line(5)", 2)]
)
def test_everybody_has_everything(pose, solve, kind, network, chunks):
    """A replay with sets of contributions ends with all of them, each added once, and the verifier agrees."""
    done = solve(pose(network, kind, chunks=chunks), answer="stream")
    assert done.record.verified, done.record.violations
    answer, ends = done.answer, done.instance.network.link_ends
    blocks = _rows_of_all_links(done, chunks)
    ranks, gathers = done.instance.npus, kind != "reduce_scatter"
    count = ranks * chunks
    state = [[{rank} if not gathers or kind == "all_reduce" else set() for _ in range(count)] for rank in range(ranks)]
    if kind != "all_gather":
        for row in blocks[::-1]:
            _pass(state, [(ends[e] if not gathers else ends[e][::-1], c) for e, c in enumerate(row.tolist()) if c >= 0])
        assert all(state[chunk // chunks][chunk] == set(range(ranks)) for chunk in range(count))
    if gathers:
        whole = {chunk: {chunk // chunks} if kind == "all_gather" else set(range(ranks)) for chunk in range(count)}
        state = [[whole[c] if c // chunks == rank else set() for c in range(count)] for rank in range(ranks)]
        for row in blocks:
            _pass(state, [(ends[e], c) for e, c in enumerate(row.tolist()) if c >= 0])
        assert all(row == [whole[chunk] for chunk in range(count)] for row in state)
    assert done.record.metrics["epochs"] == answer.steps == len(blocks) * len(answer.kind.passes)


def _rows_of_all_links(done, chunks: int):
    """Chunks of all links in all steps, each motion applied to every rank and link by itself."""
    answer, ends = done.answer, done.instance.network.link_ends
    number = {pair: link for link, pair in enumerate(ends)}
    motions = [list(range(done.instance.npus))]
    for translation in answer.translations:
        motions += [[int(translation.image[rank]) for rank in motion] for motion in motions]
    heads = [a if answer.kind is TreeKind.IN else b for a, b in ends]
    given = [link for link, head in enumerate(heads) if head == min(motion[head] for motion in motions)]
    rows = np.concatenate(list(answer.blocks()))
    every = np.full((len(rows), len(ends)), -1)
    for (step, column), chunk in np.ndenumerate(rows):
        for motion in motions if chunk >= 0 else ():
            a, b = ends[given[column]]
            link, rank = number[motion[a], motion[b]], motion[chunk // chunks]
            assert every[step, link] == -1
            every[step, link] = rank * chunks + chunk % chunks
    return every


def _pass(state, sends):
    """Add what each receiver did not have of a chunk; nothing may be added twice."""
    read = [state[tail][chunk] for (tail, _), chunk in sends]
    for ((_, head), chunk), data in zip(sends, read, strict=True):
        assert data
        assert not state[head][chunk] & data
        state[head][chunk] = state[head][chunk] | data


def test_meshes_are_at_the_bound(pose, solve):
    """All-gathers on meshes take the steps that are proved, whether sends are kept or not, with the same sends."""
    for network, engine in (("mesh(7,5)", "steps, as they come"), ("mesh(4,4,4)", "steps, by symmetry")):
        kept, streamed = (solve(pose(network), answer=answer) for answer in ("schedule", "stream"))
        assert kept.record.status == streamed.record.status == "optimal"
        assert kept.record.metrics["engine"] == engine
        assert kept.record.objective == streamed.record.objective
        assert streamed.record.metrics["sends"] == len(kept.answer.sends)
        stored = store_sends(streamed.instance, streamed.answer)
        rows = [
            sorted(zip(sends.chunk.tolist(), sends.path_links.tolist(), time.tolist(), strict=True))
            for sends, time in (
                (kept.answer.sends, np.unique(kept.answer.start_s, return_inverse=True)[1]),
                (stored.sends, stored.step),
            )
        ]
        assert rows[0] == rows[1]


@settings(max_examples=draws(25), deadline=None)
@given(
    sides=st.lists(st.integers(2, 6), min_size=1, max_size=3),
    chunks=st.integers(1, 3),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 99),
)
def test_symmetric_steps_are_as_few(pose, solve, sides, chunks, kind, seed):
    """On a mesh every even side halves what is made, and the verified steps are at most three above the fewest."""
    done = solve(pose(f"mesh({','.join(map(str, sides))})", kind, chunks=chunks), seed, answer="stream")
    assert done.record.verified, done.record.violations
    network, ranks, answer = done.instance.network, done.instance.npus, done.answer
    even = [side for side in sides if side % 2 == 0]
    assert len(answer.translations) == len(even)
    degree = np.bincount([b for _, b in network.link_ends]).min()
    fewest = -(-(ranks - 1) * chunks // degree)
    assert fewest <= answer.gather_steps <= fewest + 3


@pytest.mark.parametrize("network", ["mesh(2,2,2,2,2,2)", "mesh(6,4)", "mesh(5,5)", "line(300)", "ring(12)"])
def test_memory_is_estimated_before_it_is_used(pose, network):
    """The bytes that are required of the machine are those of the sets of chunks, of all images and of a block."""
    topology = pose(network).network
    arcs, motions = arcs_of(topology, Fraction(1), Fraction(1), 2**62), find_reflections(ColouredNetwork.of(topology))
    for copies in (1, 7, 100):
        stream = make_stream(arcs, copies, motions, 0)
        needed = stream._start()[1].have.nbytes + stream.images.chunk.nbytes
        assert 0 <= stream_bytes(arcs, copies, [each for each, _ in motions]) - needed < 2**26


def _mirror(stretch: int, ranks: int = 16):
    return Translation(np.arange(ranks).reshape(-1, stretch)[:, ::-1].ravel(), 2)


#: Symmetries that a schedule on ``mesh(4,4)`` does not have.
FORGED = {
    "no permutation": (Translation(np.zeros(16, dtype=np.int64), 2),),
    "no symmetry of the links": (_mirror(2),),
    "fixes the diagonal": (Translation(np.arange(16).reshape(4, 4).T.ravel(), 2),),
    "one of them twice": (_mirror(4), _mirror(4)),
    "another order": (Translation(_mirror(4).image, 3), _mirror(16)),
    "they do not commute": (_mirror(4), Translation(np.rot90(np.arange(16).reshape(4, 4)).ravel(), 4)),
    "of other networks": (_mirror(4, 8),),
    "too many": tuple(_mirror(4) for _ in range(9)),
}


@pytest.mark.parametrize("forged", FORGED)
def test_forged_symmetries_are_refused(pose, solve, forged):
    """No fewer links are checked by what is no symmetry of the network, or moves a rank by two motions alike."""
    done = solve(pose("mesh(4,4)"), answer="stream")
    assert len(done.answer.translations) == 2
    assert "symmetry" in verify(done.instance, replace(done.answer, translations=FORGED[forged])).counts


def test_fewer_links_need_their_symmetry(pose, solve):
    """Blocks of the links of some ranks are refused without the symmetry, and with a smaller one; a rotation is one."""
    done = solve(pose("mesh(4,4)"), answer="stream")
    for fewer in ((), done.answer.translations[:1]):
        assert "size" in verify(done.instance, replace(done.answer, translations=fewer)).counts
    turned = Translation(np.rot90(np.arange(16).reshape(4, 4)).ravel().copy(), 4)
    assert "symmetry" not in verify(done.instance, replace(done.answer, translations=(turned,))).counts


def test_two_calls_make_the_same_sends(pose, solve):
    """The digest follows from the seed alone, however large the blocks are."""
    first, second = (solve(pose("mesh(6,6)"), answer="stream", seed=seed).answer for seed in (3, 3))
    assert first.digest == second.digest != solve(pose("mesh(6,6)"), answer="stream", seed=4).answer.digest
    whole = Digest()
    whole.add(np.concatenate(list(first.blocks())))
    assert whole.hex() == first.digest


@dataclass(frozen=True)
class ChangedBlocks:
    """Blocks of an answer with some of their entries changed."""

    answer: StreamedSteps
    change: str

    def __call__(self):
        """Make them."""
        rows = np.concatenate(list(self.answer.blocks()))
        if self.change == "range":
            rows[0, 0] = 10**6
        elif self.change == "not-held":
            rows = rows[::-1].copy()
        elif self.change == "missing":
            rows = rows[:-1]
        elif self.change == "twice":
            rows[1] = rows[0]
        elif self.change == "shape":
            rows = rows[:, 1:]
        yield rows


@pytest.mark.parametrize("change", ["range", "not-held", "missing", "twice", "shape"])
def test_wrong_sends_are_refused(pose, solve, change):
    """The verifier tells unknown chunks, what is not there yet, what comes again, what is missing, and columns that are
    no links."""
    done = solve(pose("mesh(4,4)"), answer="stream")
    counts = verify(done.instance, replace(done.answer, blocks=ChangedBlocks(done.answer, change))).counts
    assert (change if change != "shape" else "size") in counts


def test_wrong_claims_are_refused(pose, solve, rectangle):
    """Another digest or number of steps, another collective, and links that take unequally long are refused."""
    done = solve(pose("mesh(4,4)"), answer="stream")
    answer = done.answer
    assert "size" in verify(done.instance, replace(answer, digest="0" * 64)).counts
    assert "size" in verify(done.instance, replace(answer, gather_steps=answer.gather_steps - 1)).counts
    assert "demand" in verify(done.instance, replace(answer, kind=type(answer.kind).IN)).counts
    other = METHOD.pose(pose(rectangle(4, 4, 50, 75)), METHOD.options())
    assert "grid" in verify(other, replace(answer, instance_sha256=other.sha256)).counts


def test_a_reason_is_given(pose, solve, rectangle):
    """Unequal links, switches, a group and an all-reduce over one-way links have no stream."""
    one_way = pose("ring(5, bidirectional=false)", "all_reduce")
    for posed in (pose(rectangle(3, 3, 50, 75)), pose("star(4)"), pose("mesh(3,3)", ranks=(0, 1, 2)), one_way):
        assert "answer=stream" in solve(posed, answer="stream").record.message


def test_a_run_that_is_stopped_has_no_answer(pose):
    """Steps that were not all made are no answer."""
    budget = Budget()
    budget.stop.set()
    options = METHOD.options(answer="stream")
    outcome = METHOD.run(METHOD.pose(pose("mesh(4,4)"), options), None, budget, options)
    assert (outcome.status, outcome.answer) == (Status.LIMIT, None)


def test_a_file_has_the_digest(pose, solve, tmp_path):
    """No send is written; a file has their number and digest, is no schedule to read, and no link is told to be
    busy."""
    from cwb.studies.solve import write_answer

    done = solve(pose("mesh(4,4)"), answer="stream")
    write_answer(tmp_path / "steps.json", done.instance, done)
    data = json.loads((tmp_path / "steps.json").read_text())
    assert data["answer"]["sha256"] == done.answer.digest
    assert data["answer"]["sends"] == 240
    assert "busiest_link" not in done.record.metrics
    with pytest.raises(InputError, match="no sends are kept"):
        read_schedule(tmp_path / "steps.json")
