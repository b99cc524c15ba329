"""Register of the generators: a name, and the function that makes its topology."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from ...core.errors import InputError
from ...core.text import did_you_mean
from ...core.topology import Topology
from ..expression import quote_text

Generator: TypeAlias = Callable[..., Topology]

#: Name to "module:function", relative to this package; imported when it is used.
GENERATORS = {
    "line": "grids:line",
    "path": "grids:line",
    "ring": "grids:ring",
    "mesh": "grids:mesh",
    "grid": "grids:mesh",
    "torus": "grids:torus",
    "hypercube": "grids:hypercube",
    "complete": "dense:complete",
    "complete_bipartite": "dense:complete_bipartite",
    "circulant": "dense:circulant",
    "optimal_circulant": "dense:optimal_circulant",
    "directed_circulant": "dense:directed_circulant",
    "kautz": "words:kautz",
    "generalized_kautz": "words:generalized_kautz",
    "de_bruijn": "words:de_bruijn",
    "modified_de_bruijn": "rewired:modified_de_bruijn",
    "diamond": "rewired:diamond",
    "hamming": "distance_regular:hamming",
    "distance_regular": "distance_regular:distance_regular",
    "twisted_torus": "twisted:twisted_torus",
    "twisted_hypercube": "twisted:twisted_hypercube",
    "random_regular": "random_graphs:random_regular",
    "double_binary_tree": "trees:double_binary_tree",
    "line_graph": "expanded:line_graph",
    "l": "expanded:line_graph",
    "product": "expanded:product",
    "power": "expanded:power",
    "degree_expansion": "expanded:degree_expansion",
    "parallel": "expanded:parallel",
    "both_directions": "expanded:both_directions",
    "star": "switched:star",
    "switch": "switched:star",
    "fat_tree": "switched:fat_tree",
    "dragonfly": "switched:dragonfly",
    "dragonfly_plus": "switched:dragonfly_plus",
    "switch2d": "switched:switch2d",
    "rfs3d": "switched:rfs3d",
    "fabric": "fabrics:fabric",
    "dgx1": "nvidia:dgx1",
    "ndv2": "nvidia:ndv2",
    "dgx2": "nvidia:dgx2",
    "dgx_a100": "nvidia:dgx_a100",
    "a100": "nvidia:dgx_a100",
    "dgx_h100": "nvidia:dgx_h100",
    "h100": "nvidia:dgx_h100",
    "dgx_h200": "nvidia:dgx_h200",
    "h200": "nvidia:dgx_h200",
    "dgx_b200": "nvidia:dgx_b200",
    "b200": "nvidia:dgx_b200",
    "nvl72": "nvidia:nvl72",
    "gb200": "nvidia:nvl72",
    "mi250": "amd:mi250",
    "mi250_8": "amd:mi250_8",
    "amd": "amd:amd",
    "mi300x": "amd:mi300x",
    "mi325x": "amd:mi325x",
    "pcie": "pcie:pcie",
    "internal1": "proprietary:internal1",
    "internal2": "proprietary:internal2",
    "rail": "clusters:rail",
    "pods": "clusters:pods",
    "three_tier": "clusters:three_tier",
    "mixed": "clusters:mixed",
    "frontera": "supercomputers:frontera",
    "leonardo": "supercomputers:leonardo",
    "frontier": "supercomputers:frontier",
    "gscale": "wan:gscale",
    "equinix_size": "wan:equinix_size",
    "idn_size": "wan:idn_size",
    "random_wan": "wan:random_wan",
}


def find_generator(name: str) -> Generator:
    """Import a generator by its name.

    Raises
    ------
    InputError
        If there is none of this name.
    """
    if name not in GENERATORS:
        hint = did_you_mean(name, GENERATORS) or "; expected one that 'cwb list topologies' names"
        raise InputError(f"unknown topology {quote_text(name)}{hint}")
    module, _, function = GENERATORS[name].partition(":")
    generator: Generator = getattr(import_module(f".{module}", __package__), function)
    return generator
