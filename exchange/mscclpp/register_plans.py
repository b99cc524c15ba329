"""Registration of execution plans with MSCCL++: its collection of algorithms, and the selector of one for a call.

``cwb select --dialect mscclpp`` writes this file beside ``algorithms/``. It needs MSCCL++ and nothing of cwb. Every
process calls ``register_plans(rank)`` before its communicator is made.
"""

import json
from pathlib import Path
from typing import Any


class RegisteredPlan:
    """The part of a plan by which calls are selected, on one rank."""

    def __init__(self, path: Path, rank: int) -> None:
        plan = json.loads(path.read_text())
        gpus = plan["gpus"]
        self.name, self.collective, self.inplace = plan["name"], plan["collective"], plan["inplace"]
        self.ranks = len(gpus)
        self.sizes = range(plan["min_message_size"], plan["max_message_size"] + 1)  # bytes of the larger buffer
        # Bytes of which the input and the output must be multiples.
        self.input_unit, self.output_unit = (
            plan["buffer_alignment"] * gpus[rank][f"{end}_chunks"] for end in ("input", "output")
        )
        channels = [(gpu["id"], one) for gpu in gpus for one in gpu["channels"] if one["channel_type"] == "memory"]
        self.memory_pairs = {(gpu, peer) for gpu, one in channels for peer in one["connected_to"]}  # of one box

    def fits(self, request: Any) -> bool:
        """Return True if the plan is for a call: collective, ranks, boxes, root, sizes and placement."""
        size, ranks, box = request.message_size, request.world_size, request.n_ranks_per_node
        if (self.collective, self.ranks) != (request.collective, ranks) or any(request.hints.get("root", ())):
            return False
        # MSCCL++ states the bytes of the input: of an all-gather, one rank's part.
        output = {"allgather": size * ranks, "reducescatter": size // ranks}.get(self.collective, size)
        if max(size, output) not in self.sizes or size % self.input_unit or output % self.output_unit:
            return False
        source, target = request.input_buffer, request.output_buffer
        if self.inplace:  # the smaller buffer is the rank's part of the larger one
            part = request.rank * min(size, output) if size != output else 0
            is_placed = source - target == (part if size < output else -part)
        else:
            is_placed = source + size <= target or target + output <= source
        return is_placed and all(one // box == other // box for one, other in self.memory_pairs)


def register_plans(rank: int, *folders: Path | str) -> Any:
    """Add plans to MSCCL++'s collection, and set the selector; return the builder of the collection.

    Parameters
    ----------
    folders : Path or str
        Folders with plans, by default the one beside this file. There is one selector, so one call registers all.
    """
    import mscclpp
    import mscclpp.ext

    builder, plans = mscclpp.ext.AlgorithmCollectionBuilder(), []
    paths = folders or (Path(__file__).parent / "algorithms",)
    for path in (path for folder in paths for path in Path(folder).glob("*.json")):
        plan = RegisteredPlan(path, rank)
        # Without a constraint no call matches by MSCCL++'s own rules, which ignore chunks and overlaps.
        # Pyright takes the package for the folder of this file.
        execution = mscclpp.ExecutionPlan(str(path), rank)  # pyright: ignore[reportAttributeAccessIssue]
        algorithm = mscclpp.Algorithm(id=plan.name, execution_plan=execution)  # pyright: ignore[reportAttributeAccessIssue]
        builder.add_algorithm_builder(algorithm)
        plans.append(plan)

    def select(algorithms: dict[str, dict[str, Any]], request: Any) -> Any:
        """Return the algorithm for a call, or None, so that MSCCL++ or NCCL takes its own."""
        return next((algorithms[plan.collective][plan.name] for plan in plans if plan.fits(request)), None)

    builder.set_algorithm_selector(select)
    return builder
