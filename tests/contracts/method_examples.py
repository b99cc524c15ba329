"""An instance that each method answers, for the contracts that all of them keep."""

from __future__ import annotations

from fractions import Fraction

from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.harness import Request
from cwb.instances import load

TORUS = ("torus(4,4)", Demand(Collective.ALL_REDUCE, Fraction(2**24)), {})
RAILS = (
    "RI(4)_FC(2)_SW(4)",
    Demand(Collective.ALL_REDUCE, Fraction(2**24), chunks=4),
    {"bandwidth": ["200 GB/s", "100 GB/s", "50 GB/s"]},
)

DGX1 = (
    "dgx1()",
    Demand(Collective.ALL_TO_ALL, Fraction(200_000)),
    {"epoch": "slow"},
)

#: A plan of one tree for ring(4), one of whose links has lost half of its bandwidth.
PLAN = {"links": [["0", "1", 0], ["1", "2", 0], ["2", "3", 0]], "root": "1", "units": 1}

#: An instance that each method answers: what to load, the collective, the options.
EXAMPLES = {
    "libra": ("4d", None, {}),
    "libra-equal": ("4d", None, {}),
    "libra-codesign": ("msft-1t-hp-4d", None, {}),
    "ring": TORUS,
    "direct": TORUS,
    "rhd": TORUS,
    "bruck": TORUS,
    "bine": TORUS,
    "dbt": TORUS,
    "knomial": TORUS,
    "torus-rings": TORUS,
    "shifted-ring": ("circulant(n=9, offsets=[1,2])", TORUS[1], {}),
    "swing": TORUS,
    "bfb": TORUS,
    "bfb-lp": TORUS,
    "bfb-chunked": TORUS,
    "bfb-heterogeneous": TORUS,
    "all-to-all-mcf": ("mesh(2,3)", Demand(Collective.ALL_TO_ALL, Fraction(2**24)), {}),
    "all-to-all-schedule": ("mesh(2,3)", Demand(Collective.ALL_TO_ALL, Fraction(2**24), chunks=4), {}),
    "blueconnect": RAILS,
    "themis": RAILS,
    "themis-lp": RAILS,
    "teccl-milp": DGX1,
    "teccl-lp": DGX1,
    "teccl-astar": DGX1,
    "teccl": ("dgx1()", Demand(Collective.ALL_GATHER, Fraction(200_000)), {}),
    "teccl-all-to-all": ("dgx1()", Demand(Collective.ALL_TO_ALL, Fraction(200_000)), {}),
    "sccl": ("dgx1()", Demand(Collective.ALL_GATHER, Fraction(200_000)), {}),
    "fast": ("switch2d(inner=2,outer=3)", Demand(Collective.ALL_TO_ALL, Fraction(2**24)), {}),
    "straggler": ("switch(6,latency='0 s')", Demand(Collective.LATE_ALL_REDUCE, Fraction(2**24)), {}),
    "expert-placement": ("experts(gpus=4, slots=3, experts=10, layers=2, groups=2, nodes=2)", None, {}),
    "spff": ("dgx1()", Demand(Collective.ALL_GATHER, Fraction(200_000)), {}),
    "tacos": ("mesh(3,3)", Demand(Collective.ALL_REDUCE, Fraction(2**24)), {"restarts": 8}),
    "taccl": ("ring(4)", Demand(Collective.ALL_GATHER, Fraction(200_000)), {}),
    "forestcoll": ("a100(boxes=2)", TORUS[1], {}),
    "forestcoll-lp": TORUS,
    "forestcoll-allreduce": ("mi250_8(boxes=2)", TORUS[1], {}),
    "blink": TORUS,
    "blink-switch": ("a100(boxes=2)", TORUS[1], {}),
    "multitree": TORUS,
    "switch-trees": ("dgx_h100(boxes=2,nvls=true)", TORUS[1], {}),
    "hierarchical": ("rail(boxes=2,per_box=2)", TORUS[1], {}),
    "nccl": ("dgx_a100(boxes=2)", TORUS[1], {}),
    "rccl": ("mi300x()", TORUS[1], {}),
    "c-cube": ("dgx1()", TORUS[1], {}),
    "tto": ("mesh(4,4)", TORUS[1], {}),
    "ten-ilp": ("dgx1()", Demand(Collective.ALL_GATHER, Fraction(200_000)), {}),
    "pccl": ("mesh(3,3)", Demand(Collective.ALL_TO_ALL, Fraction(2**24)), {"steps": 2000}),
    "mtree": ("gscale", None, {"trees": 3, "height": 4}),
    "gost": ("gscale", None, {"trees": 5}),
    "mtree-repair": ("ring(4)", TORUS[1], {"previous": [PLAN], "changes": ["0-1=0.5"]}),
    "topoadopt": ("gscale", None, {"trees": 3, "moves": 10}),
    "blink-wan": ("gscale", None, {"steps": 200}),
    "single-tree": ("gscale", None, {"height": 4}),
    "wan-ring": TORUS,
    "plink": ("gscale", None, {}),
    "psld": ("gscale", None, {}),
}


def example(name: str) -> Instance:
    """The instance that a method answers."""
    spec, demand, _ = EXAMPLES[name]
    return load(spec) if demand is None else load(spec).with_changes(demand=demand)


def request(name: str, seed: int = 0) -> Request:
    """Return the request for the method."""
    return Request(name, options=EXAMPLES[name][2], seed=seed)
