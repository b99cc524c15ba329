"""The importers of machines on random changes of right files: an instance, or one line that says what is wrong.

    python benchmarks/fuzz_machines.py --seconds 600                     # every importer for ten minutes
    python benchmarks/fuzz_machines.py --seconds 600 --reader nvidia-smi --seed 7
    python benchmarks/fuzz_machines.py --smoke

Changes are of bytes (flipped, removed, repeated, cut), of tokens (numbers made huge, negative or no numbers; words
exchanged), of lines, and parts of other files. Whatever is raised beside an InputError of one line, takes more than
five seconds of a processor, or needs more than 1 GB, is a fault: it is printed with the file that shows it, and the
exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from time import perf_counter, process_time

from cwb.core.errors import InputError
from cwb.exchange.astra import import_astra
from cwb.exchange.box import Layout, Times
from cwb.exchange.graph_network import Defaults, import_wan
from cwb.exchange.libra import LibraFiles, import_libra
from cwb.exchange.link_rates import Rates, Rating
from cwb.exchange.links_csv import import_links
from cwb.exchange.nccl_topology import import_nccl
from cwb.exchange.smi import import_nvidia_smi, import_rocm_smi
from cwb.exchange.taccl import import_taccl
from cwb.exchange.teccl import import_teccl

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "exchange"))

from machine_files import cube_cell, gpu_address, nccl_system, rocm_topo, smi_links, smi_topo

SLOW_S, MEMORY_BYTES = 5.0, 10**9

SWITCH = '<nvlink target="0000:f0:00.0" count="18" tclass="0x068000"/><c2c bw="20000" count="10"/>'
GRAPH = (
    '<graphs version="1"><graph id="0" pattern="4" nchannels="1" speedintra="12" speedinter="10"><channel>'
    '<net dev="0"/><gpu dev="0"/><gpu dev="A"/><net dev="0"/></channel></graph></graphs>'
)
TACCL = {"name": "NDv2_1MB", "gpus_per_node": 8, "nics_per_node": 1, "alpha": 0.5, "node_betas_list": [32, 64],
         "remote_alpha": 3, "remote_beta": 128}  # fmt: skip
MATRIX = {"name": "two_1MB", "gpus_per_node": 2, "alpha": 30, "links": [[0, 1], [1, 0]], "betas": [[0, 100], [9, 0]]}
SKETCH = {"nnodes": 3, "internode_sketch": {"internode_conn": {"0": [1], "2": [3, 4]}}}
TECCL = {"TopologyParams": {"name": "NDv2", "chassis": 2, "chunk_size": 0.001}, "InstanceParams": {"num_chunks": 2}}
ASTRA = "topology: [ Ring, Switch ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 200.0, 50 ]\nlatency: [ 50.0, 2e3 ]\n"
NODE_LINK = {"nodes": [{"id": 0, "pos": [2, 48]}, {"id": 1, "pos": [13, 52]}], "edges": [{"source": 0, "target": 1}]}
GML = 'graph [ node [ id 0 label "a" lat 48.8 lon 2.3 ] node [ id 1 lat 1 lon 2 ] edge [ source 0 target 1 ] ]'
GRAPHML = (
    '<graphml><key id="d" attr.name="LinkSpeedRaw"/><graph><node id="0"/><node id="1"/>'
    '<edge source="0" target="1"><data key="d">1e9</data></edge></graph></graphml>'
)
CSV = (
    "source,target,bandwidth,latency,count,bidirectional\n"
    "a,leaf,25 GB/s,1 us,2,true\nleaf,b,100/3 GB/s,,,\nb,a,,0 s,1,\n"
)
NICS = ["NIC0", "NIC1"]
LAYOUTS = (
    Layout(),
    Layout(pcie=True),
    Layout(boxes=3, nic=Times.read("400 Gb/s"), rails=True),
    Layout(boxes=2, nic=Times.read("4 x 100 Gb/s")),
)
TOLD = (Rates(), Rates(Rating.NOMINAL, "a100"), Rates(pcie_only=True))
FAST = Fraction(10**10)

#: Reader: right files, and what reads one with the options that a number chooses.
READERS: dict[str, tuple[list[str], Callable[[Path, int], object]]] = {
    "nccl": (
        [
            nccl_system(4, lambda i: SWITCH),
            nccl_system(2, lambda i: ""),
            nccl_system(2, lambda i: "").replace("<gpu", "<x").replace("</gpu", "</x").replace("nic>", "y>"),
            nccl_system(
                2, lambda i: f'<xgmi target="{gpu_address(1 - i)}" count="1" tclass="0x0380"/>', about='gcn="910"'
            ),
            GRAPH,
        ],
        lambda path, n: import_nccl(path, LAYOUTS[n % 4], TOLD[n % 3]),
    ),
    "nvidia-smi": (
        [
            smi_topo(lambda i, j: "NV6", 4, NICS, lambda i, k: "PIX" if i // 2 == k else "SYS"),
            smi_topo(cube_cell, 8, space="   "),
            smi_topo(lambda i, j: "NV18", 3) + smi_links(3, 18, "26.562", inactive=1),
            smi_topo(lambda i, j: "PIX" if i // 2 == j // 2 else "SYS", 4) + "NIC Legend:\n\n  NIC0: mlx5_0\n",
        ],
        lambda path, n: import_nvidia_smi(
            [path],
            LAYOUTS[n % 4],
            Rates(
                list(Rating)[n % 2], *((None, None), ("h100", None), (None, Times(18, FAST)))[n % 3], *[FAST] * (n % 3)
            ),
        ),
    ),
    "rocm-smi": (
        [
            rocm_topo(4, lambda i, j: "XGMI", lambda i, j: 15 if (i - j) % 4 in (1, 3) else 30, lambda i: 0),
            rocm_topo(4, lambda i, j: "PCIE", lambda i, j: 40, lambda i: i // 2),
        ],
        lambda path, n: import_rocm_smi(path, LAYOUTS[n % 4], Rates(Rating.NOMINAL, "mi100", None, FAST, FAST)),
    ),
    "astra": (
        [ASTRA, json.dumps({"topology": ["Ring"], "npus_count": [2], "bandwidth": [0.1], "latency": [0]})],
        lambda path, n: import_astra(path, fabric=n % 2 == 0),
    ),
    "taccl": (
        [json.dumps(TACCL), json.dumps(MATRIX)],
        lambda path, n: import_taccl(path, sketch=_beside(path, SKETCH) if n % 2 else None),
    ),
    "taccl-sketch": ([json.dumps(SKETCH)], lambda path, n: import_taccl(_beside(path, TACCL), sketch=path)),
    "teccl": ([json.dumps(TECCL)], lambda path, n: import_teccl(path, as_drawn=n % 2 == 0)),
    "csv": ([CSV], lambda path, n: import_links(path, Defaults("1 GB/s" if n % 2 else None, switches=("l*",)))),
    "wan-json": ([json.dumps(NODE_LINK)], lambda path, n: _wan(path, ".json")),
    "wan-gml": ([GML], lambda path, n: _wan(path, ".gml")),
    "wan-graphml": ([GRAPHML], lambda path, n: _wan(path, ".graphml")),
    "libra": (
        ["Topology: [ Ring, Switch ]\nNpusCount: [ 4, 2 ]\nCostDimension: [ 0, 1 ]\n"],
        lambda path, n: import_libra(LibraFiles(path, path, path, path)),
    ),
}

TOKENS = (
    *("0", "-1", "1e999", "NaN", "9" * 400, "0x7fffffffffffffff", "1" * 19, "\x00", "\ufeff", "é", "²", "\u2028", "\t",
        ""),
    *("NV999", "NV0", "X", "SYS", "GPU99999", "GPU0", "[", "]", "{", "}", '"', "<", ">", "&a;", "&#0;", "&#x1F600;",
        "\x1b[4m"),
    *("<!DOCTYPE a [<!ENTITY a 'b'>]>", "<!--", "<?xml version='1.1'?>", "*a", "&a", "!!python/object:os.system",
        "---"),
    *("null", "true", "[[]]", "GB/s", "1/0 GB/s", "inf", "-0", "1_000", "١", "%s", "../..", "\r", "\n\n", "a" * 5000),
)  # fmt: skip


def main() -> int:
    """Fuzz the readers that were asked for, and say what they made of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each reader")
    parser.add_argument("--reader", choices=READERS, action="append", help="all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="a fifth of a second for each")
    options = parser.parse_args()
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in options.reader or READERS:
            seconds = 0.2 if options.smoke else options.seconds
            faults += fuzz(name, seconds, random.Random(f"{options.seed} {name}"), Path(folder))  # noqa: S311
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"largest resident memory: {peak / 1e6:,.0f} MB")
    return int(faults > 0 or peak > MEMORY_BYTES)


def fuzz(name: str, seconds: float, chance: random.Random, folder: Path) -> int:
    """Read changed files for some seconds; return the number of faults."""
    right, read = READERS[name]
    began, slowest = perf_counter(), 0.0
    outcomes: Counter[str] = Counter()
    told: set[str] = set()
    path = folder / "in.json"  # JSON is YAML too; texts and XML do not care
    while perf_counter() - began < seconds:
        content = change_text(chance.choice(right), chance, right)
        path = folder / ("in.json" if content[:1] in (b"{", b"[") else "in.txt")
        path.write_bytes(content)
        start, number = process_time(), chance.randrange(12)
        try:
            read(path, number)
            outcome = "instance"
        except InputError as error:
            outcome = "refused"
            told.add(re.sub(r"\d+|'.*'", "", error.problem)[:40])
            if "\n" in str(error) or len(str(error)) > 1000 + len(str(path)):
                outcome = f"a message of {len(str(error)):,} characters or several lines"
        except Exception as error:
            outcome = f"{type(error).__name__}: {str(error)[:200]}"
        took = process_time() - start
        slowest = max(slowest, took)
        if took > SLOW_S:
            outcome = f"{took:.1f} s"
        if outcome not in ("instance", "refused"):
            kept = Path(tempfile.mkstemp(prefix=f"cwb-fuzz-{name}-", suffix=path.suffix)[1])
            kept.write_bytes(content)
            print(f"{name}, options {number}: {outcome}: {kept}", file=sys.stderr)
            outcome = "fault"
        outcomes[outcome] += 1
    counts = ", ".join(f"{outcomes[kind]:,} {kind}" for kind in ("instance", "refused", "fault"))
    print(f"{name}: {counts}; {len(told)} different messages; slowest {slowest * 1000:.0f} ms", flush=True)
    return outcomes["fault"]


def change_text(text: str, chance: random.Random, others: list[str]) -> bytes:
    """A text with a few changes."""
    for _ in range(chance.choice((1, 1, 1, 1, 1, 2, 3, 8))):
        spans = [m.span() for m in re.finditer(r"[0-9.]+|[A-Za-z_]+|[^\sA-Za-z0-9]", text)] or [(0, 0)]
        begin, end = chance.choice(spans)
        match chance.randrange(9):
            case 0 | 1:
                text = text[:begin] + chance.choice(TOKENS) + text[end:]
            case 2:
                one, other = chance.choice(spans), chance.choice(spans)
                text = text[:begin] + text[slice(*chance.choice((one, other)))] + text[end:]
            case 3:
                text = text[:begin] + text[begin:end] * chance.choice((2, 3, 50)) + text[end:]
            case 4:
                text = text[:begin] + text[chance.choice(spans)[1] :]
            case 5:
                lines = text.splitlines(keepends=True)
                chance.shuffle(lines) if chance.random() < 0.2 else lines.insert(0, chance.choice(lines or [""]))
                text = "".join(lines)
            case 6:
                text = text[: chance.randrange(len(text) + 1)]
            case 7:
                piece = chance.choice(others)
                start = chance.randrange(len(piece))
                text = text[:begin] + piece[start : start + chance.randrange(200)] + text[begin:]
            case _:
                text = text[:begin] + text[begin : begin + 40] * chance.choice((2, 200)) + text[begin:]
        text = text[: 2**20]
    raw = bytearray(text.encode())
    while raw and chance.random() < 0.2:
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    return raw.decode("utf-8", "ignore").encode("utf-16") if chance.random() < 0.01 else bytes(raw)


def _beside(path: Path, data: object) -> Path:
    other = path.with_name("beside.json")
    if not other.exists() or other.read_text() != json.dumps(data):
        other.write_text(json.dumps(data))
    return other


def _wan(path: Path, suffix: str) -> object:
    named = path.with_name(f"in{suffix}")
    if named != path:
        named.write_bytes(path.read_bytes())
    return import_wan(str(named), Defaults(bandwidth="1 Gb/s", latency="1 ms"))


if __name__ == "__main__":
    sys.exit(main())
