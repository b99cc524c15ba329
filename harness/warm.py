"""Compilation of all loops ahead, by runs that use them."""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

from ..core import kernel
from ..core.errors import CwbError
from ..exchange.msccl.dialects import DIALECTS
from ..exchange.msccl.flow import flow_of
from ..exchange.msccl.lower import Target, lower
from ..instances.demand import with_demand
from ..instances.loader import load
from ..schedules.files import Written
from .clock import ALLOWANCE
from .request import Request
from .run import run

#: Method, instance, collective and options of runs that between them compile every loop. The longest come first.
RUNS: tuple[tuple[str, str, str | None, dict[str, Any]], ...] = (
    ("pccl", "mesh(3,3)", "all_to_all", {"steps": 500}),
    ("teccl", "dgx2(chassis=2)", "all_gather", {}),
    ("mtree", "gscale", None, {"trees": 2, "height": 3}),
    ("tacos", "mesh(3,3)", "all_reduce", {"restarts": 2}),
    ("forestcoll", "mi250(boxes=2)", "all_gather", {"repack": 2}),
    ("pccl", "switch2d(2,2)", "all_gather", {"steps": 500}),
    ("tacos", "switch2d(2,2)", "all_gather", {"restarts": 2}),
    ("bfb", "torus(4,4)", "all_gather", {}),
    ("gost", "gscale", None, {"trees": 3}),
    ("teccl", "dgx1()", "all_gather", {}),
    ("teccl-all-to-all", "ring(7)", "all_to_all", {}),
    ("tacos", "torus(4,4)", "all_gather", {"answer": "trees"}),
    ("blink", "torus(4,4)", "all_reduce", {}),
    ("all-to-all-schedule", "ring(5)", "all_to_all", {"algorithm": "first-order"}),
    ("wan-ring", "torus(3,3)", "all_reduce", {}),
    ("multitree", "torus(3,3)", "all_reduce", {}),
    ("straggler", "switch(4)", "late_all_reduce", {}),
)


def warm(processes: int | None = None) -> Iterator[tuple[str, float, str]]:
    """Compile in several processes, and cache the compiled code on disk.

    Yield method and instance of a finished run, its seconds of compilation, and the reason if it failed.
    """
    context = get_context("spawn")
    with ProcessPoolExecutor(processes or os.cpu_count() or 1, mp_context=context) as pool:
        running = {pool.submit(_compile, *each): f"{each[0]} {each[1]}" for each in RUNS}
        for future in as_completed(running):
            yield running[future], *future.result()


def _compile(model: str, network: str, collective: str | None, options: dict[str, Any]) -> tuple[float, str]:
    ALLOWANCE.left_s = 0.0
    kernel.WORTH_CODE = kernel.WORTH_COMPILER = 1  # the loops that check and simulate many sends, too
    instance = with_demand(load(network), collective, None if collective is None else "1 MiB", chunks=None)
    try:
        result = run(instance, Request(model, options=options, time_limit_s=60))
        if model == "multitree" and result.instance is not None and isinstance(result.answer, Written):
            lower(flow_of(result.instance, result.answer), Target(DIALECTS["msccl-executor"]))  # the run of MSCCL files
    except CwbError as error:
        return 0.0, str(error)
    record = result.record
    return record.seconds.get("compile", 0.0), record.message if record.exit_status not in (0, 5) else ""
