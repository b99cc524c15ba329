"""Seconds and memory of exports and their checks; see ``exchange.py``."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from cwb.core.collective import Collective, Demand
from cwb.exchange.msccl.check import check_file
from cwb.exchange.msccl.dialects import DIALECTS
from cwb.exchange.msccl.flow import Flow, flow_of
from cwb.exchange.msccl.lower import Target, lower
from cwb.exchange.mscclpp import check as plans
from cwb.exchange.mscclpp import lower as planning
from cwb.exchange.mscclpp.files import json_text
from cwb.harness import Request
from cwb.harness.run import run
from cwb.instances import load

#: What large files are written as.
FORMATS = ["xml", "plan", "plan of trees"]


def sizes(ranks: list[int], formats: list[str]) -> int:
    """Seconds and memory of export and check, each size and format in a process of its own."""
    return max(
        subprocess.run([sys.executable, __file__, str(n), one], check=False).returncode
        for one in formats
        for n in ranks
    )


def size(ranks: int, form: str) -> int:
    """Make an all-gather on a ring, with steps as ranks squared; as a plan, also an all-reduce over two trees."""
    if form == "plan of trees":
        return measure_export(f"complete({ranks})", "dbt", Collective.ALL_REDUCE, plan_size)
    return measure_export(
        f"ring({ranks}, bidirectional=False)",
        "ring",
        Collective.ALL_GATHER,
        plan_size if form == "plan" else xml_size,
    )


def xml_size(flow: Flow, folder: Path) -> tuple[int, Path, Callable[[], list[str]]]:
    """Write an MSCCL file; its steps, where it is, and what checks it."""
    from cwb.exchange.msccl.files import xml_text

    dialect, path = DIALECTS["msccl"], folder / "a.xml"
    found = lower(flow, Target(dialect))
    with path.open("w") as stream:
        stream.writelines(xml_text(found))
    return found.steps, path, lambda: check_file(path, [dialect]).problems


def plan_size(flow: Flow, folder: Path) -> tuple[int, Path, Callable[[], list[str]]]:
    """Write a plan; its operations, where it is, and what checks it."""
    path = folder / "a.json"
    found = planning.lower(flow, planning.Target())
    with path.open("w") as stream:
        stream.writelines(json_text(found))
    return found.steps, path, lambda: plans.check_file(path).problems


def measure_export(
    spec: str,
    method: str,
    kind: Collective,
    write: Callable[[Flow, Path], tuple[int, Path, Callable[[], list[str]]]],
) -> int:
    """Seconds and memory of an export and its check."""
    instance = load(spec).with_changes(demand=Demand(kind, Fraction(2**30)))
    answer: Any = run(instance, Request(method)).answer
    began = process_time()
    with TemporaryDirectory() as folder:
        steps, path, check = write(flow_of(instance, answer), Path(folder))
        export_s, length = process_time() - began, path.stat().st_size
        after_export = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        del answer
        began = process_time()
        problems = check()
    check_s = process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{spec}, {path.suffix[1:]}: {steps:,} steps, {length / 2**20:.1f} MiB; "
        f"export {export_s:.1f} s of one core (solving "
        f"and it {after_export:.2f} GiB); check {check_s:.1f} s, "
        f"{check_s / steps * 1e6:.1f} us a step; at most {memory:.2f} GiB",
        flush=True,
    )
    print("\n".join(problems[:3]), end="\n" if problems else "")
    return int(bool(problems))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("boxes", type=int)
    parser.add_argument("format", choices=list(FORMATS))
    asked = parser.parse_args()
    sys.exit(size(asked.boxes, asked.format))
