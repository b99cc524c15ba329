"""Schedules as MSCCL files and back: every method, collective, network and runtime; foreign files; mutants; sizes.

    python benchmarks/exchange.py                         # all of the sweep, a line for each network
    python benchmarks/exchange.py --mutations 2000        # single changes of right files, verified twice
    python benchmarks/exchange.py --sizes 64 256 1024     # seconds and memory of export and check
    python benchmarks/exchange.py --examples              # the example of every method, as Chakra traces
    python benchmarks/exchange.py --samples FOLDER        # foreign files: check, and of XML files back to a schedule
    python benchmarks/exchange.py --smoke                 # a little of each

In the sweep, a schedule becomes a file for each runtime, the file is run, its result compared with what the collective
asks for, and what it sends from GPU to GPU with the bytes of the schedule's paths; where every pair has one shortest
way, so are the links. What does not fit is counted by the limit that it names. MSCCL++ plans and Chakra traces are
written, read and run beside. A change matters if a second, slow interpreter (tests/exchange/msccl/slow_run.py) finds
the file wrong; every change that matters must be caught. Exit status 1 if anything is not as it should be.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import SimpleNamespace

from cwb.core.collective import Collective, Demand, collectives
from cwb.core.equal_steps import TranslatedTrees
from cwb.core.errors import CwbError, InputError
from cwb.core.instance import Instance
from cwb.core.schedule import Schedule, StepSchedule
from cwb.core.topology import Topology
from cwb.core.trees import TreePacking
from cwb.exchange.chakra.files import file_of, read_trace
from cwb.exchange.chakra.lift import lift_trace
from cwb.exchange.chakra.trace import SEND, Trace, problems_of, trace_of
from cwb.exchange.msccl.check import check_algorithm, check_file, ranges
from cwb.exchange.msccl.dialects import DIALECTS, Dialect
from cwb.exchange.msccl.flow import Flow, flow_of
from cwb.exchange.msccl.lift import lift
from cwb.exchange.msccl.links import loads_of, routes
from cwb.exchange.msccl.lower import Target, lower
from cwb.exchange.msccl.program import Algorithm
from cwb.exchange.mscclpp import check as plans
from cwb.exchange.mscclpp import lower as planning
from cwb.exchange.mscclpp.files import json_text, parse_plan
from cwb.exchange.mscclpp.plan import Plan
from cwb.harness import Request, registry
from cwb.harness.run import run
from cwb.instances import load
from cwb.schedules.files import Written
from cwb.schedules.verify import verify
from cwb.schedules.verify.answers import write_out
from exchange_mutants import mutants
from exchange_sizes import FORMATS, sizes

sys.path[:0] = [
    str(Path(__file__).parents[1] / "tests" / folder)
    for folder in ("exchange/msccl", "exchange/mscclpp", "schedules/verify", "contracts")
]

NETWORKS = (
    "ring(5)", "line(4)", "torus(3,3)", "mesh(2,3)", "hypercube(3)", "complete(4)", "circulant(n=8, offsets=[1,2])",
    "star(6)",
    "dgx1()", "dgx_a100()", "ndv2()", "a100(boxes=2)",
)  # fmt: skip

COLLECTIVES = [kind for kind in collectives() if kind is not Collective.POINT_TO_POINT]

#: Plans that are made of a schedule.
PLANS = {
    "plan": planning.Target(),
    "plan of packets in place": planning.Target(protocol="LL", inplace=True),
    "plan over ports": planning.Target(box=2),
}

#: Methods that answer no schedules of their own or need a longer time.
LEFT_OUT = frozenset({"libra", "libra-equal", "libra-codesign", "mtree-repair"})


def main() -> int:
    """Read the options and do what they ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="a little of each")
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--methods", nargs="*", default=None)
    parser.add_argument("--seconds", type=float, default=1.0, help="time limit of a method's run")
    parser.add_argument("--mutations", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="*", default=[])
    parser.add_argument("--formats", nargs="*", default=FORMATS, choices=FORMATS, help="of sizes")
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--examples", action="store_true", help="the example of every method, as Chakra traces")
    options = parser.parse_args()
    if options.smoke:
        return max(
            sweep(["ring(4)", "star(3)"], ["ring", "direct", "forestcoll", "tacos"], 1.0),
            mutants(120),
            sizes([16], FORMATS),
        )
    if options.examples:
        return examples()
    if options.mutations or options.sizes:
        return mutants(options.mutations) if options.mutations else sizes(options.sizes, options.formats)
    if options.samples:
        return samples(options.samples)
    methods = options.methods or [name for name in registry.names() if name not in LEFT_OUT]
    return sweep(options.networks, methods, options.seconds)


def sweep(networks: list[str], methods: list[str], seconds: float) -> int:
    """Every method and collective on every network, as a file of every runtime."""
    total: Counter[str] = Counter()
    wrong: list[str] = []
    for spec in networks:
        began, counts = perf_counter(), Counter[str]()
        topology = load(spec).network
        assert isinstance(topology, Topology)
        single = single_ways(topology)
        for method in methods:
            for kind in COLLECTIVES:
                done = solve_verified(spec, method, kind, seconds)
                if isinstance(done, str):
                    counts[done] += 1
                    continue
                counts["schedules"] += 1
                for outcome in export_schedule(*done, single):
                    counts[outcome.partition("!")[0]] += 1
                    if "!" in outcome:
                        wrong.append(f"{spec}, {method}, {kind.name}: {outcome.partition('!')[2]}")
        total += counts
        print(f"{spec}: {counts_text(counts)} in {perf_counter() - began:.1f} s", flush=True)
    print(f"all: {counts_text(total)}")
    print("\n".join(wrong) or "nothing wrong")
    return int(bool(wrong))


def single_ways(topology: Topology) -> dict[tuple[int, int], tuple[int, ...]]:
    """The shortest way between two ranks, where there is one."""
    everybody = [(a, b) for a in range(len(topology.ranks)) for b in range(len(topology.ranks)) if a != b]
    return {pair: ways[0] for pair, ways in routes(topology, everybody).items() if len(ways) == 1}


def counts_text(counts: Counter[str]) -> str:
    """Counts in words."""
    return "; ".join(f"{count} {name}" for name, count in counts.most_common())


def solve_verified(spec: str, method: str, kind: Collective, seconds: float) -> tuple[Instance, Written] | str:
    """The verified schedule of a method, or why there is none."""
    instance = load(spec).with_changes(demand=Demand(kind, Fraction(2**20)))
    if registry.get(method).supports(instance) is not None:
        return "not supported by the method"
    try:
        done = run(instance, Request(method, time_limit_s=seconds))
    except CwbError as error:
        return f"no schedule ({type(error).__name__})"
    answer = done.answer
    if done.record.verified and isinstance(answer, StepSchedule | Schedule | TreePacking | TranslatedTrees):
        return done.instance or instance, answer
    return f"no schedule ({done.record.status})"


def export_schedule(
    instance: Instance, answer: Written, single: dict[tuple[int, int], tuple[int, ...]]
) -> Iterator[str]:
    """Yield the result of exporting a schedule for each runtime; a fault begins with an exclamation mark."""
    try:
        flow = flow_of(instance, answer)
    except InputError as error:
        yield from (
            f"refused ({error.problem.split('; ')[0].partition(' ')[2][:30]})" for _ in (*DIALECTS, *PLANS, "chakra")
        )
        return
    yield check_traces(instance, answer, flow, single)
    for name, target in PLANS.items():
        yield check_plan(instance, answer, flow, name, target, single)
    for dialect in DIALECTS.values():
        placement = "both" if dialect.placed else "out"
        try:
            found = lower(flow, Target(dialect, placement=placement))
        except InputError as error:
            yield limit_name(error)
            continue
        yield check_program(instance, answer, flow, found, dialect, single)


def check_traces(
    instance: Instance, answer: Written, flow: Flow, single: dict[tuple[int, int], tuple[int, ...]]
) -> str:
    """Write Chakra traces, read and run them, and compare their bytes with the schedule's."""
    trace = trace_of(flow)
    with TemporaryDirectory() as folder:
        for rank in range(trace.ngpus):
            (Path(folder) / f"a.{rank}.et").write_bytes(file_of(trace, rank))
        again = read_trace(Path(folder))
    if problems := problems_of(again):
        return f"wrong!chakra: {problems[0]}"
    if again.transfers != trace.transfers:
        return "wrong!chakra: reads other bytes than were written"
    pairs, links = bytes_of(instance, answer)
    grains: Counter[tuple[int, int]] = Counter()
    for rank, nodes in enumerate(trace.ranks):
        grains.update({(rank, node.peer): 0 for node in nodes if node.type == SEND})
        for node in nodes:
            if node.type == SEND:
                grains[rank, node.peer] += node.grains
    if {pair: count * flow.grain_bytes for pair, count in grains.items()} != pairs:
        return "wrong!chakra: other bytes between ranks"
    if all((piece.grains * flow.grain_bytes).denominator == 1 for piece in flow.chunks) and again.transfers != pairs:
        return "wrong!chakra: other sizes of messages"
    assert isinstance(instance.network, Topology)
    loads = loads_of(SimpleNamespace(ngpus=trace.ngpus, transfers=grains), instance.network).chunks
    one_way = all(pair in single for pair in pairs)
    some = "links" if one_way and {link: n * flow.grain_bytes for link, n in loads.items()} == links else "pairs"
    back = bytes_of_trace(instance, flow, again)
    if back is not None and back != pairs:
        return "wrong!chakra: comes back with other bytes between ranks"
    return f"right (traces, {some} compared{', not read back' if back is None else ''})"


def bytes_of_trace(instance: Instance, flow: Flow, trace: Trace) -> dict[tuple[int, int], Fraction] | None:
    """Bytes between ranks of the verified schedule that a trace becomes; None if it cannot be read."""
    demand, kind = instance.demands[0], flow.kind or Collective.POINT_TO_POINT
    size_bytes = None if flow.kind is None else demand.size_bytes
    assert isinstance(instance.network, Topology)
    try:
        return bytes_of(*lift_trace(trace, instance.network, kind, size_bytes, "again"))[0]
    except InputError:
        return None


def check_plan(
    instance: Instance,
    answer: Written,
    flow: Flow,
    name: str,
    target: planning.Target,
    single: dict[tuple[int, int], tuple[int, ...]],
) -> str:
    """Write a plan, read and run it, and compare its bytes with the schedule's."""
    try:
        found = parse_plan("".join(json_text(planning.lower(flow, target))).encode())
    except InputError as error:
        limits = ("packets that a port", "operations; there is room")
        return next((f"refused ({words})" for words in limits if words in error.problem), f"wrong!{name}: {error}")
    checked = plans.check_plan(found)
    if checked.problems or not checked.ran:
        return f"wrong!{name}: {(checked.problems or ['not run'])[0]}"
    pairs, links = bytes_of(instance, answer)
    if {pair: count * flow.grain_bytes for pair, count in found.transfers.items()} != pairs:
        return f"wrong!{name}: other bytes between GPUs"
    return f"right ({name}, {compare_links(found, instance, flow, pairs, links, single)})"


def compare_links(
    found: Plan,
    instance: Instance,
    flow: Flow,
    pairs: dict[tuple[int, int], Fraction],
    links: dict[int, Fraction],
    single: dict[tuple[int, int], tuple[int, ...]],
) -> str:
    """Check if the bytes on links are the schedule's; every pair must have one shortest path."""
    assert isinstance(instance.network, Topology)
    if not all(pair in single for pair in pairs):
        return "pairs compared"
    loads = {link: count * flow.grain_bytes for link, count in loads_of(found, instance.network).chunks.items()}
    return "links compared" if loads == links else "pairs compared, not over shortest ways"


def examples() -> int:
    """The example of every method as traces."""
    from method_examples import EXAMPLES, example, request

    counts: Counter[str] = Counter()
    for name in EXAMPLES:
        done = run(example(name), request(name))
        answer = done.answer
        if not isinstance(answer, StepSchedule | Schedule | TreePacking | TranslatedTrees):
            outcome = "no schedule"
        else:
            instance = done.instance or example(name)
            topology = instance.topology
            single = single_ways(topology)
            try:
                outcome = check_traces(instance, answer, flow_of(instance, answer), single)
            except InputError as error:
                outcome = f"refused ({error.problem})"
        counts[outcome] += 1
        print(f"{name}: {outcome}", flush=True)
    print(f"all: {counts_text(counts)}")
    return int(any("!" in outcome for outcome in counts))


def limit_name(error: InputError) -> str:
    """The limit that an error names."""
    if " has no " in error.problem:
        return "refused (no such collective)"
    for words in ("chunks in a buffer", "chunks; there is room", "thread blocks", "channels", "elements"):
        if words in error.problem:
            return f"refused ({words})"
    return f"refused!{error}"


def check_program(
    instance: Instance,
    answer: Written,
    flow: Flow,
    found: Algorithm,
    dialect: Dialect,
    single: dict[tuple[int, int], tuple[int, ...]],
) -> str:
    """Check a file, compare its bytes with the schedule's, and bring it back."""
    checked = check_algorithm(found, [dialect])
    if checked.problems:
        return f"wrong!{dialect.name}: {checked.problems[0]}"
    pairs, links = bytes_of(instance, answer)
    sent = {pair: count * flow.grain_bytes for pair, count in found.transfers.items()}
    if sent != pairs:
        return f"wrong!{dialect.name}: other bytes between GPUs"
    assert isinstance(instance.network, Topology)
    loads = {link: count * flow.grain_bytes for link, count in loads_of(found, instance.network).chunks.items()}
    some = "links compared" if all(pair in single for pair in sent) else "pairs compared"
    if some == "links compared" and loads != links:
        some = "pairs compared, not over shortest ways"
    try:
        again, schedule = lift(found, instance.network, instance.demands[0].size_bytes, "again")
    except InputError as error:
        return f"wrong!{dialect.name}: does not come back: {error}"
    if not (report := verify(again, schedule)).ok:
        return f"wrong!{dialect.name}: comes back wrong: {report.violations[0]}"
    return f"right ({some})"


def bytes_of(instance: Instance, answer: Written) -> tuple[dict[tuple[int, int], Fraction], dict[int, Fraction]]:
    """Bytes from GPU to GPU and over every link, of the paths of sends or trees."""
    topology = instance.topology
    rank = {node: number for number, node in enumerate(topology.rank_nodes)}
    pairs: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    links: dict[int, Fraction] = defaultdict(Fraction)
    origin: dict[tuple[int, int], list[int]] = defaultdict(list)
    for chunk, path, size_bytes in paths(instance, answer):
        for link in path:
            links[link] += size_bytes
        nodes = [topology.link_ends[path[0]][0], *(topology.link_ends[link][1] for link in path)]
        ranks = [rank[node] for node in nodes if node in rank]
        if nodes[0] not in rank:
            ranks.insert(0, origin[chunk, nodes[0]].pop(0))
        if nodes[-1] not in rank:
            origin[chunk, nodes[-1]].append(ranks[-1])
        for pair in pairwise(ranks):
            pairs[pair] += size_bytes
    return dict(pairs), dict(links)


def paths(instance: Instance, answer: Written) -> Iterator[tuple[int, tuple[int, ...], Fraction]]:
    """Chunk, links and size of every send, in order."""
    answer = write_out(answer, instance)
    if isinstance(answer, TreePacking):
        for part in answer.passes:
            for tree in range(len(part)):
                for edge in range(int(part.edge_offset[tree]), int(part.edge_offset[tree + 1])):
                    links = part.path_links[part.path_offset[edge] : part.path_offset[edge + 1]].tolist()
                    yield tree, tuple(links), int(part.units[tree]) * part.unit_bytes
        return
    when = answer.step if isinstance(answer, StepSchedule) else answer.start_s
    for send in when.argsort(kind="stable").tolist():
        chunk = int(answer.sends.chunk[send])
        yield chunk, answer.sends.path(send), answer.chunks.size_bytes(chunk)


def samples(folder: Path) -> int:
    """Check every file of a folder, and bring it back on a network of switches."""
    status = 0
    files = []
    for path in sorted(folder.glob("*.xml")):
        began = perf_counter()
        try:
            checked = check_file(path, list(DIALECTS.values()))
        except InputError as error:
            print(f"{path.name}: {error.problem}")
            status = 1
            continue
        files.append(checked)
        network = load(f"complete({checked.algorithm.ngpus})").network
        assert isinstance(network, Topology)
        try:
            back = verify(*lift(checked.algorithm, network, Fraction(2**20), path.stem)).ok
        except InputError as error:
            back = False
            print(f"{path.name}: {error}")
        right = not checked.problems and back
        status = max(status, int(not right))
        words = f"runs on {', '.join(checked.runs_on)}; a schedule: {'verified' if back else 'no'}"
        print(
            f"{path.name}: {'right' if right else 'WRONG'}, {checked.algorithm.steps:,} steps, {words}, "
            f"{perf_counter() - began:.2f} s"
        )
        print("".join(f"  {problem}\n" for problem in checked.problems[:3]), end="")
    status = max(status, plan_samples(folder))
    print(
        f"{len(files)} files; {sum(len(ranges(files, one)) for one in DIALECTS.values())} holes and overlaps of sizes"
    )
    return status


def plan_samples(folder: Path) -> int:
    """Check every MSCCL++ plan of a folder."""
    status = 0
    for path in sorted(folder.glob("*.json")):
        began = perf_counter()
        try:
            checked = plans.check_file(path)
        except InputError as error:
            print(f"{path.name}: {error.problem}")
            status = 1
            continue
        status = max(status, int(bool(checked.problems)))
        right = "not run" if not checked.ran else "WRONG" if checked.run.wrong else "right"
        rules = "breaks no rule" if not checked.rules.wrong else f"breaks {checked.rules.counts.total()} rules"
        print(f"{path.name}: run: {right}; {rules}; {checked.plan.steps:,} operations, {perf_counter() - began:.2f} s")
        print("".join(f"  {problem}\n" for problem in checked.problems[:3]), end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
