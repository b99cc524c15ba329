"""MTree's models of trees, of their patterns and of repairs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from cwb.algorithms.trees.network import to_wan
from cwb.models.mtree.formulations import patterns, pricing, restricted_master, selection
from cwb.models.mtree.problem import CandidateTrees, TreePatterns
from mtree_networks import instance

#: A triangle of 3, 2 and 1 Mb/s, and its three trees, the first of which is old.
WAN = to_wan(instance(3, [(0, 1, 3, 1), (1, 2, 2, 2), (0, 2, 1, 3)]))
TREES = np.array([[0, 1], [0, 2], [1, 2]])
PRICE = np.array([0.5, 0.25, 1.0])

SELECTION = ["link_capacity", "least_rate", "chosen_rate", "tree_count"]
PATTERN = ["flow_on_links", "flow_balance", "tree_size", "one_pattern", "tree_on_link"]

MODELS = {
    "selection_{}": (lambda: selection.build(CandidateTrees(WAN, TREES, 2, 1)), SELECTION),
    "cover_{}": (lambda: restricted_master.build(CandidateTrees(WAN, TREES, 2)), ["tree_cost"]),
    "layers_{}": (
        lambda: pricing.build(WAN, WAN.hops(2), PRICE),
        ["one_root", "layer_entered", "first_layer", "next_layer"],
    ),
    "labels_{}": (
        lambda: pricing.build(WAN, WAN.latencies(Fraction(4, 1000)), PRICE),
        ["one_root", "one_arc_in", "near_root", "farther", "later"],
    ),
    "patterns_{}": (
        lambda: patterns.build(TreePatterns(WAN, None, 2, 2, 3.0, 1)),
        [
            *PATTERN,
            "pattern_capacity",
            "falling_rates",
            "site_reached",
            "used_most",
            "used_least",
            "ceiling_of_all",
        ],
    ),
    "repair_{}": (lambda: selection.build(CandidateTrees(WAN, TREES, None, 0, 1, 1)), ["new_tree_count"], SELECTION),
    "repair_patterns_{}": (
        lambda: patterns.build(TreePatterns(WAN, None, 1, 2, 3.0, 0, TREES[:1], 1)),
        ["shared_capacity", "ceiling_of_all", "used_new", "used_old", "used_in_all"],
        [*PATTERN, "site_reached"],
    ),
}
