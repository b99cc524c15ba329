"""MSCCL files, executed with real data by MPI processes: a third interpreter, which imports nothing of cwb.

    python benchmarks/msccl_mpi.py --write build/msccl                     # the files of exchange.py's sweep
    python benchmarks/msccl_mpi.py --write build/msccl --mutants 1000      # single changes of right files
    mpirun -n 16 python benchmarks/msccl_mpi.py build/msccl                # execute them, up to 16 ranks

A process is a rank. It goes through its thread blocks in turn, each of which does its next step when its data has come
and what it waits for is done; a send is an MPI message with the channel for its tag. At the end every rank compares its
output with the collective's definition, integer by integer. The lists ``files.csv`` and ``mutants.csv`` in the folder
say what cwb and the slow interpreter of the tests think of each file.

A right file must give the right result. A wrong mutant must hang, leave messages, touch what is not there, or have a
wrong result; some are races, which one run need not show. Exit status 1 if a right file fails.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

ELEMENTS = 8  #: Integers of a chunk.
ROUNDS = 8  #: A file hangs if the ranks do nothing between so many sums of all their steps.
PAUSE_S = 1e-4
SENDS, RECEIVES = ("s", "rcs", "rrs", "rrcs"), ("r", "rcs", "rrs", "rrc", "rrcs")
ROOTED = ("broadcast", "reduce", "gather", "scatter")


class WrongError(Exception):
    """A fault of a run."""


class Rank:
    """One rank of a file: its memory, and the thread blocks with their next steps."""

    def __init__(self, algorithm: ElementTree.Element, gpu: ElementTree.Element, inplace: bool) -> None:
        get = algorithm.attrib
        self.rank, self.ranks, self.chunks = int(gpu.attrib["id"]), int(get["ngpus"]), int(get["nchunksperloop"])
        self.coll = get["coll"]
        self.part = self.chunks if self.coll in ("gather", "scatter") else self.chunks // self.ranks
        whole = self.part * self.ranks
        if not whole and self.coll not in ("allreduce", "reduce", "broadcast"):
            raise WrongError("fewer chunks than ranks")
        sizes = {"i": whole, "o": whole, "s": int(gpu.attrib["s_chunks"])}
        if self.coll in ("allgather", "gather"):
            sizes["i"] = self.part
        if self.coll in ("reduce_scatter", "reducescatter", "scatter"):
            sizes["o"] = self.part
        if self.coll in ("allreduce", "reduce", "broadcast"):
            sizes["i"] = sizes["o"] = self.chunks
        memory = {name: np.zeros((size, ELEMENTS), dtype=np.int64) for name, size in sizes.items()}
        known = {name: np.zeros(size, dtype=bool) for name, size in sizes.items()}
        if inplace:  # the smaller buffer is this rank's part of the larger one, or both are one
            small, large = ("i", "o") if sizes["i"] < sizes["o"] else ("o", "i")
            first = self.rank * self.part if sizes[small] < sizes[large] else 0
            memory[small] = memory[large][first : first + sizes[small]]
            known[small] = known[large][first : first + sizes[small]]
        self.memory, self.known = memory, known
        memory["i"][:], known["i"][:] = [data(self.rank, chunk) for chunk in range(sizes["i"])], True
        self.blocks = [Block(self, block) for block in gpu.findall("tb")]
        self.by_id = {block.id: block for block in self.blocks}

    def place(self, buffer: str, begin: int, count: int) -> tuple[str, slice]:
        """Return a part of a buffer that exists."""
        if buffer not in self.memory or begin < 0 or count < 1 or begin + count > len(self.memory[buffer]):
            raise WrongError("outside")
        return buffer, slice(begin, begin + count)

    def load(self, buffer: str, begin: int, count: int) -> np.ndarray:
        """Return a copy of data that has been written."""
        name, part = self.place(buffer, begin, count)
        if not self.known[name][part].all():
            raise WrongError("undefined")
        return self.memory[name][part].copy()

    def store(self, buffer: str, begin: int, value: np.ndarray) -> None:
        """Write data."""
        name, part = self.place(buffer, begin, len(value))
        self.memory[name][part], self.known[name][part] = value, True

    def is_right(self, root: int) -> bool:
        """Compare the output with the collective's definition."""
        wanted = list(self.required_output(root))
        output, known = self.memory["o"], self.known["o"]
        return all(known[chunk] and (output[chunk] == value).all() for chunk, value in wanted)

    def required_output(self, root: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the output that the rank must have."""
        everyone, part, rank, coll = range(self.ranks), self.part, self.rank, self.coll
        if coll == "allreduce" or (coll == "reduce" and rank == root):
            yield from ((k, np.sum([data(other, k) for other in everyone], axis=0)) for k in range(self.chunks))
        elif coll in ("reduce_scatter", "reducescatter"):
            for k in range(part):
                yield k, np.sum([data(other, rank * part + k) for other in everyone], axis=0)
        elif coll == "allgather" or (coll == "gather" and rank == root):
            yield from ((other * part + k, data(other, k)) for other in everyone for k in range(part))
        elif coll == "alltoall":
            yield from ((other * part + k, data(other, rank * part + k)) for other in everyone for k in range(part))
        elif coll == "broadcast":
            yield from ((k, data(root, k)) for k in range(self.chunks))
        elif coll == "scatter":
            yield from ((k, data(root, rank * part + k)) for k in range(part))


class Block:
    """A thread block of a rank."""

    def __init__(self, owner: Rank, found: ElementTree.Element) -> None:
        self.owner = owner
        self.id, self.send, self.recv, self.chan = (int(found.attrib[key]) for key in ("id", "send", "recv", "chan"))
        self.steps = [step.attrib for step in found.findall("step")]
        self.done, self.flag = 0, -1  # steps that are done, and the last of them that others may wait for

    def advance(self, world: Any, requests: list[Any]) -> bool:
        """Do the next step if it can be done; return True if it was."""
        if self.done == len(self.steps):
            return False
        step = self.steps[self.done]
        kind, count, wait = step["type"], int(step["cnt"]), int(step["depid"])
        owner = self.owner
        if wait >= 0 and (wait not in owner.by_id or owner.by_id[wait].flag < max(0, int(step["deps"]))):
            return False
        source, target = (step["srcbuf"], int(step["srcoff"])), (step["dstbuf"], int(step["dstoff"]))
        value = None
        if kind in RECEIVES:
            if self.recv < 0 or not world.Iprobe(source=self.recv, tag=self.chan):
                return False
            value = np.empty((count, ELEMENTS), dtype=np.int64)
            world.Recv(value, source=self.recv, tag=self.chan)
        if kind in ("rrs", "rrc", "rrcs"):
            value = owner.load(*source, count) + value
        elif kind in ("s", "cpy"):
            value = owner.load(*source, count)
        elif kind == "re":
            value = owner.load(*source, count) + owner.load(*target, count)
        if kind in ("r", "rcs", "rrc", "rrcs", "cpy", "re"):
            assert value is not None
            owner.store(*target, value)
        if kind in SENDS:
            if not 0 <= self.send < owner.ranks:
                raise WrongError("outside")
            requests.append(world.Isend(value, dest=self.send, tag=self.chan))
        if step["hasdep"] == "1":
            self.flag = self.done
        self.done += 1
        return True


@cache
def data(rank: int, chunk: int) -> np.ndarray:
    """Return integers that no other chunk has, and whose sums tell what was added."""
    return np.random.default_rng((rank, chunk)).integers(1, 2**52, ELEMENTS)


def execute(path: Path, world: Any, library: Any) -> list[str]:
    """Execute a file for all calls that it is for; return what is wrong, the same in all processes."""
    algorithm = ElementTree.parse(path).getroot()  # noqa: S314 (written by this script)
    get = algorithm.attrib
    placements = [value for value, key in ((True, "inplace"), (False, "outofplace")) if get.get(key, "1") != "0"]
    found = [execute_once(algorithm, inplace, world, library) for inplace in placements]
    return [why for why in found if why]


def execute_once(algorithm: ElementTree.Element, inplace: bool, world: Any, library: Any) -> str:
    """Execute one call, and return the first fault of any rank."""
    number, ranks = world.Get_rank(), int(algorithm.attrib["ngpus"])
    gpu = next((one for one in algorithm.findall("gpu") if int(one.attrib["id"]) == number), None)
    requests: list[Any] = []
    one, why, roots = None, "", [True] * ranks
    try:
        one = None if gpu is None else Rank(algorithm, gpu, inplace)
    except WrongError as error:
        why = str(error)
    why = run_blocks(one, why, world, requests, library)
    if one is not None and not why:
        asked = range(ranks) if one.coll in ROOTED else range(1)
        roots = [root in asked and one.is_right(root) for root in range(ranks)]
    together(world)
    if not why and world.Iprobe(source=library.ANY_SOURCE, tag=library.ANY_TAG):
        why = "left over"
    faults = [fault for fault in world.allgather(why) if fault]
    if not faults and not any(all(column) for column in zip(*world.allgather(roots), strict=True)):
        faults = ["result"]
    while world.Iprobe(source=library.ANY_SOURCE, tag=library.ANY_TAG):  # for the next file
        state = library.Status()
        world.Probe(source=library.ANY_SOURCE, tag=library.ANY_TAG, status=state)
        rest = np.empty(state.Get_count(library.BYTE), dtype=np.uint8)
        world.Recv(rest, source=state.Get_source(), tag=state.Get_tag())
    library.Request.Waitall(requests)
    together(world)
    return faults[0] if faults else ""


def run_blocks(one: Rank | None, why: str, world: Any, requests: list[Any], library: Any) -> str:
    """Go through the thread blocks in turn until all ranks are done, or none can go on; return this rank's fault.

    Meanwhile the ranks add up their steps, again and again. If the sum stays the same for several rounds, they wait for
    ever, however slow the machine is.
    """
    asked, same, last, total = None, 0, -1, np.zeros(3, dtype=np.int64)
    blocks = [] if one is None else one.blocks
    while True:
        moved = False
        if not why:
            try:
                moved = any(block.advance(world, requests) for block in blocks)
            except (WrongError, library.Exception) as error:
                why = str(error) if isinstance(error, WrongError) else "sizes differ"
        if asked is None:
            left = sum(len(block.steps) - block.done for block in blocks)
            mine = np.array([sum(block.done for block in blocks), left, bool(why)], dtype=np.int64)
            asked = world.Iallreduce(mine, total)
        elif asked.Test():
            asked = None
            same, last = (same + 1 if total[0] == last else 0), int(total[0])
            if total[2] or not total[1]:
                return why
            if same == ROUNDS:
                return why or "hangs"
        if not moved:
            time.sleep(PAUSE_S)


def together(world: Any) -> None:
    """Wait for all processes, and leave them the processor."""
    request = world.Ibarrier()
    while not request.Test():
        time.sleep(PAUSE_S)


def execute_all(folder: Path) -> int:
    """Execute the files of a folder; the first process prints the counts."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    first = world.Get_rank() == 0
    status = 0
    for name in ("files.csv", "mutants.csv"):
        if not (folder / name).exists():
            continue
        with (folder / name).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        counts: Counter[tuple[str, str]] = Counter()
        began, left_out = time.perf_counter(), 0
        for row in rows:
            if int(row["ranks"]) > world.Get_size():
                left_out += 1
                continue
            faults = execute(folder / row["file"], world, MPI)
            counts[row["expected"], "wrong" if faults else "right"] += 1
            if first and faults and row["expected"] == "right":
                print(f"{row['file']}: {faults[0]}", flush=True)
        if first:
            seconds = time.perf_counter() - began
            print(f"{name}: {counts.total():,} executed in {seconds:.0f} s, {left_out} with more ranks left out")
            for (expected, was), count in sorted(counts.items()):
                print(f"  {expected}, executed {was}: {count:,}")
        status |= int(counts["right", "wrong"] > 0)
    return status


def write(folder: Path, count: int, seconds: float, networks: list[str]) -> int:
    """Write the files of the sweep, or mutants, and the list of them."""
    from cwb.exchange.msccl.files import xml_text

    import exchange

    folder.mkdir(parents=True, exist_ok=True)
    name = "mutants.csv" if count else "files.csv"
    programs = mutants(count) if count else sweep(networks or list(exchange.NETWORKS), seconds)
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["file", "ranks", "expected", "what"])
        number = 0
        for number, (program, expected, what) in enumerate(programs, 1):
            path = f"{name[:-4]}-{number:05}.xml"
            (folder / path).write_text("".join(xml_text(program)), encoding="utf-8")
            lines.writerow([path, program.ngpus, expected, what])
    print(f"{number:,} files in {folder}")
    return 0


def sweep(networks: list[str], seconds: float) -> Iterator[tuple[Any, str, str]]:
    """Yield the files of every method, collective, network and runtime."""
    from cwb.core.errors import InputError
    from cwb.exchange.msccl.check import check_algorithm
    from cwb.exchange.msccl.dialects import DIALECTS
    from cwb.exchange.msccl.flow import flow_of
    from cwb.exchange.msccl.lower import Target, lower
    from cwb.harness import registry

    import exchange

    for spec in networks:
        for method in (name for name in registry.names() if name not in exchange.LEFT_OUT):
            for kind in exchange.COLLECTIVES:
                done = exchange.solve_verified(spec, method, kind, seconds)
                if isinstance(done, str):
                    continue
                for dialect in DIALECTS.values():
                    try:
                        target = Target(dialect, placement="both" if dialect.placed else "out")
                        program = lower(flow_of(*done), target)
                    except InputError:
                        continue
                    right = not check_algorithm(program, [dialect]).problems
                    yield program, "right" if right else "wrong", f"{spec} {method} {kind.name} {dialect.name}"


def mutants(count: int) -> Iterator[tuple[Any, str, str]]:
    """Yield files with one change; ``wrong`` if many random runs of the slow interpreter find a fault."""
    from cwb.exchange.msccl.check import check_algorithm
    from cwb.exchange.msccl.dialects import DIALECTS
    from cwb.exchange.msccl.flow import flow_of
    from cwb.exchange.msccl.lower import Target, lower
    from families import FAMILIES
    from mutants import MUTATIONS, mutant
    from programs import exchange_all_reduce, ring_all_gather
    from slow_run import is_right

    import exchange

    assert exchange
    runtime = DIALECTS["msccl-executor"]
    programs = [ring_all_gather(4), exchange_all_reduce()]
    names = ("recursive_doubling", "direct_all_to_all", "binomial_reduce", "chain_trees", "timed_chain_all_reduce")
    programs += [lower(flow_of(*FAMILIES[name]()), Target(runtime)) for name in names]
    for number in range(count):
        change = list(MUTATIONS)[number // len(programs) % len(MUTATIONS)]
        other = mutant(programs[number % len(programs)], change, number)
        refused, wrong = bool(check_algorithm(other, [runtime]).problems), not is_right(other, 24)
        expected = "wrong, refused" if wrong and refused else "wrong" if wrong else "refused" if refused else "right"
        yield other, expected, change


def main() -> int:
    """Read the options and do what they ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?", help="execute the files of this folder, under mpirun")
    parser.add_argument("--write", type=Path, help="write the files to this folder")
    parser.add_argument("--mutants", type=int, default=0, help="write so many single changes instead")
    parser.add_argument("--seconds", type=float, default=1.0, help="time limit of a method's run")
    parser.add_argument("--networks", nargs="*", default=[], help="networks instead of those of exchange.py")
    options = parser.parse_args()
    if options.write:
        return write(options.write, options.mutants, options.seconds, options.networks)
    if options.folder is None:
        parser.error("expected a folder, or --write")
    return execute_all(options.folder)


if __name__ == "__main__":
    sys.exit(main())
