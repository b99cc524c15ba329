"""Defects that cwb once had, each with a case of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random
from xml.etree import ElementTree

import numpy as np
from cwb.benchmarks.adversary import client, makers, trees
from cwb.benchmarks.adversary.campaigns import (
    epochs,
    extremes,
    files,
    finder,
    relays,
    repairs,
    simulate,
    stragglers,
    studies,
    synthesis,
    training,
    verifier,
    wan,
)
from cwb.benchmarks.adversary.fault import Campaign, Fault
from cwb.benchmarks.adversary.networks import Data, instance
from cwb.benchmarks.adversary.replay import Send, faults_in_epochs
from cwb.core import bounds
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks
from cwb.core.timing import Semantics, Timing
from cwb.core.topology import Link, Node, Topology

#: What was wrong, by number.
DEFECTS: Mapping[int, str] = {
    1: "`mtree`: floors of rates rounded up to the common divisor of the capacities",
    2: "`mtree`: no end without a time limit, with a floor and a height",
    3: "`mtree`: right answers refused where the two directions of a link differ",
    4: "`mtree`: bounds that nobody recomputes",
    5: "`teccl-milp`: feasible instances called infeasible with `objective=late`",
    6: "`teccl-milp`: wrong schedules and optima with a bandwidth that varies",
    7: "`teccl-lp`: wrong paths through switches that do not copy",
    8: "verifier: sums in a switch without a buffer accepted on a grid of epochs",
    9: "verifier: bounds of split chunks that are never copied, for schedules that copy",
    10: "verifier: maximum flows over time wrap at 2³¹",
    11: "verifier: LIBRA's certificates prove too much when their lines are scaled",
    12: "`tacos`: optima of ticks that were rounded",
    13: "errors inside and warnings at extreme numbers",
    14: "generator expressions of any size, without a word and without a limit",
    15: "`pccl`: bounds that are not rounded up to whole steps of equal chunks",
    16: "WAN methods: the bound of the smaller direction claimed where directions differ",
    17: "`teccl-milp`: copies of several hyper-edges merged on a shared link",
    18: "`tacos`: `variant=paper` ignores the ports of switches",
    19: "simulators: the order of requests depends on the unit",
    20: "`find-topology`: rows misjudged, networks beaten, bandwidths that are no decimals",
    21: "tables: means beside values of one seed",
    22: "`teccl-milp`: sums that it leaves out, told as optima",
    23: "verifier: two copies in a limited switch that does not copy counted as one",
    24: "`teccl-milp`: a rank that only passes on gets a chunk once at most, reported as optimal or infeasible",
    25: "`teccl-lp`, `teccl-astar`: late all-reduces taken, and not summed",
    26: "`resilience`: all links of a pair get the rate of the last one, and so does the bound",
    27: "`resilience`: unbalanced switches called cut off, and symmetries that move the root",
    28: "`--sensitivity`: directions that differ cost the answer",
    29: "methods of wide-area networks: parallel links paired by bandwidth alone",
    30: "`expert-placement/slots`: a pool cut off in silence at the published rule's load",
    31: "`repair`: schedules on switches that the verifier rejects",
    32: "`straggler`: the round of one switch, the ways of another",
    33: "`pccl`: sums that come to a switch with a limit again, added twice",
    34: "a plug-in file that asks for a model of the package breaks every run",
    35: "control characters of names in pictures, which are no XML then",
    36: "`cwb reproduce` ignores SIGTERM in the topology finder",
    37: "columns of an `.npz` file expanded although they cannot be right",
}


def _both(links: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [arc for a, b, rate in links for arc in ((a, b, rate), (b, a, rate))]


def _wan(links: list[tuple[int, int, int]], unit: str) -> tuple[Data, dict[tuple[int, int], int]]:
    rates = {pair: rate for a, b, rate in links for pair in ((a, b), (b, a))}
    arcs = [(str(a), str(b), f"{rate} {unit}") for (a, b), rate in rates.items()]
    names = [*map(str, range(1 + max(max(pair) for pair in rates)))]
    return instance(names, arcs, "all_reduce", "1 GB"), rates


def floor_of_a_ring() -> list[Fault]:
    """Three trees of 5 Gb/s."""
    data, rates = _wan([(0, 1, 10), (1, 2, 10), (0, 2, 10)], "Gb/s")
    return wan.check_limited_trees(data, rates, "Gb/s", defect=1, floor=1)


def floor_of_a_triangle() -> list[Fault]:
    """Rates of 60, 60 and 30 Mb/s with a floor of 10."""
    data, rates = _wan([(0, 1, 60), (0, 2, 60), (1, 2, 30)], "Mb/s")
    return wan.check_limited_trees(data, rates, "Mb/s", defect=1, floor=10)


def endless_trees() -> list[Fault]:
    """Four sites, trees of height 2 with a floor: it has to end."""
    data, rates = _wan([(0, 1, 40), (0, 2, 30), (1, 2, 90), (0, 3, 40), (1, 3, 60), (2, 3, 50)], "Mb/s")
    return wan.check_limited_trees(data, rates, "Mb/s", defect=2, height=2, floor=10)


def two_sites() -> list[Fault]:
    """3 GB/s one way and 4 GB/s the other."""
    rates = {(0, 1): 3, (1, 0): 4}
    data = instance(["0", "1"], [("0", "1", "3 GB/s"), ("1", "0", "4 GB/s")], "all_reduce", "1 GB")
    return wan.asymmetric(data, trees.all_reduce_by_pairs(2, rates), "mtree", 3, "GB/s")


def few_trees_recomputed() -> list[Fault]:
    """A bound of at most two trees."""
    return wan.check_recomputation(_wan([(0, 1, 60), (0, 2, 60), (1, 2, 30)], "Mb/s")[0], 4, trees=2)


def low_trees_recomputed() -> list[Fault]:
    """A bound of trees of height 1."""
    links = [(0, 1, 40), (0, 2, 30), (1, 2, 90), (0, 3, 40), (1, 3, 60), (2, 3, 50)]
    return wan.check_recomputation(_wan(links, "Mb/s")[0], 4, height=1)


def _star(count: int, rate: str, kind: str, size: str, *, buffer: str | None, multicast: bool) -> Data:
    arcs = [arc for i in range(count) for arc in ((str(i), "s", rate), ("s", str(i), rate))]
    sort = {"multicast": multicast, **({} if buffer is None else {"buffer": buffer})}
    return instance([*map(str, range(count)), "s"], arcs, kind, size, {"s": sort})


def late_on_a_star() -> list[Fault]:
    """A broadcast through a switch, over links with a latency, takes 5 epochs."""
    data = _star(3, "1 B/s", "broadcast", "1 B", buffer=None, multicast=False)
    data["network"]["links"] = [{**link, "latency": "0.000001 s"} for link in data["network"]["links"]]
    options = {"epoch_duration": "1 s", "timing": "store-and-forward", "objective": "late"}
    return epochs.milp(data, Fraction(1), options, [], 5)


def link_down() -> list[Fault]:
    """The second link of a line is down in epoch 1 of half a second; a chunk takes two epochs."""
    data = instance(["0", "1", "2"], _both([("0", "1", "1 B/s"), ("1", "2", "1 B/s")]), "broadcast", "1 B")
    changes = [{"source": "1", "target": "2", "epochs": [1, 2], "factor": "0"}]
    options = {"epoch_duration": "0.5 s", "timing": "store-and-forward", "bandwidth": changes}
    return epochs.milp(data, Fraction(1, 2), options, changes, 6)


def split_through_a_switch() -> list[Fault]:
    """A star of 1, 2 and 2 B/s, in epochs of one second; the switch stores and does not copy."""
    links = _both([("0", "s", "1 B/s"), ("1", "s", "2 B/s"), ("2", "s", "2 B/s")])
    found = []
    for kind, size in (("broadcast", "1 B"), ("all_gather", "3 B")):
        for sort in ({}, {"buffer": "0 B"}):
            data = instance(["0", "1", "2", "s"], links, kind, size, {"s": sort})
            found += epochs.fluid(data, Fraction(1), [], 7)
            data["network"]["links"] = [
                {**link, "bandwidth": link["bandwidth"].replace(" B/s", " GB/s")} for link in data["network"]["links"]
            ]
            data["collective"]["size"] = size.replace(" B", " GB")
            found += client.conduct(client.solve(data, "teccl-lp", time_limit_s=20), 7)
    return found


def sums_in_a_switch() -> list[Fault]:
    """Ranks send with reduce into a switch without a buffer at the same index, and it copies the sum."""
    seeds = range(1000)
    candidates = (makers.in_switch(Random(s)) for s in seeds)  # noqa: S311
    made = next(m for m in candidates if m.instance.network.nodes[-1].buffer_bytes == 0)
    wrong = faults_in_epochs(made.instance, made.chunks, made.sends)
    verdict, crash = client.verdict(made.instance, made.to_schedule(), bounds.PartitionCertificate(((0,), (1,))))
    if crash or (verdict is not None and verdict.ok and wrong):
        return [Fault("wrong schedule accepted", "sums in a switch", crash or "right", wrong[0], 8)]
    return []


def _line(count: int, rate: Fraction, chunks: int, *, fluid: bool) -> makers.MadeSchedule:
    """A broadcast down a one-way line, chunk after chunk, in epochs of a second."""
    topology = Topology(
        tuple(Node(str(i)) for i in range(count)), tuple(Link(str(i), str(i + 1), rate) for i in range(count - 1))
    )
    demand = Demand(Collective.BROADCAST, Fraction(chunks), chunks)
    timing = Timing(Semantics.STORE_AND_FORWARD, Fraction(1), fluid)
    ones, zeros = np.ones(chunks, dtype=np.int64), np.zeros(chunks, dtype=np.int64)
    moved = Chunks(ones, Fraction(1), ((0,), tuple(range(count))), zeros, ones, zeros.astype(np.bool_))
    sends = [Send(c, i, i + 1, False, (i,), c + i, c + i + 1) for c in range(chunks) for i in range(count - 1)]
    return makers.MadeSchedule(Instance("line", topology, demand, timing=timing), moved, sends, Fraction(1))


def copies_of_split_chunks() -> list[Fault]:
    """Four chunks down a line of three end at 5 s."""
    made = _line(3, Fraction(1), 4, fluid=True)
    cut = bounds.EpochCut((1, 2), None, 0)
    return verifier.check_proof(made, made.to_schedule(), cut, Fraction(made.ends), 9)


def flow_of_a_fast_link() -> list[Fault]:
    """A link that starts 2^32 chunks in an epoch."""
    made = _line(2, Fraction(2**32), 1, fluid=False)
    flow = bounds.EpochFlow(1, 200)
    return verifier.check_proof(made, made.to_schedule(), flow, Fraction(made.ends), 10)


def scaled_multipliers() -> list[Fault]:
    """Lines times what makes their products vanish or overflow."""
    found = []
    for index in (0, 2):
        certificate = training.plan_with_certificate(index).certificate
        for factor in (1e-200, 1e160, 2.36e-159):
            found += training.proves(index, training.scale_lines(certificate, factor), f"all lines times {factor!r}")
    return found


def rounded_ticks() -> list[Fault]:
    """Two fast ways of 10^12 B/s around a link of 10^-9 B/s."""
    links = [("0", "1", "1000000000000 B/s"), ("1", "2", "1000000000000 B/s"), ("0", "2", "0.000000001 B/s")]
    return synthesis.fastest(instance(["0", "1", "2"], _both(links), "all_gather", "3 B"), 12, {})


def _extreme(links: list[tuple[str, str, str]], size: str, name: str, kind: str, **options: str) -> list[Fault]:
    names = sorted({end for link in links for end in link[:2]})
    late = [(*arc, "1 us") for arc in _both(links)]
    return extremes.ask_method(instance(names, late, kind, size), name, options)


def wide_table() -> list[Fault]:
    """3 TB/s beside 1 kB/s, with the epoch of the slow link."""
    links = [("0", "1", "3 TB/s"), ("1", "2", "1 kB/s")]
    return _extreme(links, "1 MB", "teccl", "all_gather", epoch="slow")


def prime_rates() -> list[Fault]:
    """Large primes, and the reciprocal of one."""
    links = [("0", "1", "999999937 B/s"), ("1", "2", "999999929 B/s"), ("0", "2", "1/999999893 B/s")]
    return extremes.ask_method(instance(["0", "1", "2"], _both(links), "all_gather", "1 GB"), "forestcoll", {})


def tiny_sizes() -> list[Fault]:
    """10^-30 B."""
    links = [("0", "1", "10 GB/s"), ("1", "2", "10 GB/s"), ("0", "2", "10 GB/s")]
    return _extreme(links, "1e-30 B", "mtree", "all_reduce") + _extreme(links, "1e-30 B", "teccl", "all_gather")


def wide_ratio() -> list[Fault]:
    """10^12 and 10^-9 B/s."""
    links = [("0", "1", "1000000000000 B/s"), ("1", "2", "0.000000001 B/s")]
    return _extreme(links, "3 B", "teccl-milp", "all_gather", epoch="slow")


def disconnected_pairs() -> list[Fault]:
    """Two pairs."""
    return _extreme([("0", "1", "10 GB/s"), ("2", "3", "10 GB/s")], "3 MB", "tacos", "all_gather")


def bound_in_words() -> list[Fault]:
    """A schedule file whose claimed bound is a text."""
    made = _line(2, Fraction(1), 1, fluid=False)
    file = client.folder() / "words.json"
    from cwb.schedules.files import write_schedule

    write_schedule(file, made.instance, made.to_schedule(), None, {"bound_s": "a lot"})
    status, out, err = client.command("check", str(file))
    if status == 0:
        return [Fault("claim not read", "cwb check of extra.bound_s = 'a lot'", out.strip(), "a bound is a number", 13)]
    return (
        [Fault("internal error", "cwb check of extra.bound_s = 'a lot'", err, "exit status 2", 13)]
        if status == 1
        else []
    )


def a_million_nodes() -> list[Fault]:
    """Load a million nodes within a second or get an error; the alarm of the case checks it."""
    words = (
        "solve",
        "--model",
        "ring",
        "torus(1000,1000)",
        "--collective",
        "all_gather",
        "--size",
        "1 GB",
        "--time-limit",
        "1 s",
    )
    status, out, err = client.command(*words)
    said = "1,000,000" in out + err or "4,000,000" in out + err
    if status not in (2, 4, 7) or not said:
        text = f"exit status {status}, {err.strip()[-200:]!r}"
        return [Fault("loads in silence", client.command_text(words), text, "the number of nodes, and an end", 14)]
    return []


def three_equal_steps() -> list[Fault]:
    """An instance that is shipped: three steps, and a bound of two and a third."""
    import cwb
    from cwb.harness import Request, run

    solved = client.Reply("cwb solve --model pccl pccl-figure-6-13 -O steps=2000")
    with client.watch_errors(solved):
        done = run(cwb.load("pccl-figure-6-13"), Request("pccl", options={"steps": 2000}, time_limit_s=20))
        solved.instance, solved.record, solved.answer = done.instance, done.record, done.answer
    if not solved.has_answer:
        return client.conduct(solved, 15)
    return client.conduct(solved, 15) + synthesis.whole_steps(solved, Fraction(solved.record.objective) / 3)


def ring_of_two_rates() -> list[Fault]:
    """20 MB/s one way round a ring, 10 MB/s the other."""
    ends = ((0, 1), (1, 2), (2, 0))
    rates = {pair: rate for a, b in ends for pair, rate in (((a, b), 20), ((b, a), 10))}
    arcs = [(str(a), str(b), f"{rate} MB/s") for (a, b), rate in rates.items()]
    data = instance(["0", "1", "2"], arcs, "all_reduce", "1 GB")
    best = trees.all_reduce_by_pairs(3, rates)
    return [fault for name in wan.METHODS for fault in wan.asymmetric(data, best, name, 16)]


def shared_hyper_edges() -> list[Fault]:
    """A link that fits two chunks in an epoch, to a switch that neither stores nor copies."""
    data = _star(3, "2 B/s", "broadcast", "1 B", buffer="0 B", multicast=False)
    options = {"epoch_duration": "1 s", "timing": "store-and-forward", "switches": "hyper-edges"}
    return epochs.milp(data, Fraction(1), options, [], 17)


def one_port() -> list[Fault]:
    """A star of three: every rank receives over one link."""
    data = _star(3, "50 GB/s", "all_gather", "3 MB", buffer=None, multicast=False)
    return synthesis.through(data, Fraction(2 * 10**6, 50 * 10**9), {"variant": "paper", "unwind": 0})


def order_of_requests() -> list[Fault]:
    """Bruck's algorithm on a mesh, in three units."""
    size = Fraction(10**6)
    scales = (Fraction(1), Fraction(1, 3), Fraction(10, 3))
    return [fault for scale in scales for fault in simulate.check_time("mesh(4,5)", "all_reduce", "bruck", size, scale)]


def line_graphs() -> list[Fault]:
    """Rows of two sizes, anew."""
    return finder.size(18, 2, circulants=False) + finder.size(10, 6, circulants=False)


def beaten_by_circulants() -> list[Fault]:
    """Seven nodes of degree 3."""
    return finder.size(7, 3, circulants=True)


def thirds_of_bandwidth() -> list[Fault]:
    """A network of three links a node is written."""
    file = client.folder() / "network.json"
    words = ("find-topology", "--nodes", "7", "--degree", "3", "--all-to-all-limit", "0", "-o", str(file))
    status, _, err = client.command(*words)
    return [Fault("exit status", client.command_text(words), f"{status} {err.strip()}", "a file", 20)] if status else []


def mean_of_seeds() -> list[Fault]:
    """Two seeds of one cell."""
    return files.one_row("forestcoll", "forestcoll", 4, 3) + files.one_row("mtree", "mtree", 4, 3)


def sums_on_a_line() -> list[Fault]:
    """Two chunks summed up along a line of three take 3 s."""
    data = instance(["0", "1", "2"], _both([("0", "1", "1 B/s"), ("1", "2", "1 B/s")]), "reduce", "2 B", chunks=2)
    return epochs.compare_methods(data, "1 s", 22)


def two_copies_in_a_buffer_for_one() -> list[Fault]:
    """A chunk reaches a switch that does not copy at 1 and at 2, and leaves for two ranks at 3."""
    posed = client.load(_star(3, "1 B/s", "broadcast", "1 B", buffer="1 B", multicast=False))
    posed = posed.with_changes(timing=Timing(Semantics.STORE_AND_FORWARD, Fraction(1)))
    one, zero = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    chunk = Chunks(one, Fraction(1), ((0,), (0, 1, 2)), zero, one, np.zeros(1, dtype=np.bool_))
    hops = [(0, 3, 0, 0), (0, 3, 0, 1), (3, 1, 3, 3), (3, 2, 5, 3)]
    sends = [Send(0, source, target, False, (link,), at, at + 1) for source, target, link, at in hops]
    made = makers.MadeSchedule(posed, chunk, sends, Fraction(1))
    wrong = faults_in_epochs(posed, chunk, sends)
    verdict, crash = client.verdict(posed, made.to_schedule())
    if crash or (verdict is not None and verdict.ok):
        return [Fault("wrong schedule accepted", "two copies in a buffer for one", crash or "right", wrong[0], 23)]
    return []


def plugin_that_asks() -> list[Fault]:
    """A plug-in file, known by the environment as in a worker process, calls ``cwb.formulation``."""
    file = client.folder() / "plugin_that_asks.py"
    file.write_text('import cwb\nb = [cwb.formulation("teccl/milp")]\n')
    words = [
        sys.executable,
        "-m",
        "cwb",
        "solve",
        "--model",
        "ring",
        "ring(3)",
        "--collective",
        "all_gather",
        "--quiet",
    ]
    done = subprocess.run(
        words, env={**os.environ, "CWB_PLUGINS": str(file)}, capture_output=True, text=True, check=False
    )
    return (
        [Fault("exit status", "CWB_PLUGINS", f"{done.returncode} {done.stderr[-200:]}", "0")] if done.returncode else []
    )


def control_in_a_name() -> list[Fault]:
    """Trees between nodes whose names begin with an escape, drawn."""
    names = ["\x1b[31mRED", "b\u202e\x07", "c\r\n"]
    arcs = [(a, b, "1 GB/s") for a in names for b in names if a != b]
    place = client.folder() / "controls.json"
    place.write_text(json.dumps(instance(names, arcs, "all_gather", "3 MB")))
    plan, picture = client.folder() / "plan.json", client.folder() / "plan.svg"
    client.command("solve", "--model", "forestcoll", str(place), "-o", str(plan), "--quiet")
    client.command("plot", str(plan), "--kind", "network", "-o", str(picture))
    try:
        ElementTree.fromstring(picture.read_bytes())  # noqa: S314 (written here)
    except (OSError, ElementTree.ParseError) as error:
        return [Fault("no picture", "cwb plot --kind network", str(error), "XML")]
    return []


def finder_ignores_sigterm() -> list[Fault]:
    """The rows of a paper that ask the topology finder, stopped after some seconds."""
    words = [sys.executable, "-m", "cwb", "reproduce", "direct-connect", "Table 4", "--quiet"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(6)
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return [Fault("does not end", "SIGTERM to cwb reproduce direct-connect 'Table 4'", "10 s later", "an end")]
    return []


def columns_of_zeros() -> list[Fault]:
    """An archive of a right schedule with half a gigabyte of zeros in a column that nobody knows."""
    file = client.folder() / "zeros.npz"
    client.command("solve", "--model", "ring", "ring(3)", "--collective", "all_gather", "-o", str(file), "--quiet")
    head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({2**26},), }}\n".encode()
    with (
        zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("sends/more.npy", "w", force_zip64=True) as stream,
    ):
        stream.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
        for _ in range(2**9):
            stream.write(bytes(2**20))
    tracemalloc.start()
    status, _, err = client.command("check", str(file))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if status != 2 or peak > 2**28:
        return [Fault("expanded", "512 MiB of zeros in sends/more.npy", f"{peak:,} B, {err[-100:]}", "exit status 2")]
    return []


def one_link_there_two_back() -> list[Fault]:
    """The slower one of two links back is near enough for a tree of 3 MB/s."""
    arcs = [
        ("0", "1", "8 MB/s", "32 ms"),
        ("1", "0", "5 MB/s", "239 ms"),
        ("1", "0", "3 MB/s", "111 ms"),
    ]
    solved = client.solve(instance(["0", "1"], arcs, "all_reduce", "1 GB"), "mtree", height="182 ms")
    return client.claims(solved, Fraction(1000, 3), "the second link back", 31)


def pool_of_placements() -> list[Fault]:
    """Each of three experts can be the one that is held twice."""
    words = (
        "solve", "--formulation", "expert-placement/slots", "experts(gpus=2, slots=2, loads=[5,3,2])", "--pool", "6",
        "--json"
    )  # fmt: skip
    status, out, err = client.command(*words)
    record = json.loads(out) if status == 0 else {}
    told = record.get("message", "")
    if len(record.get("pool", ())) >= 3 and "binary variables" in told:
        return []
    return [Fault("pool cut off", client.command_text(words), told or err, "three numbers of replicas", 32)]


#: The defect and the case, by seed.
def relays_of_a_star() -> list[Fault]:
    """An all-gather round a rank that passes on takes three epochs."""
    arcs = _both([("0", str(leaf), "1 B/s") for leaf in range(1, 4)])
    return relays.check_forwarding(instance(["0", "1", "2", "3"], arcs, "all_gather", "4 B", chunks=1), 0)


def _arcs(links: list[tuple[str, int]]) -> tuple[studies.Arc, ...]:
    return tuple((a, b, Fraction(rate)) for (a, b), rate in links)


def slow_directions() -> list[Fault]:
    """10 and 1 B/s, broadcast on half of it."""
    posed = studies.Small(("a", "b"), (), _arcs([("ab", 10), ("ba", 1)]), "broadcast")
    return studies.check_failures(posed, Fraction(1, 2))


def slow_parallel_links() -> list[Fault]:
    """Links of 10 and 1 B/s beside each other, a third of both."""
    links = [(way, rate) for pair, rate in (("ab", 1), ("bc", 10), ("bc", 1), ("ac", 5)) for way in (pair, pair[::-1])]
    return studies.check_failures(studies.Small(("a", "b", "c"), (), _arcs(links), "all_gather"), Fraction(1, 3))


def switch_out_of_balance() -> list[Fault]:
    """A switch on the one way from a to b, of which one link is slow."""
    links = _arcs([("as", 2), ("sb", 2), ("bs", 1), ("sa", 1), ("bc", 1), ("cb", 1)])
    return studies.check_failures(studies.Small(("a", "b", "c"), ("s",), links, "all_gather"), Fraction(1, 2))


def root_of_a_ring() -> list[Fault]:
    """On a ring of one way the link back to the root is lost for nothing."""
    return studies.check_failures(
        studies.Small(("a", "b", "c"), (), _arcs([("ab", 1), ("bc", 1), ("ca", 1)]), "broadcast"), Fraction(0)
    )


def worth_of_directions() -> list[Fault]:
    """10 and 1 B/s between two of three."""
    links = _arcs([("ab", 10), ("ba", 1), ("bc", 5), ("cb", 5)])
    return studies.check_sensitivity(studies.Small(("a", "b", "c"), (), links, "all_gather"))


#: The defect and the case, by seed.
CASES: tuple[tuple[int, Callable[[], list[Fault]]], ...] = (
    (1, floor_of_a_ring),
    (1, floor_of_a_triangle),
    (2, endless_trees),
    (3, two_sites),
    (4, few_trees_recomputed),
    (4, low_trees_recomputed),
    (5, late_on_a_star),
    (6, link_down),
    (7, split_through_a_switch),
    (8, sums_in_a_switch),
    (9, copies_of_split_chunks),
    (10, flow_of_a_fast_link),
    (11, scaled_multipliers),
    (12, rounded_ticks),
    (13, wide_table),
    (13, prime_rates),
    (13, tiny_sizes),
    (13, wide_ratio),
    (13, disconnected_pairs),
    (13, bound_in_words),
    (14, a_million_nodes),
    (15, three_equal_steps),
    (16, ring_of_two_rates),
    (17, shared_hyper_edges),
    (18, one_port),
    (19, order_of_requests),
    (20, line_graphs),
    (20, beaten_by_circulants),
    (20, thirds_of_bandwidth),
    (21, mean_of_seeds),
    (22, sums_on_a_line),
    (23, two_copies_in_a_buffer_for_one),
    (24, relays_of_a_star),
    (25, lambda: relays.late_sums(0)),
    (26, slow_directions),
    (26, slow_parallel_links),
    (27, switch_out_of_balance),
    (27, root_of_a_ring),
    (28, worth_of_directions),
    (29, one_link_there_two_back),
    (30, pool_of_placements),
    (31, lambda: repairs.case(0)),
    (32, lambda: stragglers.case(11)),
    (33, lambda: repairs.sums(12)),
    (34, plugin_that_asks),
    (35, control_in_a_name),
    (36, finder_ignores_sigterm),
    (37, columns_of_zeros),
)


def case(seed: int) -> list[Fault]:
    """Run a case, and give its faults the number of its defect."""
    number, run = CASES[seed % len(CASES)]
    return [replace(fault, defect=number) for fault in run()]


CAMPAIGNS = (
    Campaign(
        "known", "each its own", case, range(len(CASES)), len(CASES), cpu_s=45, endless=lambda seed: CASES[seed][0]
    ),
)
