"""Generated training instances: a shipped workload on any network of dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.fields import run_validation
from ..core.instance import Instance
from .expression import Expression
from .schema import InstanceFile

_PARAMETERS = ("workload", "dims", "total_bandwidth", "objective", "loop")


def libra_instance(expression: Expression, build: Callable[[InstanceFile], Instance]) -> Instance:
    """Make a training instance of ``libra(workload=..., dims=..., ...)``.

    Parameters
    ----------
    expression : Expression
        ``workload`` (a shipped name) and ``dims`` (building blocks), and optionally ``total_bandwidth`` ("1000 GB/s"
        unless given), ``objective`` and ``loop``. Prices are those of table 4.1, groups are mapped innermost first.
    """
    given = expression.bind(_PARAMETERS, needed=("workload", "dims"))
    workload: dict[str, Any] = {"use": given["workload"]}
    if "loop" in given:
        workload["loop"] = given["loop"]
    data = {
        "schema": "cwb-instance/1",
        "network": {"dimensions": given["dims"]},
        "workloads": [workload],
        "cost_model": "table-4.1",
        "design": {
            "objective": given.get("objective", "perf"),
            "total_bandwidth": given.get("total_bandwidth", "1000 GB/s"),
        },
    }
    return build(run_validation(lambda: InstanceFile.model_validate(data)))
