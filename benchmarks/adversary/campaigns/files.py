"""Schedule files and tables: a field is reported or verified, without internal errors, and rows keep their runs."""

from __future__ import annotations

import copy
import csv
import json
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import cwb
from cwb.benchmarks.adversary import certificates, client, makers
from cwb.benchmarks.adversary.fault import Campaign, Fault
from cwb.benchmarks.adversary.networks import rng
from cwb.core.collective import Collective, Demand
from cwb.core.record import append_record
from cwb.harness import Request, run
from cwb.schedules.files import write_schedule

ODD: tuple[Any, ...] = (
    "text",
    None,
    -1,
    0,
    1,
    2**63,
    2**70,
    1e308,
    1e-320,
    0.5,
    [],
    {},
    [[]],
    "1/0",
    "1/3",
    True,
    "-1",
    [-1],
)


def mutate_file(seed: int) -> list[Fault]:
    """Change some fields of a file, then check and simulate it."""
    random = rng("files", seed)
    made = makers.make(random)
    if not made.sends:
        return []
    network = made.instance.network
    certificate = certificates.in_epochs(random, len(network.nodes), len(network.links), made.ends, fluid=False)
    file = client.folder() / "mutated.json"
    write_schedule(file, made.instance, made.to_schedule(), certificate, {"bound_s": float(made.ends * made.unit_s)})
    data = json.loads(file.read_text())
    told = [_change(random, data) for _ in range(random.randint(1, 2))]
    if random.random() < 0.1 and isinstance(data.get("extra"), dict):
        data["extra"]["bound_s"] = random.choice(ODD)
        told.append(f"extra.bound_s = {data['extra']['bound_s']!r}")
    return check_file(data, "; ".join(told))


def check_file(data: Any, told: str) -> list[Fault]:
    """Check and simulate a file."""
    file = client.folder() / "mutated.json"
    file.write_text(json.dumps(data))
    found = []
    for command in ("check", "simulate"):
        status, _, err = client.command(command, str(file), "--json")
        if status == 1:
            found.append(
                Fault("internal error", f"cwb {command} of {told}", err.strip()[-300:], "exit status 0, 2 or 5", 13)
            )
    claimed = data.get("extra", {}).get("bound_s") if isinstance(data.get("extra"), dict) else None
    if "extra.bound_s" in told and not isinstance(claimed, int | float):
        status, _, err = client.command("check", str(file))
        if status == 0 and claimed is not None:
            found.append(Fault("claim not read", f"cwb check of {told}", "right", "a bound is a number", 13))
    return found


def _change(random: Random, data: Any) -> str:
    """Put something odd at a random place."""
    place, path = data, []
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = random.choice(keys)
        path.append(key)
        if not isinstance(place[key], dict | list) or not place[key] or random.random() < 0.1:
            break
        place = place[key]
    place[key] = copy.deepcopy(random.choice(ODD))
    return f"{'.'.join(map(str, path))} = {place[key]!r}"


def tables(seed: int) -> list[Fault]:
    """Two runs of one cell whose numbers differ by a factor: a row tells all of them the same way."""
    random = rng("tables", seed)
    name = random.choice(("forestcoll", "mtree"))
    return one_row(name, name, random.randint(3, 6), random.choice((2, 3, 5)))


def one_row(table: str, method: str, nodes: int, factor: int) -> list[Fault]:
    """Compare the ratios in a table of two runs, the second scaled by a factor, with those of the first."""
    loaded = cwb.load(f"ring({nodes})").with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(2**20)))
    record = run(loaded, Request(method)).record
    times = {
        key: value * factor if isinstance(value, int | float) and not isinstance(value, bool) else value
        for key, value in record.metrics.items()
    }
    other = replace(record, seed=1, key="1", objective=record.objective * factor, metrics=times)
    cells = []
    for records in ((record,), (record, other)):
        file = client.folder() / "records.jsonl"
        file.unlink(missing_ok=True)
        for each in records:
            append_record(file, replace(each, bound=None, gap=None))
        status, out, err = client.command("table", table, str(file), "--format", "csv")
        if status:
            return [Fault("exit status", f"cwb table {table}", f"{status} {err.strip()[-200:]}", "0", 21)]
        lines = list(csv.reader(line for line in out.splitlines() if line and not line.startswith("#")))
        cells.append(dict(zip(lines[0], lines[1], strict=False)))
    ratios = {}
    for heading in cells[0]:
        try:
            a, b = float(cells[0][heading]), float(cells[1][heading])
        except (KeyError, ValueError):
            continue
        if a > 0 and b > 0 and not any(word in heading for word in ("runs", "own_s", "size_bytes", "half")):
            ratios[heading] = round(b / a, 2)
    if len(set(ratios.values())) > 1:
        return [
            Fault(
                "row of unlike numbers",
                f"cwb table {table}, two seeds, numbers times {factor}",
                str(ratios),
                "one ratio",
                21,
            )
        ]
    return []


CAMPAIGNS = (
    Campaign("files", "exit status", mutate_file, range(300), 12_000, batch=100),
    Campaign("tables", "two runs of known ratio", tables, range(4), 40, cpu_s=120, batch=4),
)
