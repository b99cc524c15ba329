"""Small instances of every formulation: for the exam, and for the page that has the results on every solver."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cwb.instances import load
from cwb.instances.demand import with_demand

#: The page with the results of the first instance of each formulation; ``docs/formulation_matrix.py`` writes it.
MATRIX = Path(__file__).parents[2] / "docs" / "formulation-matrix.md"

#: Relative difference up to which the values of two solvers are the same.
AGREE = 2e-6


@dataclass(frozen=True)
class Exam:
    """An instance for a formulation, small enough for every solver.

    Parameters
    ----------
    instance : str
        Its name.
    collective : str or None
        Of the instance.
    options : dict
        Of the formulation.
    method : dict or None
        Options of the method that it agrees with, where they are others.
    chunks : int or None
        Chunks of every rank's part.
    metric : str
        Number of the method that the model's objective is.
    wanted : float or None
        The optimum, of a formulation that agrees with no method.
    """

    instance: str
    collective: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    method: dict[str, Any] | None = None
    chunks: int | None = None
    metric: str = ""
    wanted: float | None = None

    def make_instance(self):
        """The instance with its collective."""
        return with_demand(load(self.instance), self.collective, None, self.chunks)


FABRIC = {"bandwidth": ["200 GB/s", "100 GB/s"], "latency": ["1 us", "2 us"]}

#: An older plan of one tree, and what has happened to a link of it.
OLDER = {
    "previous": [{"links": [["0", "1", 0], ["1", "2", 0], ["2", "3", 0]], "root": "1"}],
    "changes": ["0-1=0.5"],
}

#: Small instances of each formulation.
INSTANCES = {
    "libra/allocation": [Exam("4d"), Exam("4d", options={"objective": "perf-per-cost"})],
    # Without latency, since the schedules may be cut into other numbers of pieces.
    "bfb/lp": [
        Exam("torus(3,3,latency='0 s')", "all_gather"),
        Exam("circulant(8,[1,3],latency='0 s')", "all_gather"),
    ],
    # On these all schedules with the same largest loads take the same time.
    "bfb/chunked": [
        Exam("torus(3,3)", "all_gather", chunks=2),
        Exam("ring(4)", "all_gather", {"pieces": 2}, method={}, chunks=2),
    ],
    "bfb/heterogeneous": [
        Exam("ring(5)", "all_gather", chunks=2),
        Exam("ring(4,latency='2 us')", "all_gather", {"pieces": 2}, method={}, chunks=2),
    ],
    "mcf/flow": [Exam("torus(3,3)", "all_to_all"), Exam("ring(5)", "all_to_all")],
    "mcf/classes": [
        Exam("circulant(9,[1,2])", "all_to_all"),
        Exam("mesh(2,3)", "all_to_all"),
    ],
    "forestcoll/optimum": [Exam("ring(4)", "all_gather"), Exam("mi250(boxes=1)", "reduce_scatter")],
    # Every rank of a ring receives three quarters of 1 GiB over two links of 50 GB/s.
    "forestcoll/max-flow": [Exam("ring(4)", "all_gather", {"sink": 3}, wanted=0.75 * 2**30 / 100e9)],
    "forestcoll/allreduce": [
        Exam("ring(4)", "all_reduce"),
        Exam("ring(3,bidirectional=false)", "all_reduce"),
        Exam("sharp"),
    ],
    "mtree/selection": [Exam("ring(4)", "all_reduce"), Exam("complete(4)", "all_reduce", {"trees": 2, "height": 2})],
    "multirail/themis": [
        Exam("RI(4)_SW(4)", "all_reduce", FABRIC),
        Exam("RI(4)_SW(4)", "all_gather", FABRIC | {"chunks": 5}),
    ],
    "sccl/rounds": [
        Exam("ring(4)", "all_gather", method={}, metric="rounds"),
        Exam("star(3)", "reduce_scatter", {"steps": 2, "rounds": 2}, method={}, metric="rounds"),
        Exam(
            "line(3)",
            "broadcast",
            {"steps": 3, "rounds": 4},
            method={"mode": "instance", "steps": 3, "rounds": 4},
            chunks=2,
            metric="rounds",
        ),
    ],
    "straggler/rounds": [
        Exam("switch(4)", "late_all_reduce", method={}, metric="rounds"),
        Exam("complete(3)", "late_all_reduce", method={}, metric="rounds"),
    ],
    # With much bandwidth inside, the servers' own bound is attained; with little, six parts of a rank pass its switch.
    "fast/rails": [
        Exam("switch2d(inner=2,outer=3,outer_bandwidth='20 GB/s')", "all_to_all", wanted=4 * 2**30 / 6 / 20e9),
        Exam(
            "switch2d(inner=4,outer=2,inner_bandwidth='60 GB/s',outer_bandwidth='50 GB/s')",
            "all_to_all",
            wanted=6 * 2**27 / 60e9,
        ),
    ],
    "expert-placement/slots": [
        Exam("experts(gpus=2, slots=2, loads=[5, 3, 1])", method={}),
        Exam("experts(gpus=4, slots=2, loads=[4, 2, 1, 1], groups=2, nodes=2)", method={}),
    ],
    # All shortest ways of an odd ring are the only ones.
    "taccl/routing": [
        Exam("ring(5)", "all_gather", method={"contiguity": False, "routing_gap": 0}),
        Exam("ring(5)", "reduce_scatter", method={"contiguity": False, "routing_gap": 0}),
    ],
    "taccl/contiguity": [Exam("ring(3)", "all_gather", chunks=2), Exam("line(3)", "broadcast", chunks=2)],
    "ten/ilp": [
        Exam("ring(4)", "all_gather", {"horizon": 3}, method={}),
        Exam("line(3)", "reduce_scatter"),
    ],
    "teccl/milp": [Exam("ring(4)", "all_gather"), Exam("mesh(2,3)", "broadcast", {"chunks": 2})],
    "teccl/lp": [Exam("ring(4)", "all_to_all"), Exam("ring(4)", "all_gather")],
    "teccl/astar": [Exam("ring(4)", "all_gather"), Exam("complete(4)", "scatter")],
    "teccl/all-to-all": [Exam("ring(4)", "all_to_all"), Exam("complete(4)", "all_to_all")],
    "mtree/patterns": [
        Exam("ring(4)", "all_reduce", {"trees": 2}),
        Exam("complete(4)", "all_reduce", {"trees": 2, "height": 1}),
    ],
    "mtree/rates": [Exam("complete(4)", "all_reduce"), Exam("ring(5)", "all_reduce", {"height": 2})],
    "mtree/restricted-master": [Exam("complete(4)", "all_reduce"), Exam("ring(5)", "all_reduce", {"height": 2})],
    # At equal prices of equal links: trees of three links cannot carry more than all links of 50 GB/s over three.
    "mtree/pricing": [
        Exam("ring(4)", "all_reduce", wanted=2**30 * 3 / (4 * 50e9)),
        Exam("complete(4)", "all_reduce", {"height": 2}, wanted=2**30 * 3 / (6 * 50e9)),
    ],
    "mtree/repair": [
        Exam("ring(4)", "all_reduce", OLDER),
        Exam("ring(4)", "all_reduce", OLDER | {"new_trees": 2, "trees": 2}),
    ],
    "mtree/repair-patterns": [
        Exam("ring(4)", "all_reduce", OLDER),
        Exam("ring(4)", "all_reduce", OLDER | {"trees": 2}),
    ],
    "wan/blink-units": [
        Exam("ring(4)", "all_reduce", method={"cut": "unit"}),
        Exam("complete(4)", "all_reduce", {"root": "centre"}, method={"root": "centre", "cut": "unit"}),
    ],
    "wan/selection": [
        Exam("ring(4)", "all_reduce", method={}),
        Exam("gscale(0.5, 0)", "all_reduce", {"trees": 3}, method={"trees": 3}),
    ],
}


def stated_cells() -> dict[tuple[str, str], tuple[str, float]]:
    """Status and value of every cell of the page, by formulation and solver."""
    lines = [line.strip("| ").split(" | ") for line in MATRIX.read_text(encoding="utf-8").splitlines() if "|" in line]
    names = [heading.strip("`") for heading in lines[0][5:]]
    return {
        (cells[0].strip("`"), solver): (text if text == "rejected" else cells[3], float(cells[4].split()[0]))
        for cells in lines[2:]
        for solver, text in zip(names, cells[5:], strict=True)
    }
