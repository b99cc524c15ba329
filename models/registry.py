"""Every method by its name, imported when it is asked for: a broken method breaks only itself."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module

from ..core.errors import InputError
from ..core.method import Method

METHODS: Mapping[str, str] = {
    "libra": "libra.methods:LIBRA",
    "libra-equal": "libra.methods:LIBRA_EQUAL",
    "libra-codesign": "libra.methods:LIBRA_CODESIGN",
    "ring": "textbook.ring:METHOD",
    "direct": "textbook.direct:METHOD",
    "rhd": "textbook.halving:METHOD",
    "bruck": "textbook.bruck:METHOD",
    "dbt": "textbook.dbt:METHOD",
    "knomial": "textbook.knomial:METHOD",
    "torus-rings": "textbook.torus_rings:METHOD",
    "shifted-ring": "textbook.shifted_ring:METHOD",
    "swing": "textbook.swing:METHOD",
    "bfb": "bfb.methods:BFB",
    "bfb-lp": "bfb.methods:BFB_LP",
    "bfb-chunked": "bfb.methods:BFB_CHUNKED",
    "bfb-heterogeneous": "bfb.methods:BFB_HETEROGENEOUS",
    "all-to-all-mcf": "mcf.method:METHOD",
    "blueconnect": "multirail.methods:BLUECONNECT",
    "themis": "multirail.methods:THEMIS",
    "themis-lp": "multirail.methods:THEMIS_LP",
    "forestcoll": "forestcoll.methods:FORESTCOLL",
    "forestcoll-lp": "forestcoll.lp_method:METHOD",
    "forestcoll-allreduce": "forestcoll.methods:FORESTCOLL_ALLREDUCE",
    "blink": "forestcoll.methods:BLINK",
    "blink-switch": "forestcoll.methods:BLINK_SWITCH",
    "multitree": "multitree.method:METHOD",
    "c-cube": "ccube.method:METHOD",
    "tto": "tto.method:METHOD",
    "ten-ilp": "ten.method:METHOD",
    "pccl": "pccl.method:METHOD",
    "sccl": "sccl.method:METHOD",
    "taccl": "taccl.method:METHOD",
    "spff": "spff.method:METHOD",
    "tacos": "tacos.method:METHOD",
    "teccl": "teccl.search.method:METHOD",
    "teccl-milp": "teccl.methods:TECCL_MILP",
    "teccl-lp": "teccl.methods:TECCL_LP",
    "teccl-astar": "teccl.methods:TECCL_ASTAR",
    "teccl-all-to-all": "teccl.alltoall:METHOD",
    "mtree": "mtree.methods:MTREE",
    "gost": "mtree.methods:GOST",
    "mtree-repair": "mtree.repair:METHOD",
    "topoadopt": "wan.methods:TOPOADOPT",
    "blink-wan": "wan.methods:BLINK_WAN",
    "single-tree": "wan.methods:SINGLE_TREE",
    "wan-ring": "wan.methods:WAN_RING",
    "plink": "wan.methods:PLINK",
    "psld": "wan.methods:PSLD",
}


def names() -> tuple[str, ...]:
    """Names of all methods."""
    return tuple(METHODS)


def get(name: str) -> Method:
    """Import a method.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in METHODS:
        close = get_close_matches(name, METHODS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"unknown model {name!r}; expected one of {', '.join(METHODS)}{hint}", source="--model")
    module, attribute = METHODS[name].split(":")
    method = getattr(import_module(f".{module}", __package__), attribute)
    assert isinstance(method, Method)  # noqa: S101 (the registry is ours)
    return method
