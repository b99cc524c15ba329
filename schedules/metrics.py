"""What the verifier's metrics mean, by the kind of the answer that they measure."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.described import Metric

#: Of every answer.
EVERY: Mapping[str, Metric] = {
    "question": Metric("what the objective is, in words"),
    "clock": Metric("the same in one word: how the objective counts time"),
    "iterations": Metric("steps of the method's own algorithm, such as linear programs or orders that were tried"),
    "restricted_to": Metric("which answers the options allow, where not all; part of the question"),
}

#: Of every answer that moves data.
MOVED: Mapping[str, Metric] = {
    "completion_time_s": Metric("when the last byte arrives, by one model of time for all methods", "s"),
    "no_completion_time": Metric("why there is no completion time, where there is none"),
    "algbw_GBps": Metric("size of the collective over the completion time", "GB/s"),
    "busbw_GBps": Metric("the same times the factor of the collective", "GB/s"),
    "lower_bound_s": Metric("the bound on the objective that the certificate proves, recomputed", "s"),
    "busiest_link": Metric("number of the link that is busy longest, and its share of the completion time"),
}

#: Of schedules of sends.
SCHEDULES: Mapping[str, Metric] = {
    "warnings": Metric("number of warnings of the verifier"),
    "alpha_beta_time_s": Metric(
        "completion time without congestion; the difference is what congestion and store-and-forward cost", "s"
    ),
    "sends": Metric("sends that orders of chunks on a mesh become, or that the answer stands for"),
}

#: Of schedules on a grid of epochs.
EPOCHS: Mapping[str, Metric] = {
    "epochs": Metric("epochs up to the last arrival; the objective is their duration"),
    "epoch_duration_s": Metric("length of an epoch", "s"),
    "epochs_algbw_GBps": Metric("size of the collective over the objective", "GB/s"),
    "epochs_busbw_GBps": Metric("the same times the factor of the collective", "GB/s"),
    "timing": Metric("what a link costs on the grid"),
    "lower_bound_epochs": Metric("epochs that are proved to be needed"),
    "network_bound_s": Metric(
        "what the certificate proves before it is rounded up to whole epochs: it holds for answers off the grid too",
        "s",
    ),
}

#: Of packings of trees, and of bounds on flows.
TREES: Mapping[str, Metric] = {
    "flow_time_s": Metric("the objective: time of the most loaded link, without latency", "s"),
    "flow_algbw_GBps": Metric("size of the collective over the flow time", "GB/s"),
    "flow_busbw_GBps": Metric("the same times the factor of the collective", "GB/s"),
    "pieces": Metric("pieces of every tree's data, for the completion time"),
    "trees": Metric("number of trees"),
    "max_height": Metric("most edges between a root and a rank; of both directions the larger one"),
    "mean_height": Metric("the same on average over the trees, weighted by what they carry"),
}

#: Of orders of chunks on the dimensions of a fabric.
ORDERS: Mapping[str, Metric] = {
    "dimension_busy_s": Metric("how long each dimension worked, the innermost first", "s"),
    "links_time_s": Metric(
        "completion time of the orders as sends on links, to be compared with other schedules; up to 100,000 sends", "s"
    ),
}

#: Of bandwidth plans.
PLANS: Mapping[str, Metric] = {
    "iteration_time_s": Metric("time of a training iteration, the weighted sum over the workloads", "s"),
    "workload_time_s": Metric("time of each workload, without its weight", "s"),
    "network_cost_usd": Metric("cost of the network; null without a cost model", "USD"),
    "perf_per_cost": Metric("1 over time times cost", "1/(s USD)"),
    "bandwidth_GBps": Metric("bandwidth per NPU of each dimension, the innermost first", "GB/s"),
    "speedup": Metric("time of EqualBW, which gives every dimension the same, over that of the plan"),
    "perf_per_cost_gain": Metric("time times cost of EqualBW over that of the plan"),
    "equal_bandwidth_GBps": Metric("what EqualBW gives every dimension", "GB/s"),
}

#: Of placements of experts.
PLACEMENTS: Mapping[str, Metric] = {
    "layer_loads": Metric("largest load of a GPU in every layer, whose sum is the objective"),
    "balancedness": Metric("load of a GPU on average over the largest, of all layers together"),
    "most_replicas": Metric("replicas of the expert that has the most"),
}

#: By what they are of, as the documentation has them.
GROUPS: Mapping[str, Mapping[str, Metric]] = {
    "Every answer": EVERY,
    "Answers that move data": MOVED,
    "Schedules of sends": SCHEDULES,
    "Schedules on a grid of epochs": EPOCHS,
    "Packings of trees, and bounds on flows": TREES,
    "Orders of chunks on the dimensions of a fabric": ORDERS,
    "Bandwidth plans": PLANS,
    "Placements of experts": PLACEMENTS,
}

#: All of them.
VERIFIED: Mapping[str, Metric] = {name: metric for group in GROUPS.values() for name, metric in group.items()}
