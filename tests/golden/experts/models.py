"""The model of experts on slots."""

from __future__ import annotations

from fractions import Fraction

from cwb.core.experts import Experts
from cwb.models.experts.formulation import build


def slots():
    """Four experts in two groups, on two nodes of two GPUs with two slots each."""
    return build(Experts((tuple(map(Fraction, (4, 2, 1, 1))),), 4, 2, 2, 2))


CONSTRAINTS = [
    *("one_count", "all_placed", "slots_filled", "largest_load"),
    *("one_node", "groups_of_node", "on_its_node"),
]

MODELS = {"{}": (slots, CONSTRAINTS)}
