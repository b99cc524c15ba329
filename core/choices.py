"""Choices for options of commands and API functions."""

#: Collectives that files of MSCCL know.
MSCCL_COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
)

#: Collectives that both nccl-tests and the method ``nccl`` have.
NCCL_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all")

#: Collectives whose optimum in the flow model is known: by trees, and by the maximum concurrent flow.
FLOW_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all")

#: Collectives of the schedule that the topology finder builds.
FINDER_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")

#: Runtimes of MSCCL files.
DIALECTS = ("msccl", "msccl-executor", "rccl")

#: Memory of output and input in MSCCL files: different, the same, or either.
PLACEMENTS = ("out", "in", "both")

#: Protocols of MSCCL files.
PROTOCOLS = ("Simple", "LL", "LL128")

#: Parts of a network that may fail.
FAILURES = ("link", "rank", "switch")

#: Models of time on links, as :class:`~cwb.core.trace.SimulationMode` has them.
SIMULATION_MODES = ("congestion-aware", "alpha-beta", "cut-through", "fair-share", "shares")

#: Plots of a schedule.
PLOT_KINDS = ("heatmap", "gantt", "utilization", "trees", "network", "map")

#: Recorded runs that a comparison makes again.
RETRIES = ("failed", "limit", "all")
