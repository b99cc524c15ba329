"""Machines in a folder of foreign files: what each becomes, or what it asks for.

    python benchmarks/machines.py --samples FOLDER
    python benchmarks/machines.py --smoke

Every file below the folder whose name or content is that of a format of ``cwb import`` is imported as it is; where it
asks for something, once more with an answer. Printed are nodes, links, and the rates that links have. A file that is
neither imported nor asks is a fault; with any, the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from cwb.core.errors import InputError
from cwb.core.topology import Topology
from cwb.core.units import show
from cwb.exchange.astra import import_astra
from cwb.exchange.box import Layout, Times
from cwb.exchange.link_rates import Rates, Rating
from cwb.exchange.nccl_topology import import_nccl
from cwb.exchange.smi import import_nvidia_smi, import_rocm_smi
from cwb.exchange.taccl import import_taccl
from cwb.instances.build import build_topology
from cwb.instances.loader import network_from_text
from cwb.instances.schema import TopologyFile
from fuzz_machines import READERS

FAST = Fraction(24 * 10**9)
BOXES = Layout(boxes=2, nic=Times.read("200 Gb/s"), rails=True)
EFFECTIVE = Rating.EFFECTIVE


def _logical(path: Path) -> dict[str, Any]:
    dims = path.read_text(encoding="utf-8").count(",") + 1
    return import_astra(path, blocks=["Ring"] * dims, bandwidth=["50 GB/s"] * dims, latency=["1 us"] * dims)


#: What a file begins with or contains, and ways to read it, the first without any answer.
KINDS: dict[str, tuple[Callable[[str], bool], list[tuple[str, Callable[[Path], dict[str, Any]]]]]] = {
    "NCCL topology": (
        lambda text: "<system" in text and "<cpu" in text,
        [
            ("as it is", lambda path: import_nccl(path, Layout(), Rates())),
            ("--generation a100", lambda path: import_nccl(path, Layout(), Rates(generation="a100"))),
            ("two boxes", lambda path: import_nccl(path, BOXES, Rates(generation="a100"))),
        ],
    ),
    "NCCL graph": (
        lambda text: "<graphs" in text,
        [("as it is", lambda path: import_nccl(path, Layout(), Rates()))],
    ),
    "nvidia-smi": (
        lambda text: "GPU0" in text and "CPU Affinity" in text,
        [
            ("as it is", lambda path: import_nvidia_smi([path], Layout(), Rates())),
            ("--generation h100", lambda path: import_nvidia_smi([path], Layout(), Rates(generation="h100"))),
            ("--pcie", lambda path: import_nvidia_smi([path], Layout(), Rates(EFFECTIVE, "h100", None, FAST, FAST))),
        ],
    ),
    "rocm-smi": (
        lambda text: "Link Type between two GPUs" in text,
        [
            ("as it is", lambda path: import_rocm_smi(path, Layout(), Rates())),
            ("--generation mi300x", lambda path: import_rocm_smi(path, Layout(), Rates(generation="mi300x"))),
            ("--pcie", lambda path: import_rocm_smi(path, Layout(), Rates(EFFECTIVE, "mi300x", None, FAST, FAST))),
        ],
    ),
    "ASTRA-sim": (
        lambda text: "npus_count" in text or "logical-dims" in text,
        [
            ("as it is", import_astra),
            ("with rates", _logical),
        ],
    ),
    "TACCL": (
        lambda text: "node_betas_list" in text or '"betas"' in text,
        [("as it is", import_taccl), ("--size", lambda path: import_taccl(path, size="1 MiB"))],
    ),
}


def main() -> int:
    """Import what is in the folder that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--samples", type=Path, help="a folder; folders in it are searched too")
    which.add_argument("--smoke", action="store_true", help="the right files of fuzz_machines.py")
    options = parser.parse_args()
    if not options.smoke:
        return import_folder(options.samples)
    with tempfile.TemporaryDirectory() as made:
        for name, (texts, _) in READERS.items():
            for i, text in enumerate(texts):
                (Path(made) / f"{name}-{i}.{'json' if text[0] == '{' else 'txt'}").write_text(text)
        return import_folder(Path(made))


def import_folder(folder: Path) -> int:
    """Import what is in a folder, and say what it was."""
    outcomes: Counter[str] = Counter()
    for path, kind in _known_files(folder):
        outcome = "fault"
        for how, read in KINDS[kind][1]:
            try:
                said, outcome = _shape(read(path)), "imported"
            except InputError as error:
                said = str(error).removeprefix(f"{path}: ")
                outcome = outcome if outcome == "imported" else "asks" if "expected" in said else "fault"
            print(f"{path.relative_to(folder)} ({kind}, {how}): {said}")
            if outcome == "imported" and how != "--generation a100":
                continue
        outcomes[outcome] += 1
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "no file of a known format")
    return int(outcomes["fault"] > 0 or not outcomes)


def _known_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Files of known formats."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size < 2**22:
            text = path.read_text(encoding="utf-8", errors="ignore")
            for kind, (is_it, _) in KINDS.items():
                if is_it(text):
                    yield path, kind
                    break


def _shape(data: dict[str, Any]) -> str:
    """Number of ranks, switches and links, and rates of the links."""
    network = data["network"]
    built = network_from_text(network) if isinstance(network, str) else build_topology(TopologyFile(**network))
    assert isinstance(built, Topology)
    rates = Counter(link.bandwidth_Bps for link in built.links)
    told = ", ".join(f"{count} x {show(rate, 'GB/s')}" for rate, count in sorted(rates.items()))
    return f"{len(built.ranks)} ranks, {len(built.switches)} switches, {told}"


if __name__ == "__main__":
    sys.exit(main())
