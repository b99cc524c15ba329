"""Comparison of solvers on exported models: ``cwb export-instances -o library/``, then this script with ``library/``.

Every solver reads the MPS file itself, in a process of its own, with one thread and a limit. Shifted geometric means
count a run that did not end within the limit as the limit; CPU seconds, so that two runs side by side do not slow one
another.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

SHIFT_S = 1.0
SOLVERS = ("highs", "scip", "gurobi")

#: Relative difference up to which two optima are the same.
SAME = 1e-5


def highs(path: str, limit_s: float) -> tuple[str, float | None]:
    """Solve with HiGHS."""
    import highspy

    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    model.setOptionValue("time_limit", limit_s)
    model.readModel(path)
    model.run()
    status = model.modelStatusToString(model.getModelStatus()).lower()
    return status, model.getObjectiveValue() if status == "optimal" else None


def scip(path: str, limit_s: float) -> tuple[str, float | None]:
    """Solve with SCIP."""
    from pyscipopt import Model

    model = Model()
    model.hideOutput()
    model.readProblem(path)
    model.setParam("limits/time", limit_s)
    model.optimize()
    status = model.getStatus()
    return status, model.getObjVal() if status == "optimal" else None


def gurobi(path: str, limit_s: float) -> tuple[str, float | None]:
    """Solve with Gurobi; the licence that comes with the wheel takes 2,000 rows and columns."""
    import gurobipy

    with gurobipy.Env(params={"OutputFlag": 0}) as environment, gurobipy.read(path, environment) as model:
        model.Params.Threads = 1
        model.Params.TimeLimit = limit_s
        try:
            model.optimize()
        except gurobipy.GurobiError as error:
            return f"licence: {error}" if "size-limited" in str(error) else f"error: {error}", None
        names = {2: "optimal", 3: "infeasible", 4: "infeasible", 9: "timelimit"}
        return names.get(model.Status, str(model.Status)), model.ObjVal if model.Status == 2 else None


def one(solver: str, path: str, limit_s: float) -> None:
    """Solve one file and print what came of it; runs in a process of its own."""
    start = time.process_time()
    try:
        status, objective = {"highs": highs, "scip": scip, "gurobi": gurobi}[solver](path, limit_s)
    except ImportError:
        status, objective = "not installed", None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps({"status": status, "objective": objective, "cpu_s": time.process_time() - start, "peak_MiB": peak})
    )


def outcome(solver: str, path: Path, limit_s: float) -> dict:
    """Solve one file in a process that is stopped where it ignores its limit."""
    command = [sys.executable, __file__, "--one", solver, str(path), "--limit", str(limit_s)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * limit_s + 60, check=False)
        return json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return {"status": "died", "objective": None, "cpu_s": limit_s, "peak_MiB": 0.0}


def is_answered(found: dict) -> bool:
    """Check if the solver answered the question with an optimum or a proof of infeasibility."""
    return found["status"] in ("optimal", "infeasible")


def shifted_mean(seconds: list[float]) -> float:
    """Geometric mean of the seconds, shifted."""
    return math.exp(sum(math.log(s + SHIFT_S) for s in seconds) / len(seconds)) - SHIFT_S


def main() -> None:
    """Solve every model of a library with every solver and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", nargs="?", type=Path)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a run")
    parser.add_argument("--one", nargs=2, metavar=("SOLVER", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(*arguments.one, arguments.limit)
        return
    if arguments.library is None:
        parser.error("which library? the folder of 'cwb export-instances'")
    models = json.loads((arguments.library / "index.json").read_text())["models"]
    rows: dict[str, list[dict]] = defaultdict(list)
    print("| model | rows | columns | best known | " + " | ".join(f"{s} (CPU s)" for s in SOLVERS) + " |")
    print("|---|---:|---:|---:|" + "---:|" * len(SOLVERS))
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            path = Path(folder) / f"{model['name']}.mps"
            path.write_bytes(gzip.decompress((arguments.library / f"{path.name}.gz").read_bytes()))
            found = {solver: outcome(solver, path, arguments.limit) for solver in SOLVERS}
            rows[model["family"]].append(found)
            cells = [f"{f['cpu_s']:.2f}" if is_answered(f) else f["status"].split(":")[0] for f in found.values()]
            best = "" if model["objective"] is None else f"{model['objective']:.6g}"
            size = f"{model['constraints']:,} | {model['variables']:,}"
            print(f"| {model['name']} | {size} | {best} | " + " | ".join(cells) + " |", flush=True)
            optima = {s: f["objective"] for s, f in found.items() if f["objective"] is not None}
            if optima and max(optima.values()) - min(optima.values()) > SAME * max(1.0, *map(abs, optima.values())):
                print(f"solvers differ on {model['name']}: {optima}", file=sys.stderr)
    print(f"\nShifted geometric mean of CPU seconds (shift {SHIFT_S:g} s, limit {arguments.limit:g} s), models ended\n")
    print("| family | models | " + " | ".join(SOLVERS) + " |")
    print("|---|---:|" + "---:|" * len(SOLVERS))
    for family, found in rows.items():
        cells = []
        for solver in SOLVERS:
            runs = [f[solver] for f in found]
            if any(f["status"].startswith(("licence", "not installed")) for f in runs):
                taken = [f for f in runs if not f["status"].startswith(("licence", "not installed"))]
                note = f" ({len(taken)} within the licence)"
            else:
                taken, note = runs, ""
            seconds = [f["cpu_s"] if is_answered(f) else arguments.limit for f in taken]
            mean = f"{shifted_mean(seconds):.2f}, {sum(map(is_answered, taken))} of {len(taken)}" if taken else "n/a"
            cells.append(mean + note)
        print(f"| {family} | {len(found)} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
