"""Run one public program on one instance, in an interpreter that has what it needs; cwb is not imported.

Reads one line of JSON from stdin and prints one as its last line: CPU seconds, peak memory in MiB, and what the program
found. Programs in Python are imported and given a small instance first, so that neither counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any


def peak_mib() -> float:
    """Most memory that this process has had; what the system counts for a process includes its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s*(\d+)", status.read_text())[0]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def forestcoll(links: list[tuple[int, int, int]], ranks: list[int]) -> dict[str, Any]:
    """Trees of an all-gather: the number of equal parts of each rank; root, parts and paths of each tree."""
    import networkx
    from pipeline_allgather import optimal_pipeline_spanning_trees  # type: ignore[import-not-found]

    graph = networkx.DiGraph()
    name = "{:06d}".format
    graph.add_weighted_edges_from([(name(a), name(b), capacity) for a, b, capacity in links], weight="capacity")
    (_, parts), (trees, weights) = optimal_pipeline_spanning_trees(graph, compute_nodes=list(map(name, ranks)))
    found = [
        [int(root), weights[root, index], [[int(path[0][0]), *(int(b) for _, b in path)] for path in paths]]
        for (root, index), paths in trees.items()
    ]
    return {"parts": parts, "trees": found}


def eplb(loads: list[list[float]], replicas: int, groups: int, nodes: int, gpus: int) -> dict[str, Any]:
    """Replicas of experts: for every layer the expert of each slot."""
    import torch  # type: ignore[import-not-found]
    from eplb import rebalance_experts  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    return {"experts": rebalance_experts(torch.tensor(loads), replicas, groups, nodes, gpus)[0].tolist()}


def teccl(**asked: Any) -> dict[str, Any]:
    """A schedule in epochs: how long it takes."""
    from argparse import ArgumentParser

    from teccl.cli import make_handle_solve  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        asked["InstanceParams"]["schedule_output_file"] = "schedule.json"
        Path("input.json").write_text(json.dumps(asked))
        parser = ArgumentParser()
        handle = make_handle_solve(parser.add_subparsers(dest="command"))
        handle(parser.parse_args(["solve", "--input_args", "input.json"]), "solve")
        found = json.loads(Path("schedule.json").read_text())
        os.chdir("/")
    return {"time": found["3-Epochs_Required"] * found["1-Epoch_Duration"]}


def tacos(program: str, arguments: list[str]) -> dict[str, Any]:
    """A schedule of an all-gather: how long it takes."""
    text = subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    microseconds = float(re.findall(r"Collective Time: ([\d.]+) us", text)[0])
    return {"time": microseconds / 1e6, "seconds": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 2**10}


def main() -> None:
    """Answer the one line of stdin."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    asked = json.loads(sys.stdin.readline())
    if asked["program"] == "tacos":
        print(json.dumps(tacos(asked["path"], asked["asked"])))
        return
    sys.path.insert(0, asked["path"])
    run = {"forestcoll": forestcoll, "eplb": eplb, "teccl": teccl}[asked["program"]]
    run(**asked["small"])
    begin = process_time()
    found = run(**asked["asked"])
    print("\n" + json.dumps({**found, "seconds": process_time() - begin, "mib": peak_mib()}))


if __name__ == "__main__":
    main()
