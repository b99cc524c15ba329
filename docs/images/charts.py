"""Draw what benchmarks measured: ``python docs/images/charts.py`` writes an SVG file for each chart beside itself.

The numbers are those of ``docs/benchmarks/*.csv``; ``tests/docs/test_choosing.py`` compares.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil, floor, log10
from pathlib import Path
from statistics import median

sys.path.append(str(Path(__file__).parent))

from figures import line, picture, text

DATA = Path(__file__).parents[1] / "benchmarks"

#: Colours that are told apart without colour vision, too, by their order of lightness, and marks.
COLOURS = ("#1f5fa8", "#c2561a", "#2a8a57", "#7b4a9e", "#9a7b00", "#5b6776")
MARKS = ("circle", "square", "triangle", "diamond", "ring")

Points = Sequence[tuple[float, float]]
WIDTH, LEFT, RIGHT, TOP = 760, 70, 190, 44


def table(name: str) -> list[dict[str, str]]:
    """Rows of a file of results."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(cell: str) -> float:
    """The first number of a cell."""
    return float(re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", cell)[0])


def series(rows: Sequence[Mapping[str, str]], x: str, y: str) -> Points:
    """Points of two columns, where both have numbers."""
    return [(number(row[x]), number(row[y])) for row in rows if row[x] and row[y]]


def mark(x: float, y: float, which: int) -> str:
    """The mark of a series."""
    colour, kind = COLOURS[which % len(COLOURS)], MARKS[which % len(MARKS)]
    shapes = {
        "circle": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.2" fill="{colour}"/>',
        "ring": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#ffffff" stroke="{colour}" stroke-width="2"/>',
        "square": f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour}"/>',
        "triangle": f'<path d="M{x:.1f},{y - 5:.1f} l5,9 h-10 z" fill="{colour}"/>',
        "diamond": f'<path d="M{x:.1f},{y - 5.5:.1f} l5.5,5.5 l-5.5,5.5 l-5.5,-5.5 z" fill="{colour}"/>',
    }
    return shapes[kind]


def legend(names: Sequence[str]) -> Iterator[str]:
    """Marks with their names, at the right."""
    for i, name in enumerate(names):
        y = TOP + 12 + 21 * i
        yield mark(WIDTH - RIGHT + 20, y, i)
        yield text(WIDTH - RIGHT + 32, y + 4, name, 12, anchor="start")


class Axis:
    """A scale between the ends of an axis, linear from 0 or in powers of ten."""

    def __init__(self, values: Sequence[float], start: float, end: float, *, log: bool, zero: bool = True) -> None:
        self.start, self.end, self.log = start, end, log
        if log:
            self.least, self.most = float(floor(log10(min(values)))), float(ceil(log10(max(values))))
            self.ticks = [10.0**k for k in range(int(self.least), int(self.most) + 1)]
            return
        low, high = (0.0 if zero else min(values)), max(values)
        step = next(s for k in range(-4, 9) for s in (10.0**k, 2 * 10.0**k, 5 * 10.0**k) if (high - low) / s <= 6)
        self.least, self.most = floor(low / step) * step, ceil(high / step) * step
        self.ticks = [self.least + step * k for k in range(round((self.most - self.least) / step) + 1)]

    def __call__(self, value: float) -> float:
        """Place of a value."""
        share = ((log10(value) if self.log else value) - self.least) / (self.most - self.least)
        return self.start + share * (self.end - self.start)


def label(value: float) -> str:
    """A tick."""
    if value >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value:,.0f}" if value >= 1 and value == round(value) else f"{value:g}"


def lines(title: str, x_name: str, y_name: str, curves: Mapping[str, Points], *, log: str = "xy") -> str:
    """Curves over an axis; ``log`` names the axes in powers of ten."""
    height, bottom = 400, 350
    points = [point for curve in curves.values() for point in curve]
    across = Axis([x for x, _ in points], LEFT, WIDTH - RIGHT, log="x" in log)
    up = Axis([y for _, y in points], bottom, TOP, log="y" in log, zero=False)
    drawn = [text(LEFT, 24, title, 15, bold=True, anchor="start")]
    for tick in across.ticks:
        drawn += [rule(across(tick), bottom, across(tick), TOP), text(across(tick), bottom + 18, label(tick), 12)]
    for tick in up.ticks:
        drawn += [
            rule(LEFT, up(tick), WIDTH - RIGHT, up(tick)),
            text(LEFT - 8, up(tick) + 4, label(tick), 12, anchor="end"),
        ]
    drawn += [line(LEFT, bottom, WIDTH - RIGHT, bottom), line(LEFT, bottom, LEFT, TOP)]
    drawn += [
        text((LEFT + WIDTH - RIGHT) / 2, bottom + 40, x_name, 13),
        text(LEFT, TOP - 6, y_name, 12, anchor="start"),
    ]
    for i, curve in enumerate(curves.values()):
        at = [(across(x), up(y)) for x, y in sorted(curve)]
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        drawn.append(f'<polyline points="{way}" fill="none" stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="1.6"/>')
        drawn += [mark(x, y, i) for x, y in at]
    return picture(title, WIDTH, height, [*drawn, *legend(list(curves))])


def dots(title: str, x_name: str, rows: Mapping[str, Mapping[str, float]], *, log: bool = False) -> str:
    """A row for each case, with a mark for each series."""
    left, names = 260, list(dict.fromkeys(name for row in rows.values() for name in row))
    bottom = TOP + 8 + 23 * len(rows)
    across = Axis([x for row in rows.values() for x in row.values()], left, WIDTH - RIGHT, log=log)
    drawn = [text(12, 24, title, 15, bold=True, anchor="start")]
    for tick in across.ticks:
        drawn += [rule(across(tick), bottom, across(tick), TOP), text(across(tick), bottom + 18, label(tick), 12)]
    for i, (case, row) in enumerate(rows.items()):
        y = TOP + 15 + 23 * i
        drawn += [rule(left, y, WIDTH - RIGHT, y), text(left - 10, y + 4, case, 12, anchor="end")]
        drawn += [mark(across(value), y, names.index(name)) for name, value in row.items()]
    drawn.append(text((left + WIDTH - RIGHT) / 2, bottom + 40, x_name, 13))
    return picture(title, WIDTH, max(bottom + 52, TOP + 30 + 21 * len(names)), [*drawn, *legend(names)])


def rule(x1: float, y1: float, x2: float, y2: float) -> str:
    """A line of the grid."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#e3e7ec" stroke-width="1"/>'


def by(
    rows: Sequence[Mapping[str, str]], key: Callable[[Mapping[str, str]], str]
) -> dict[str, list[Mapping[str, str]]]:
    """Rows by what they have in common."""
    found: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def family(network: str) -> str:
    """A network without its sizes."""
    return network.partition("(")[0]


def forestcoll_times() -> str:
    """CPU time of ForestColl."""
    rows = [row for row in table("forestcoll-times") if row["order"] == "given"]
    groups = by(rows, lambda row: family(row["network"]))
    kept = {name: groups.pop(name) for name in ("dgx_a100", "mi250")}
    curves = {name: series(group, "GPUs", "sum") for name, group in kept.items()}
    return lines("An all-gather by forestcoll, without symmetry", "GPUs", "CPU seconds, verified", curves)


SIZES = {"1 KiB": 1, "32 KiB": 32, "1 MiB": 2**10, "8 MiB": 2**13, "64 MiB": 2**16, "1 GiB": 2**20}


def forestcoll_sizes() -> str:
    """Completion times of forests with different numbers of trees."""
    shown = ("k = 1", "k = 5", "k = 83, optimal", "plain, k = 83")
    rows = {row["forest"]: row for row in table("forestcoll-sizes") if row["network"] == "mi250(boxes=2)"}
    curves = {name: [(size, number(rows[name][column])) for column, size in SIZES.items()] for name in shown}
    return lines("Forests of two boxes of MI250", "size of the all-gather, KiB", "completion time, µs", curves)


def forestcoll_symmetry() -> str:
    """Mean heights with and without symmetry."""
    columns = {"by symmetry": "heights", "without": "without symmetry"}
    rows = {
        row["network"]: {name: number(row[column].partition("/")[2]) for name, column in columns.items()}
        for row in table("forestcoll-symmetry")
    }
    return dots("Mean height of ForestColl's trees", "edges", rows)


def shares(name: str, title: str) -> str:
    """Share of the bound that methods reach."""
    rows = {}
    for row in table(name):
        bound = number(row["bound"])
        methods = [method for method in row if method not in ("network", "bound")]
        rows[row["network"]] = {m: 100 * number(row[m]) / bound for m in methods if row[m] not in ("", "–")}
    return dots(title, "bandwidth, % of the bound", rows)


def teccl_search() -> str:
    """CPU time of the search."""
    ranks = {"ndv2": 8, "amd": 16}
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in table("teccl-search"):
        kind, sizes = family(row["network"]), [int(n) for n in re.findall(r"\d+", row["network"].partition("(")[2])]
        size = ranks[kind] * sizes[0] if kind in ranks else sizes[0] * sizes[1] * sizes[2]
        curves.setdefault(f"{kind}, {row['size']}", []).append((size, number(row["CPU s"])))
    return lines("All-gathers by teccl", "ranks", "CPU seconds", curves)


def teccl_chunks() -> str:
    """Time over the number of chunks."""
    groups = by(table("teccl-chunks"), lambda row: row["network"])
    curves = {
        name: [(x, y / series(group, "chunks", "finish, ms")[0][1]) for x, y in series(group, "chunks", "finish, ms")]
        for name, group in groups.items()
    }
    return lines(
        "An all-gather of 1 GB by teccl", "chunks for each GPU", "time over that with one chunk", curves, log=""
    )


def teccl_copies() -> str:
    """The gain from copies and short epochs."""
    rows = {}
    for row in [*table("teccl-copies"), *table("teccl-machines")]:
        least = number(row["slowest link's epoch"])
        columns = ("fastest link's epoch", "no copies, slowest", "no latency", "TACCL")
        rows[f"{row['network']}, {row['size']}"] = {c: number(row[c]) / least for c in columns if row.get(c)}
    return dots("TE-CCL's all-gathers", "time over that with copies and epochs of the slowest link", rows, log=True)


def teccl_all_to_all() -> str:
    """CPU time of all-to-alls."""
    groups = by(table("teccl-all-to-all"), lambda row: f"{family(row['network'])}, {row['size']}")
    curves = {name: series(group, "ranks", "seconds") for name, group in groups.items()}
    return lines("All-to-alls by teccl-all-to-all, at the bound", "ranks", "CPU seconds", curves)


def tacos() -> str:
    """Seconds of the synthesis."""
    names = {"schedule": "all sends", "trees": "one tree for all ranks", "stream": "a stream"}
    groups = by(table("tacos"), lambda row: row["answer"])
    curves = {names[name]: series(group, "ranks", "seconds") for name, group in groups.items()}
    curves["published C++"] = series(groups["schedule"], "ranks", "C++ seconds")
    return lines("All-gathers by tacos, at the bound", "ranks", "CPU seconds", curves)


def tacos_switches() -> str:
    """Time over the bound around switches."""
    groups = by(table("tacos-switches"), lambda row: row["network"])
    curves = {name.partition("(")[0]: series(group, "chunks", "time over cut bound") for name, group in groups.items()}
    return lines("An all-gather of 1 GiB by tacos", "chunks for each rank", "time over the bound", curves, log="")


def pccl_grids() -> str:
    """Steps of all-to-alls on grids."""
    rows = {
        row["grid"]: {m: number(row[m]) / number(row["bound"]) for m in ("pccl", "direct")}
        for row in table("pccl-grids")
    }
    return dots("All-to-alls on whole grids", "steps over the bound", rows)


def pccl_groups() -> str:
    """Steps of all-to-alls in groups."""
    rows = {
        f"{row['mesh']}, {row['groups']}": {m: number(row[m]) / number(row["bound"]) for m in ("pccl", "direct")}
        for row in table("pccl-groups")
    }
    return dots("All-to-alls in process groups", "steps over the bound of the maximum concurrent flow", rows)


def bfb_times() -> str:
    """Seconds of breadth-first broadcasts."""
    groups = by(table("bfb-times"), lambda row: family(row["network"]))
    names = {"bfb": "bfb", "bfb-lp": "bfb-lp", "table 6": "table 6"}
    curves = {
        f"{name}, {network}": series(group, "nodes", column)
        for network, group in groups.items()
        for column, name in names.items()
    }
    return lines("Breadth-first broadcasts", "nodes", "CPU seconds", curves)


def bfb_baselines() -> str:
    """Completion times against those of bfb."""
    groups = by(table("bfb-baselines"), lambda row: row["network"])
    rows = {
        f"{row['method']}, {re.sub(r'n=|offsets=|dim=', '', network)}": {
            size: number(row[size]) / number(group[0][size]) for size in ("1 MiB", "1 GiB")
        }
        for network, group in groups.items()
        for row in group[1:]
    }
    return dots("All-reduces of the paper's baselines", "time over that of bfb", rows)


def multirail_ideal() -> str:
    """Share of the ideal."""
    methods = ("blueconnect", "themis, fifo", "themis", "themis, 256 chunks", "themis-lp, rounded")
    rows = {
        row["network"]: {m: 100 * number(row["ideal"]) / number(row[m]) for m in methods}
        for row in table("multirail-ideal")
    }
    return dots("An all-reduce of 1 GiB on fabrics", "bandwidth, % of the ideal", rows)


def trees() -> str:
    """Time over the bound."""
    groups = by(table("trees"), lambda row: f"{row['network']}, {row['size']}")
    rows = {case: {row["method"]: number(row["time over bound"]) for row in group} for case, group in groups.items()}
    return dots("All-reduces by trees", "time over the bound", rows, log=True)


def mtree_gaps() -> str:
    """CPU time of mtree and gost."""
    kept = {"gost, as written": "gost", "mtree, exact=false": "mtree, exact=false", "mtree": "mtree"}
    rows: dict[str, dict[str, float]] = {}
    for row in table("mtree-gaps"):
        if row["method"] in kept:
            case = f"{row['network']}, H = {row['H']}, K = {row['K']}"
            rows.setdefault(case, {})[kept[row["method"]]] = number(row["CPU s"])
    return dots("Trees over wide-area networks", "CPU seconds", rows, log=True)


def mtree_milp() -> str:
    """Seconds of MILP (1) over the pool."""
    groups = by(table("mtree-milp"), lambda row: f"{row['network']}, K = {row['K']}")
    curves = {
        name: series([row for row in group if row["r"] == "global_min"], "trees in the pool", "CPU s, mean")
        for name, group in groups.items()
    }
    return lines("MILP (1) in 200 nodes", "trees in the pool", "CPU seconds", curves)


def scatter(title: str, x_name: str, y_name: str, groups: Mapping[str, Points], *, log: bool = True) -> str:
    """Points over equal axes, in powers of ten or from 0, with the diagonal."""
    height, bottom, right = 480, 430, WIDTH - RIGHT
    values = [value for points in groups.values() for point in points for value in point]
    across, up = Axis(values, LEFT, right, log=log), Axis(values, bottom, TOP, log=log)
    drawn = [text(LEFT, 24, title, 15, bold=True, anchor="start")]
    for tick in across.ticks:
        drawn += [rule(across(tick), bottom, across(tick), TOP), text(across(tick), bottom + 18, label(tick), 12)]
        drawn += [rule(LEFT, up(tick), right, up(tick)), text(LEFT - 8, up(tick) + 4, label(tick), 12, anchor="end")]
    drawn += [line(LEFT, bottom, right, bottom), line(LEFT, bottom, LEFT, TOP), line(LEFT, bottom, right, TOP)]
    drawn += [text((LEFT + right) / 2, bottom + 40, x_name, 13), text(LEFT, TOP - 6, y_name, 12, anchor="start")]
    drawn += [mark(across(x), up(y), i) for i, points in enumerate(groups.values()) for x, y in points]
    return picture(title, WIDTH, height, [*drawn, *legend(list(groups))])


def unseen_times() -> dict[str, list[Mapping[str, str]]]:
    """Measured times that no number was fitted on, by machine."""
    return by([row for row in table("measured") if row["fitted"] == "no"], lambda row: row["machine"])


def measured_times() -> str:
    """Predicted over measured times."""
    points = {name: series(rows, "measured us", "predicted us") for name, rows in unseen_times().items()}
    return scatter("Named MPI algorithms, sizes that were not fitted", "measured, µs", "predicted, µs", points)


def measured_errors() -> str:
    """Median error over the size."""
    curves = {
        name: [
            (number(size), 100 * median(abs(number(row["error"])) for row in some))
            for size, some in by(rows, lambda row: row["bytes"]).items()
        ]
        for name, rows in by(table("measured"), lambda row: row["machine"]).items()
    }
    return lines("Median error of predictions", "bytes", "error of the time, %", curves, log="x")


def measured_collectives() -> str:
    """Median error by machine and collective."""
    rows = {
        collective: {
            machine: 100 * median(abs(number(row["error"])) for row in some)
            for machine, some in by(group, lambda row: row["machine"]).items()
        }
        for collective, group in by(
            [row for rows in unseen_times().values() for row in rows], lambda row: row["collective"]
        ).items()
    }
    return dots("Median error on sizes that were not fitted", "error of the time, %", rows)


def emulation() -> str:
    """Measured over predicted times of emulated networks."""
    points = {
        re.sub(r", bandwidth='[^']*'|, latency='0 s'|[']", "", name): series(rows, "headers_s", "measured_s")
        for name, rows in by(table("emulation"), lambda row: row["network"]).items()
    }
    return scatter("Schedules over emulated networks", "predicted with headers, s", "measured, s", points, log=False)


def size_frontier() -> str:
    """Median gap over the size, by collective."""
    curves = {
        collective: [
            (number(size), 100 * median(number(row["gap"]) for row in some))
            for size, some in by(rows, lambda row: row["bytes"]).items()
        ]
        for collective, rows in by(table("size-frontier"), lambda row: row["collective"]).items()
    }
    return lines("Best schedules and bounds of ten machines", "bytes", "gap, median, %", curves, log="x")


CHARTS: Mapping[str, Callable[[], str]] = {
    "forestcoll-times": forestcoll_times,
    "forestcoll-sizes": forestcoll_sizes,
    "forestcoll-symmetry": forestcoll_symmetry,
    "forestcoll-allreduce": lambda: shares("forestcoll-allreduce", "An all-reduce of 1 GiB"),
    "forestcoll-allgather": lambda: shares("forestcoll-allgather", "An all-gather of 1 GiB"),
    "teccl-search": teccl_search,
    "teccl-chunks": teccl_chunks,
    "teccl-copies": teccl_copies,
    "teccl-all-to-all": teccl_all_to_all,
    "tacos": tacos,
    "tacos-switches": tacos_switches,
    "pccl-grids": pccl_grids,
    "pccl-groups": pccl_groups,
    "bfb-times": bfb_times,
    "bfb-baselines": bfb_baselines,
    "multirail-ideal": multirail_ideal,
    "trees": trees,
    "mtree-gaps": mtree_gaps,
    "mtree-milp": mtree_milp,
    "measured": measured_times,
    "measured-errors": measured_errors,
    "measured-collectives": measured_collectives,
    "emulation": emulation,
    "size-frontier": size_frontier,
}

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    for name, draw in CHARTS.items():
        (DATA / f"{name}.svg").write_text(draw(), encoding="utf-8")
