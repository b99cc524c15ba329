"""Execution on an emulated network: a namespace for each node, a pair of shaped interfaces for each directed link.

How links are shaped, and namespaces named and deleted: docs/run.md, "An emulated network". Latency is kept by the
receiver (:class:`.sockets.DelayedTransport`).
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from fractions import Fraction
from ipaddress import IPv4Network
from itertools import count
from pathlib import Path
from typing import NamedTuple

from ...core.errors import InputError, OutOfTime, Unsupported
from ...core.grouping import group_by_key
from ...core.topology import Topology
from ...core.units import RATES, amount, show
from .children import NAMESPACES, Assignment
from .local import Processes, memory_shortage
from .player import Job, Report
from .program import Program
from .sockets import Address

#: Addresses of the namespaces, two for each link: the network that RFC 2544 reserves for benchmarks.
SUBNET = IPv4Network("198.18.0.0/15")

_PORT = 5000  #: Port at which a namespace listens on each of its links.
_BURST, _QUEUE = "8kb", "400kb"  #: Bytes that pass a link at once after a pause, and bytes that may wait before it.

#: Slowest and fastest links that are emulated, in bytes per second.
LEAST_RATE, MOST_RATE = Fraction(1000), Fraction(125_000_000)

_NAME = re.compile(r"cwb-(\d+)-\d+-\d+")

_numbers = count()


class Wire(NamedTuple):
    """Directed link between two processes, by their numbers."""

    source: int
    target: int
    rate_Bps: Fraction
    latency_s: Fraction


def execute_emulated(programs: list[Program], job: Job, itemsize: int, topology: Topology) -> list[Report]:
    """Execute programs, one for each node of a network, over links with the rates and latencies of the network.

    Returns when all processes have ended and all namespaces are deleted. Unsupported is raised if this system has no
    network namespaces or does not permit them, or parallel links are used.
    """
    wires = wires_of(programs, topology)
    require_programs()
    if why := memory_shortage(programs, itemsize):
        raise OutOfTime(why)
    prefix = f"cwb-{os.getpid()}-{next(_numbers)}"
    with ExitStack() as stack:
        clear_leftovers()
        names = [f"{prefix}-{number}" for number in range(len(programs))]
        stack.callback(delete, names)
        set_up(names, wires)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="cwb-"))
        return Processes(stack, folder, assign(programs, job, wires, names)).reports()


def wires_of(programs: list[Program], topology: Topology) -> list[Wire]:
    """Return the links that programs use."""
    links = group_by_key(((link.source, link.target), link) for link in topology.links)
    wires = []
    for source, program in enumerate(programs):
        for target in sorted(program.sends):
            ends = program.name, programs[target].name
            if len(parallel := links[ends]) != 1:
                if parallel:
                    raise Unsupported(f"parallel links from {ends[0]} to {ends[1]} are not emulated")
                raise InputError(f"there is no link from {ends[0]} to {ends[1]}", place="sends")
            wires.append(Wire(source, target, parallel[0].bandwidth_Bps, parallel[0].latency_s))
    if 2 * len(wires) > SUBNET.num_addresses:
        raise Unsupported(f"{len(wires):,} links; at most {SUBNET.num_addresses // 2:,} are emulated")
    for rate in (wire.rate_Bps for wire in wires):
        if not LEAST_RATE <= rate <= MOST_RATE:
            limits = f"{show(LEAST_RATE, 'KB/s')} to {show(MOST_RATE, 'MB/s')}"
            raise InputError(f"a link has {amount(rate, RATES)} at this scale; expected {limits}", source="--scale")
    return wires


def require_programs() -> None:
    """Reject a system without network namespaces, or without the programs that make them."""
    if not sys.platform.startswith("linux"):
        raise Unsupported("networks are emulated on Linux only")
    for name in ("ip", "tc"):
        if shutil.which(name) is None:
            raise Unsupported(f"{name} is not installed, which emulates networks; it is in the package iproute2")


def addresses(number: int) -> tuple[str, str]:
    """Return the addresses of the two ends of a link."""
    first = SUBNET.network_address + 2 * number
    return str(first), str(first + 1)


def creation(names: list[str], wires: list[Wire]) -> list[str]:
    """Return the lines for ``ip`` that make namespaces, and pairs of interfaces between them."""
    pairs = enumerate((names[wire.source], names[wire.target]) for wire in wires)
    links = [f"link add s{number} netns {a} type veth peer name r{number} netns {b}" for number, (a, b) in pairs]
    return [*(f"netns add {name}" for name in names), *links]


def configuration(node: int, wires: list[Wire]) -> tuple[list[str], list[str]]:
    """Return the lines for ``ip`` and for ``tc`` in the namespace of a node."""
    interfaces, shapes = [], []
    for number, wire in enumerate(wires):
        if node in (wire.source, wire.target):
            sends = node == wire.source
            name, address = f"{'s' if sends else 'r'}{number}", addresses(number)[not sends]
            interfaces += [f"addr add {address}/31 dev {name}", f"link set {name} up"]
            if sends:
                shapes.append(
                    f"qdisc add dev {name} root tbf rate {int(wire.rate_Bps * 8)}bit burst {_BURST} limit {_QUEUE}"
                )
    return interfaces, shapes


def set_up(names: list[str], wires: list[Wire]) -> None:
    """Make namespaces and the interfaces between them."""
    _run(["ip"], creation(names, wires))
    for node, name in enumerate(names):
        interfaces, shapes = configuration(node, wires)
        _run(["ip", "-n", name], interfaces)
        _run(["tc", "-n", name], shapes)


def assign(programs: list[Program], job: Job, wires: list[Wire], names: list[str]) -> list[Assignment]:
    """Return the work of every process: it listens on links to it, and connects over links from it."""
    listens: list[list[Address]] = [[] for _ in programs]
    targets: list[dict[int, Address]] = [{} for _ in programs]
    latency: list[dict[int, float]] = [{} for _ in programs]
    for number, wire in enumerate(wires):
        address = addresses(number)[1], _PORT
        listens[wire.target].append(address)
        targets[wire.source][wire.target] = address
        latency[wire.target][wire.source] = float(wire.latency_s)
    return [
        Assignment(number, program, job, listens[number], targets[number], names[number], latency[number])
        for number, program in enumerate(programs)
    ]


def clear_leftovers() -> None:
    """Delete namespaces of processes that were killed."""
    matches = [match for each in sorted(Path(NAMESPACES).glob("cwb-*")) if (match := _NAME.fullmatch(each.name))]
    delete([match[0] for match in matches if not Path("/proc", match[1]).exists()])


def delete(names: list[str]) -> None:
    """Delete namespaces, with the interfaces in them; what does not exist is left out.

    An interruption ends the waiting, not the deletion.
    """
    if names:
        ip = _start(["ip", "-force"], subprocess.DEVNULL)
        ip.communicate(_text([f"netns del {name}" for name in names]))


def _run(command: list[str], lines: list[str]) -> None:
    process = _start(command, subprocess.PIPE)
    _, errors = process.communicate(_text(lines))
    if process.returncode:
        reasons = errors.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise Unsupported(f"no network can be emulated here: {command[0]}: {reasons[0]}")


def _start(command: list[str], errors: int) -> subprocess.Popen[bytes]:
    """Start a program that reads its work line by line, out of reach of a Ctrl-C."""
    return subprocess.Popen(
        [*command, "-batch", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,
    )


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
