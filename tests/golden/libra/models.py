"""LIBRA's model of bandwidths."""

from __future__ import annotations

from functools import partial

from cwb.core.design import Objective
from cwb.core.workload import TrainingLoop
from cwb.models.libra.formulation import build
from cwb.models.libra.problem import pose_problem
from libra_instances import two_dimensional

MODELS = {
    "{}": (
        lambda: build(pose_problem(two_dimensional(loop=TrainingLoop.TP_DP_OVERLAP))),
        [
            "inverse_bandwidth",
            "collective_time",
            "overlapped_tp",
            "overlapped_dp",
            "iteration_time",
            "network_cost",
            "design",
        ],
    )
}
OBJECTIVES = {
    f"objective-{objective.value}": partial(lambda o: build(pose_problem(two_dimensional(o))), objective)
    for objective in Objective
}
