"""Every reader on random changes of right files: an answer, or one line that says what is wrong.

    python benchmarks/fuzz.py --minutes 10                    # every reader in turn, for ten minutes
    python benchmarks/fuzz.py --minutes 10 --reader schedule --seed 7
    python benchmarks/fuzz.py --smoke                         # 20 seconds
    python benchmarks/fuzz.py --reader schedule --case build/fuzz/schedule-1.json

Files are given to the command line, in this process. A finding is an internal error, an exit status that is not
documented, an error of several lines, a control character in what is printed, more than the seconds or the memory that
a small file may cost, or a file left behind. Each is printed once and kept with its file; the exit status is then 1.
Importers of machines have a fuzzer of their own, fuzz_machines.py.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cwb.cli.main import run
from cwb.core.errors import CwbError
from cwb.core.text import escape_unprintable
from cwb.harness.plan import cells
from cwb.harness.suite_file import load_suite

#: Seconds of a processor, and bytes, that a file of a few thousand characters may cost.
SLOW_S, MEMORY_BYTES = 4.0, 6 * 2**30

#: What a command may end with; 1 is for what is not documented.
STATUSES = frozenset({0, 2, 3, 4, 5, 6, 7})

KEPT = Path("build/fuzz")

#: In place of a command: a suite is planned.
PLAN = "plan"

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\ud800-\udfff]")

#: What numbers, texts and parts of data are replaced by.
NUMBERS = [
    "0",
    "-1",
    "1e308",
    "1e400",
    "-0.0",
    "9" * 30,
    "9" * 400,
    "1" + "0" * 5000,
    "0.1e-400",
    "NaN",
    "true",
    "2147483648",
]
TEXTS = ["", "\x1b]0;x\x07", "\u202e", "\ud800", "[/red]:x:", "=1+1", "\n", "x" * 5000, "1/0", "1e999 GB/s", "-5 GB/s",
"../..",
         "\x00", "$\\frac{", "{0}", "%s", "0 s", "1 B", "torus(2,2)", "🙂"]  # fmt: skip
PIECES = [b"[", b"]", b"{", b"}", b",", b'"', b"\\", b"\xff", b"\x00", b"(", b")", b"<a>", b"&e;", b"<!--", b"=", b"#",
    b"\n", b"\t",
          b"[" * 3000, b"(" * 3000, b"{" * 3000, b"<a>" * 3000, b'{"a":' * 3000, b"\xed\xa0\x80", b"-", b"1e9",
              b"null"]  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """A kind of file: right ones, the ending of their name, and the commands that read it."""

    suffix: str
    seeds: list[bytes]
    commands: Callable[[str, Path], list[list[str]]]


def change_bytes(raw: bytes, chance: random.Random) -> bytes:
    """A file after one to four random changes: of data, where it is JSON, or of its characters."""
    for _ in range(chance.randint(1, 4)):
        if chance.random() < 0.6:
            with contextlib.suppress(ValueError, RecursionError):
                lines = raw.split(b"\n") if raw.startswith(b'{"schema": "cwb-record') else [raw]
                at = chance.randrange(len(lines))
                lines[at] = _data_changed(lines[at], chance)
                raw = b"\n".join(lines)
                continue
        raw = _bytes_changed(raw, chance)
    return raw[: 2**20]


def _data_changed(raw: bytes, chance: random.Random) -> bytes:
    """JSON with a random part replaced, repeated or left out."""
    data = json.loads(raw)
    places: list[tuple[Any, Any]] = []
    waiting = [data]
    while waiting:
        part = waiting.pop()
        items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, value in items:
            places.append((part, key))
            waiting.append(value)
    mark = "@@"
    if not places:
        return raw
    part, key = chance.choice(places)
    other, other_key = chance.choice(places)
    match chance.randrange(7):
        case 0:
            del part[key]
        case 1:
            part[key] = mark
        case 2:
            part[key] = chance.choice(TEXTS)
        case 3:
            part[key] = json.loads(json.dumps(other[other_key]))
        case 4 if isinstance(part, list):
            part[key:key] = [part[key]] * chance.choice([1, 2, 500])
        case 5 if isinstance(part, dict):
            part[chance.choice(TEXTS)] = part.pop(key)
        case _:
            part[key] = chance.choice([[], {}, [[]], None, True, {"a": 1}, [part[key]], {"use": part[key]}])
    return json.dumps(data).replace(f'"{mark}"', chance.choice(NUMBERS)).encode()


def _bytes_changed(raw: bytes, chance: random.Random) -> bytes:
    """Characters put in, left out, repeated, exchanged; a number replaced."""
    at, end = sorted(chance.randint(0, len(raw)) for _ in range(2))
    end = min(end, at + 200)
    numbers = list(re.finditer(rb"[0-9.]+", raw))
    if numbers and chance.random() < 0.2:
        at, end = chance.choice(numbers).span()
        return raw[:at] + chance.choice(NUMBERS).encode() + raw[end:]
    put_in = [
        chance.choice(PIECES) + raw[at:end],
        b"",
        raw[at:end] * chance.choice([2, 50]),
        bytes([chance.randrange(256)]) + raw[at + 1 : end],
    ]
    return raw[:at] + chance.choice(put_in) + (raw[end:] if chance.random() < 0.9 else b"")


def readers(folder: Path) -> dict[str, Reader]:
    """All of them; right files are made by cwb itself, or written out here."""
    names = (
        "ring.json",
        "tree.json",
        "timed.json.gz",
        "tree.npz",
        "records.jsonl",
        "algorithm.xml",
        "plan.json",
        "packets.json",
    )
    made = {name: folder / name for name in names}
    solve = ["solve", "-q", "ring(4)", "--append", str(made["records.jsonl"])]
    for model, collective, name in (
        ("ring", "all_reduce", "ring.json"),
        ("forestcoll", "all_gather", "tree.json"),
        ("tacos", "all_gather", "timed.json.gz"),
        ("forestcoll", "all_gather", "tree.npz"),
    ):
        _quiet([*solve, "-m", model, "--collective", collective, "-o", str(made[name])])
    _quiet(["solve", "-q", "-m", "libra-equal", "3d", "--append", str(made["records.jsonl"])])
    _quiet(["export", "msccl", str(made["ring.json"]), "-o", str(made["algorithm.xml"])])
    _quiet(["export", "mscclpp", str(made["ring.json"]), "-o", str(made["plan.json"]), "--box", "2"])
    _quiet(["export", "mscclpp", str(made["tree.json"]), "-o", str(made["packets.json"]), "--protocol", "LL"])
    data = {name: path.read_bytes() for name, path in made.items() if path.exists()}
    shipped = Path(__file__).parents[1] / "instances"

    def importing(kind: str, *words: str) -> Callable[[str, Path], list[list[str]]]:
        return lambda file, out: [["import", kind, file, *words, "-o", str(out / "out.json")]]

    wan = importing("wan", "--bandwidth", "1 Gb/s", "--latency", "1 us", "--capacity-unit", "Mb/s")
    found = {
        "instance": Reader(".json", [_small(), *(p.read_bytes() for p in (shipped / "3d.json",
            shipped / "gpt-3-3d.json"))],
                           lambda file, out: [["show", file], ["solve", "-qm", "ring", file, "--json", "--time-limit",
                               "1"]]),
        "expression": Reader(".txt", [b"torus(4,4, bandwidth='25 GiB/s')", b"dgx_a100(boxes=2)", b"RI(4)_FC(8)_SW(32)",
                                      b"circulant(12,[1,5])", b'libra(workload=gpt-3, dims="RI(4)_SW(32)")',
                                      b"jellyfish(20,4)"],
                             lambda file, out: [["show", _argument(file), "--time-limit", "2"]]),
        "option": Reader(".txt", [b"constraints=B1 >= 2 B2; B3 <= 50 GB/s", b'constraints=["B1 + B2 <= 5 GB/s"]',
            b"gap=1e-3",
                                  b"total_bandwidth=500 GB/s", b"objective=perf-per-cost"],
                         lambda file, out: [["solve", "-qm", "libra-equal", "3d", "-O", _argument(file), "--time-limit",
                             "2"]]),
        "suite": Reader(".toml", [_SUITE], lambda file, out: [[PLAN, file]]),
        "ledger": Reader(".jsonl", [data["records.jsonl"]], lambda file, out: [
            ["table", "summary", file, "-f", "text"], ["table", "summary", file, "-f", "csv"],
            ["table", "libra-perf", file]]),
        "schedule": Reader(".json", [data["ring.json"], data["tree.json"], gzip.decompress(data["timed.json.gz"])],
                           lambda file, out: [["check", file], ["simulate", file]]),
        "binary schedule": Reader(".npz", [data["tree.npz"]], lambda file, out: [["check", file]]),
        "compressed schedule": Reader(".json.gz", [data["timed.json.gz"]], lambda file, out: [["check", file]]),
        "graphml": Reader(".graphml", [_GRAPHML], wan),
        "sndlib": Reader(".xml", [_SNDLIB], wan),
        "gml": Reader(".gml", [_GML], wan),
        "node-link": Reader(".json", [json.dumps(_NODE_LINK).encode()], wan),
        "links": Reader(".csv", [b"source,target,bandwidth,latency\na,b,25 GB/s,1 us\nb,a,25 GB/s,1 us\n"],
            importing("csv")),
        "te-ccl": Reader(".json", [json.dumps(_TECCL).encode()], importing("teccl")),
    }  # fmt: skip
    if "algorithm.xml" in data:
        to_import = importing("msccl", "--topology", "ring(4)")
        found["msccl"] = Reader(
            ".xml", [data["algorithm.xml"]], lambda file, out: [*to_import(file, out), ["check", file]]
        )
    traces = folder / "traces"
    _quiet(["export", "chakra", str(made["ring.json"]), "-o", str(traces)])
    if traces.is_dir():  # protobuf is there
        found["chakra"] = Reader(".et", [path.read_bytes() for path in traces.iterdir()], _one_of(traces))
    if "plan.json" in data:
        found["mscclpp"] = Reader(
            ".json", [data["plan.json"], data["packets.json"], _PLAN], lambda file, out: [["check", file]]
        )
    return found


def _one_of(traces: Path) -> Callable[[str, Path], list[list[str]]]:
    """Put a file in the place of the first rank's in a folder of traces; check the folder, and import it."""

    def commands(file: str, out: Path) -> list[list[str]]:
        (traces / "traces.0.et").write_bytes(Path(file).read_bytes())
        into = ["--topology", "ring(4)", "--collective", "all_reduce", "-o", str(out / "out.json")]
        return [["check", str(traces), "--topology", "ring(4)"], ["import", "chakra", str(traces), *into]]

    return commands


def _small() -> bytes:
    """An instance that has a bit of everything that a graph may have."""
    nodes = [{"name": name} for name in "abc"] + [{"name": "s", "kind": "switch", "multicast": True, "buffer": "1 MiB"}]
    links = [
        {"source": name, "target": "s", "bandwidth": "100/3 GB/s", "latency": "0.5 us", "bidirectional": True}
        for name in "abc"
    ]
    collective = {"kind": "all_gather", "size": "1 MiB", "chunks": 2, "ranks": [0, 2]}
    network = {"nodes": nodes, "links": links}
    return json.dumps(
        {"schema": "cwb-instance/1", "name": "x", "description": "y", "network": network, "collective": collective}
    ).encode()


#: Of a plan, what schedules do not become: pipelines, slices, barriers, semaphores and switch channels.
_PLAN = json.dumps({"name": "p", "collective": "allreduce", "protocol": "Simple", "inplace": True, "gpus": [
    {"id": rank, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 2, "remote_buffers": [],
     "semaphores": [{"init_value": 1}], "channels": [{"channel_type": "memory", "connected_to": [1 - rank]},
        {"channel_type": "switch", "buffer_type": "i", "rank_groups": [{"size": 2, "ranks": [0, 1]}]}],
     "threadblocks": [
        {"id": 0, "remote_buffer_refs": [], "channels": [{"channel_type": "memory", "channel_ids": [0]},
            {"channel_type": "switch", "channel_ids": [0]}], "ops": [
            {"name": "signal", "channel_type": "memory", "channel_ids": [0]},
            {"name": "wait", "channel_type": "memory", "channel_ids": [0]},
            {"name": "pipeline", "iter_context": {"unit_size": 1048576, "num_chunks": 1}, "ops": [
                {"name": "sem_acquire", "semaphore_ids": [0]}, {"name": "nop"},
                {"name": "glres", "channel_type": "switch", "src_buff": [{"switch_channel_id": 0, "index": rank,
                    "size": 1}],
                 "dst_buff": [{"switch_channel_id": 0, "index": rank, "size": 1}]}, {"name": "nop"},
                {"name": "sem_release", "semaphore_ids": [0]}]},
            {"name": "barrier", "barrier_id": 0, "num_threadblocks": 2},
            {"name": "signal", "channel_type": "memory", "channel_ids": [0]},
            {"name": "wait", "channel_type": "memory", "channel_ids": [0]}]},
        {"id": 1, "channels": [], "remote_buffer_refs": [], "ops": [
            {"name": "copy", "src_buff": [{"type": "s", "index": 0, "size": 1}],
                "dst_buff": [{"type": "s", "index": 1, "size": 1}],
             "tbg_info": {"tb_id": 1, "tbg_size": 2}},
            {"name": "barrier", "barrier_id": 0,
                "num_threadblocks": 2}]}]} for rank in range(2)]}).encode()  # fmt: skip

_SUITE = b"""description = "two"
time_limit = "5 s"
[[grid]]
instances = ["ring({n})", "3d"]
over = { n = { from = 2, to = 8, factor = 2 } }
collectives = ["all_reduce"]
sizes = { from = "1 KiB", to = "1 MiB", factor = 4 }
models = ["ring", "kind=exact", "!libra*"]
options = { gap = [1e-3], constraints = [["B1 >= B2"]] }
seeds = [0, 1]
"""
_GRAPHML = b"""<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key attr.name="label" id="d1"/>
<key attr.name="Latitude" id="d2"/><key attr.name="Longitude" id="d3"/><graph><node id="0"><data key="d1">Paris</data>
<data key="d2">48.85</data><data key="d3">2.35</data></node>
<node id="1"><data key="d1">Berlin</data></node><edge source="0" target="1"/></graph></graphml>"""
_SNDLIB = b"""<network><networkStructure><nodes coordinatesType="geographical">
<node id="a"><coordinates><x>2.3</x><y>48.8</y></coordinates></node>
<node id="b"><coordinates><x>13</x><y>52</y></coordinates></node></nodes><links>
<link id="L"><source>a</source><target>b</target>
<preInstalledModule><capacity>40.0</capacity></preInstalledModule></link></links></networkStructure></network>"""
_GML = (
    b'# c\ngraph [ node [ id 0 label "a" lat 48.8 lon 2.3 g [ x 1 ] ] node [ id 1 ] '
    b"edge [ source 0 target 1 LinkSpeedRaw 1e9 ] ]\n"
)
_NODE_LINK = {"graph": {"name": "n"}, "nodes": [{"id": 0, "pos": [2, 48]}, {"id": 1, "lat": 1, "lon": 2, "label": "b"}],
              "edges": [{"source": 0, "target": 1, "dist": 5.5, "capacity": 3}]}  # fmt: skip
_TECCL = {"TopologyParams": {"name": "Mesh", "chassis": 1, "chunk_size": 0.001, "alpha": [1e-6, 0], "side_length": 3},
          "InstanceParams": {"collective": 1, "num_chunks": 2}}  # fmt: skip


def _argument(file: str) -> str:
    """A file's content as a word of the command line, which has no null and is not an option."""
    word = os.fsdecode(Path(file).read_bytes()[:100_000].replace(b"\0", b""))
    return word if not word.startswith("-") else f" {word}"


def _plan(file: Path) -> tuple[int, str, str]:
    """Read and plan a suite as 'cwb compare' does, without making its networks, which may be as large as they like."""
    try:
        cells(load_suite(file))
    except CwbError as error:
        return int(error.exit_status), "", f"{escape_unprintable(str(error))}\n"
    return 0, "", ""


class Hang(BaseException):
    """A command that does not come back."""


def _quiet(words: list[str]) -> tuple[int, str, str]:
    """Run a command here; its exit status and what it printed."""
    out, err = (io.TextIOWrapper(io.BytesIO(), errors="surrogatepass", write_through=True) for _ in range(2))
    status = 1
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            if words[0] == PLAN:
                return _plan(Path(words[1]))
            run(words)
        except SystemExit as end:
            status = int(end.code or 0)
    texts = (stream.buffer.getvalue().decode(errors="replace") for stream in (out, err))  # type: ignore[attr-defined]
    return (status, *texts)


def wrong(words: list[str]) -> str | None:
    """Run a command; what is wrong with how it ended."""
    began = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, 5 * SLOW_S)
    try:
        status, out, err = _quiet(words)
    except Hang:
        return f"more than {5 * SLOW_S:g} s"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    took = time.process_time() - began
    if "internal error" in err or "Traceback" in err:
        return err.strip().splitlines()[-1][:300]
    if status not in STATUSES:
        return f"exit status {status}: {err.strip()[:200]}"
    if status == 2 and err.count("\n") != 1:
        return f"an error of {err.count(chr(10))} lines: {err[:200]!r}"
    if found := _CONTROL.search(out + err):
        return f"prints {found[0]!r}"
    return f"slow: {took:.1f} s" if took > SLOW_S else None


def files_of(reader: Reader, name: str, chance: random.Random, folder: Path) -> Iterator[str | None]:
    """Make one file after the other, give it to the commands, and say what was wrong with each."""
    while True:
        raw = chance.choice(reader.seeds)
        if reader.suffix.endswith(".gz") and chance.random() < 0.8:
            raw = gzip.compress(change_bytes(gzip.decompress(raw), chance), compresslevel=1)
        elif reader.suffix == ".npz" and chance.random() < 0.8:
            raw = change_member(raw, chance)
        else:
            raw = change_bytes(raw, chance)
        yield try_file(reader, name, raw, folder)


def change_member(raw: bytes, chance: random.Random) -> bytes:
    """Change one member of an archive, and pack it again."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice([*members])
    members[name] = change_bytes(members[name], chance)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in members.items():
            archive.writestr(each, data)
    return packed.getvalue()


def try_file(reader: Reader, name: str, raw: bytes, folder: Path) -> str | None:
    """Return a file to the commands; what was wrong, which is kept with the file."""
    file = folder / f"case{reader.suffix}"
    file.write_bytes(raw)
    out = folder / "out"
    out.mkdir(exist_ok=True)
    for words in reader.commands(str(file), out):
        fault = wrong(words)
        if fault is None and (left := [p.name for p in out.iterdir() if p.name != "out.json"]):
            fault = f"leaves {left[0]}"
        for path in out.iterdir():
            path.unlink()
        if fault is not None:
            KEPT.mkdir(parents=True, exist_ok=True)
            kept = KEPT / f"{name.replace(' ', '-')}-{len(list(KEPT.iterdir()))}{reader.suffix}"
            kept.write_bytes(raw)
            return f"{' '.join(words[:2])}: {fault} [{kept}]"
    return None


def main() -> int:
    """Fuzz for the time that is asked for, and tell what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.0, help="for all readers together")
    parser.add_argument("--smoke", action="store_true", help="twenty seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", action="append", help="of these alone")
    parser.add_argument("--case", type=Path, help="only this file, of one reader")
    asked = parser.parse_args()
    seconds = 20.0 if asked.smoke else 60 * asked.minutes
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    signal.signal(signal.SIGVTALRM, _hang)
    with tempfile.TemporaryDirectory(prefix="cwb-fuzz-") as name:
        folder = Path(name)
        known = readers(folder)
        chosen = {name: known[name] for name in asked.reader or known}
        if asked.case is not None:
            ((kind, reader),) = chosen.items()
            fault = try_file(reader, kind, asked.case.read_bytes(), folder)
            print(fault or "nothing is wrong")
            return int(fault is not None)
        return fuzz(chosen, seconds, asked.seed, folder)


def fuzz(chosen: dict[str, Reader], seconds: float, seed: int, folder: Path) -> int:
    """Return every reader its part of the time, a second at a time, and print each kind of finding once."""
    made = {
        name: files_of(reader, name, random.Random(f"{seed} {name}"), folder)  # noqa: S311
        for name, reader in chosen.items()
    }
    count: Counter[str] = Counter()
    findings: dict[str, str] = {}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for name, source in made.items():
            turn = time.monotonic() + min(1.0, seconds / len(made) / 2)
            while time.monotonic() < turn:
                count[name] += 1
                if (fault := next(source)) is not None:
                    kind = re.sub(r"[0-9]+|'[^']*'|\[build.*", "", fault)[:120]
                    if findings.setdefault(f"{name}: {kind}", fault) is fault:
                        print(f"FOUND {name}: {fault}", flush=True)
    for name, number in count.items():
        print(f"{name}: {number:,} cases")
    print(f"{count.total():,} cases in {seconds:.0f} s, {len(findings)} findings")
    return 1 if findings else 0


def _hang(number: int, frame: Any) -> None:
    del number, frame
    raise Hang


if __name__ == "__main__":
    sys.exit(main())
