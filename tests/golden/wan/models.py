"""Linear and integer programs of the baselines over WANs."""

from __future__ import annotations

import numpy as np
from cwb.algorithms.trees.network import to_wan
from cwb.heuristics.wan import blink
from cwb.models.mtree.formulations import selection
from cwb.models.mtree.problem import CandidateTrees
from mtree_networks import instance

#: A triangle of 3, 2 and 1 Mb/s, and its three trees.
EDGES = [(0, 1, 3, 1), (1, 2, 2, 2), (0, 2, 1, 3)]
TREES = np.array([[0, 1], [0, 2], [1, 2]])

MODELS = {
    "rates_{}": (lambda: selection.build_rates(CandidateTrees(to_wan(instance(3, EDGES)), TREES)), ["link_capacity"]),
    "units_{}": (lambda: blink.build(to_wan(instance(3, EDGES)), TREES, 1), ["unit_capacity"]),
}
