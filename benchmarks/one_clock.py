"""One completion time in every place: what solve, simulate, check, a table and a plot say of the same answer.

    python benchmarks/one_clock.py            # seven methods at 1 KiB, 1 MiB and 1 GiB
    python benchmarks/one_clock.py --smoke    # 1 MiB alone, to see that it runs

Every method is run by `cwb solve` on a torus, its file is given to `cwb simulate`, `cwb check` and `cwb plot` without
options, its record to `cwb table sizes`; the plot is the interactive page. Times are in microseconds; the last column
says whether all agree to the digits that a place writes. The exit status is 1 if some do not.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner
from cwb.cli.main import cwb

NETWORK = "torus(2,3)"
SIZES = ("1 KiB", "1 MiB", "1 GiB")
PLACES = ("solve", "simulate", "check", "table", "plot")

#: Methods with the collective that each is asked for: TE-CCL's search does not sum, MTree's trees do nothing else.
METHODS = {
    "forestcoll": "all_gather",
    "tacos": "all_gather",
    "ring": "all_gather",
    "teccl": "all_gather",
    "bfb": "all_gather",
    "pccl": "all_gather",
    "mtree": "all_reduce",
}

#: What keeps a run short.
OPTIONS = {"pccl": ["-O", "steps=2000"]}

#: The page writes nine digits.
DIGITS = 1e-8


def run(*arguments: str | Path) -> str:
    """Run a command of cwb and give what it prints on stdout."""
    done = CliRunner().invoke(cwb, [str(argument) for argument in arguments])
    if done.exit_code:
        raise RuntimeError(f"cwb {' '.join(map(str, arguments))}: {done.stderr or done.exception}")
    return done.stdout


def times(method: str, size: str, folder: Path) -> dict[str, float]:
    """Ask every place for the completion time of a method's answer."""
    file, page, ledger = folder / "s.json", folder / "s.html", folder / "records.jsonl"
    ledger.unlink(missing_ok=True)
    asked = ["--collective", METHODS[method], "--size", size, *OPTIONS.get(method, [])]
    record = json.loads(run("solve", NETWORK, "-m", method, *asked, "-q", "--json", "-o", file, "--append", ledger))
    (row,) = csv.DictReader(io.StringIO(run("table", "sizes", ledger, "-f", "csv")))
    run("plot", file, "-o", page)
    (drawn,) = re.findall(r'"completion":([0-9.e+-]+)', page.read_text())
    return {
        "solve": record["metrics"]["completion_time_s"],
        "simulate": json.loads(run("simulate", file, "--json"))["completion_time_s"],
        "check": json.loads(run("check", file, "--json"))["completion_time_s"],
        "table": float(row["completion_time_s"]),
        "plot": float(drawn),
    }


def agree(found: dict[str, float]) -> bool:
    """Check if all places report the same number, to the last bit except for the rounded digits of the plot."""
    solved = found["solve"]
    exact = all(found[place] == solved for place in PLACES if place != "plot")
    return exact and abs(found["plot"] - solved) <= DIGITS * solved


def rows(sizes: tuple[str, ...]) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Times of every method and size."""
    with TemporaryDirectory(prefix="cwb-") as folder:
        for method in METHODS:
            for size in sizes:
                yield method, size, times(method, size, Path(folder))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="1 MiB alone")
    sizes = ("1 MiB",) if parser.parse_args().smoke else SIZES
    print(f"{NETWORK}: completion time in us\n")
    print("| method | collective | size |", " | ".join(PLACES), "| |")
    print("|---|---|---" + "|---:" * len(PLACES) + "|---|")
    wrong = 0
    for method, size, found in rows(sizes):
        same = agree(found)
        wrong += not same
        cells = " | ".join(f"{found[place] * 1e6:,.9g}" for place in PLACES)
        print(f"| {method} | {METHODS[method]} | {size} | {cells} | {'same' if same else 'DIFFERENT'} |", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
