"""Meanings of the metrics that the verifier adds to records, by kind of answer."""

from __future__ import annotations

from collections.abc import Mapping

from cwb.core.method import Metric

#: Of every answer.
EVERY: Mapping[str, Metric] = {
    "question": Metric("objective type in words"),
    "clock": Metric("time model of the objective, in one word"),
    "iterations": Metric("steps of the method's own algorithm, such as linear programs or candidate orders"),
    "start": Metric("for a formulation with a start: taken, or what does not fit"),
    "restricted_to": Metric("restrictions of the answers by options; part of the objective type"),
}

#: Of every answer that moves data.
MOVED: Mapping[str, Metric] = {
    "completion_time_s": Metric("arrival of the last byte, by one time model for all methods", "s"),
    "no_completion_time": Metric("reason if there is no completion time"),
    "rank_costs": Metric("costs of messages and of adding that the completion time has, if the instance has any"),
    "routing": Metric("routing that the completion time has, if it is not fixed"),
    "algbw_GBps": Metric("size of the collective over the completion time", "GB/s"),
    "busbw_GBps": Metric("the same times the factor of the collective", "GB/s"),
    "lower_bound_s": Metric("bound on the objective, recomputed from the certificate", "s"),
    "busiest_link": Metric("number of the busiest link, and its share of the completion time"),
}

#: Of schedules of sends.
SCHEDULES: Mapping[str, Metric] = {
    "warnings": Metric("number of warnings of the verifier"),
    "alpha_beta_time_s": Metric(
        "completion time without congestion; the difference is the cost of congestion and store-and-forward", "s"
    ),
    "sends": Metric("number of sends of the answer; for orders of chunks on a mesh, after conversion"),
}

#: Of schedules on a grid of epochs.
EPOCHS: Mapping[str, Metric] = {
    "epochs": Metric("epochs up to the last arrival; the objective is their duration"),
    "epoch_duration_s": Metric("length of an epoch", "s"),
    "epochs_algbw_GBps": Metric("size of the collective over the objective", "GB/s"),
    "epochs_busbw_GBps": Metric("the same times the factor of the collective", "GB/s"),
    "timing": Metric("charges of a link on the grid"),
    "lower_bound_epochs": Metric("proved lower bound on the number of epochs"),
    "network_bound_s": Metric(
        "proved bound before rounding up to whole epochs; it also holds for answers off the grid", "s"
    ),
}

#: Of packings of trees, and of bounds on flows.
TREES: Mapping[str, Metric] = {
    "flow_time_s": Metric("the objective: time of the most loaded link, without latency", "s"),
    "flow_algbw_GBps": Metric("size of the collective over the flow time", "GB/s"),
    "flow_busbw_GBps": Metric("the same times the factor of the collective", "GB/s"),
    "pieces": Metric("pieces of every tree's data, for the completion time"),
    "trees": Metric("number of trees"),
    "max_height": Metric("largest number of edges between a root and a rank, in either direction"),
    "mean_height": Metric("mean height of the trees, weighted by their data"),
}

#: Of orders of chunks on the dimensions of a fabric.
ORDERS: Mapping[str, Metric] = {
    "dimension_busy_s": Metric("busy time of each dimension, the innermost first", "s"),
    "links_time_s": Metric(
        "completion time of the orders as sends on links, comparable with other schedules; up to 100,000 sends", "s"
    ),
}

#: Of bandwidth plans.
PLANS: Mapping[str, Metric] = {
    "iteration_time_s": Metric("time of a training iteration, the weighted sum over the workloads", "s"),
    "workload_time_s": Metric("time of each workload, without its weight", "s"),
    "network_cost_usd": Metric("cost of the network; null without a cost model", "USD"),
    "perf_per_cost": Metric("1 over time times cost", "1/(s USD)"),
    "bandwidth_GBps": Metric("bandwidth per NPU of each dimension, the innermost first", "GB/s"),
    "speedup": Metric("time of EqualBW over that of the plan"),
    "perf_per_cost_gain": Metric("time times cost of EqualBW over that of the plan"),
    "equal_bandwidth_GBps": Metric("bandwidth of every dimension in EqualBW", "GB/s"),
}

#: Of placements of experts.
PLACEMENTS: Mapping[str, Metric] = {
    "layer_loads": Metric("largest load of a GPU in every layer, whose sum is the objective"),
    "balancedness": Metric("mean load of a GPU over the largest load, of all layers together"),
    "most_replicas": Metric("largest number of replicas of an expert"),
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
