"""Disturb comparisons in every way, resume them, and compare the ledger with that of an undisturbed run.

    python benchmarks/fault_drill.py                # 50 kills of the comparison, and everything else
    python benchmarks/fault_drill.py --smoke        # a few kills
    python benchmarks/fault_drill.py --only disk dask

Two ledgers are equal if they have the same keys, each once (the last record of a key where runs were made again), and
records that differ in times and memory alone. Exit status 1 if anything is lost, doubled, different or left running.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FAULTS = Path(__file__).with_name("faults")

#: Thirteen runs of a fraction of a second each; one of them is slow.
SUITE = """
[[grid]]
instances = ["ring({n})", "torus(2,{n})"]
over = { n = [4, 6] }
collectives = ["all_reduce"]
sizes = ["1 MiB"]
models = ["ring", "direct", "dbt"]

[[grid]]
instances = ["ring(4)"]
collectives = ["all_reduce"]
sizes = ["1 MiB"]
models = ["fault-slow"]
"""

BAD = """
time_limit = "3 s"
memory = "500 MiB"

[[grid]]
instances = ["ring(4)"]
collectives = ["all_reduce"]
sizes = ["1 MiB"]
models = ["fault-*", "!fault-slow"]
"""

#: What differs between two runs that are the same.
TIMES = ("seconds", "history", "started_at", "peak_rss_bytes")

Record = dict[str, Any]


class Drill:
    """A folder for the drill, and the processes that it starts, which carry a mark in their environment."""

    def __init__(self, folder: Path, kills: int, seed: int) -> None:
        self.folder, self.kills, self.random = folder, kills, random.Random(seed)  # noqa: S311
        self.mark = f"CWB_DRILL={uuid.uuid4().hex}"
        self.suite = folder / "suite.toml"
        self.suite.write_text(SUITE)
        self.failures: list[str] = []
        self.expected: dict[str, Record] = {}

    def command(self, output: Path, *more: str, suite: Path | None = None) -> list[str]:
        """Command of a comparison."""
        return [
            sys.executable,
            "-m",
            "cwb",
            "compare",
            str(suite or self.suite),
            "-o",
            str(output),
            "-q",
            "-j",
            "2",
            *more,
        ]

    def start(
        self,
        output: Path,
        *more: str,
        suite: Path | None = None,
        env: dict[str, str] | None = None,
        streams: str = "",
        **popen: Any,
    ) -> subprocess.Popen[str]:
        """Start a comparison; by a shell, where its streams are changed."""
        name, value = self.mark.split("=")
        path = os.pathsep.join(filter(None, [str(FAULTS), os.environ.get("PYTHONPATH")]))
        env = {**os.environ, name: value, "PYTHONPATH": path, **(env or {})}
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        command = self.command(output, *more, suite=suite)
        if streams:
            command = ["sh", "-c", f"exec {shlex.join(command)} {streams}"]
        ignored = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # inherited: under nohup it is ignored
        try:
            return subprocess.Popen(command, env=env, **pipes, **popen)
        finally:
            signal.signal(signal.SIGHUP, ignored)

    def run(self, output: Path, *more: str, suite: Path | None = None) -> str:
        """Run a comparison to its end."""
        process = self.start(output, *more, suite=suite)
        out, _ = process.communicate(timeout=600)
        if process.returncode:
            self.failures.append(f"exit status {process.returncode}: {out.strip()[-300:]}")
        return str(out)

    def expect(self, what: str, *, ok: bool) -> None:
        """Note what is not as it should be."""
        if not ok:
            self.failures.append(what)

    def report_equal(self, output: Path, *, once: bool = True) -> str:
        """Compare a ledger with the undisturbed one, and say how."""
        lines = read(output)
        doubled = len(lines) - len({line["key"] for line in lines})
        found = by_key(lines)
        lost = len(self.expected.keys() - found.keys())
        pairs = [(record, found[key]) for key, record in self.expected.items() if key in found]
        names = sorted({name for one, other in pairs for name in one if one[name] != other.get(name)})
        different = sum(one != other for one, other in pairs)
        self.expect(f"{output.name}: {lost} lost, {different} different in {names}", ok=not lost and not different)
        self.expect(f"{output.name}: {doubled} doubled", ok=not (once and doubled))
        self.expect(f"{output.name}: claims are left", ok=not (output / ".records.jsonl.claims").exists())
        return (
            f"{len(lines)} records, {lost} lost, {doubled} {'doubled' if once else 'made again'}, {different} different"
        )

    def running_processes(self) -> list[int]:
        """Processes of the drill that run, beside this one."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                running = process.joinpath("stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
                ours = b"resource_tracker" in process.joinpath("cmdline").read_bytes()  # it ends with this process
                if running and not ours and self.mark.encode() in process.joinpath("environ").read_bytes():
                    found.append(int(process.name))
        return found

    def workers(self) -> list[int]:
        """Processes of runs."""
        found = []
        for pid in self.running_processes():
            with contextlib.suppress(OSError):
                process = Path(f"/proc/{pid}")
                started = b"cwb.harness.worker" in process.joinpath("cmdline").read_bytes()
                if started or process.joinpath("comm").read_bytes() == b"cwb-run\n":  # it may be a fork
                    found.append(pid)
        return found

    def orphans(self) -> int:
        """Count the processes that are still there five seconds after all comparisons have ended."""
        for _ in range(50):
            if not self.running_processes():
                return 0
            time.sleep(0.1)
        return len(self.running_processes())


def read(output: Path) -> list[Record]:
    """Read the whole lines of a ledger."""
    path = output / "records.jsonl"
    content = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in content.splitlines(keepends=True) if line.endswith(b"\n")]


def by_key(lines: list[Record]) -> dict[str, Record]:
    """Last record of every key, without what differs between equal runs."""
    return {line["key"]: {name: value for name, value in line.items() if name not in TIMES} for line in lines}


def kill_comparison(drill: Drill) -> str:
    """Kill -9 of the comparison at random moments; it goes on after each."""
    done = orphans = lost = rounds = 0
    output = drill.folder / "kill-0"
    while done < drill.kills:
        before = (output / "records.jsonl").read_bytes() if (output / "records.jsonl").exists() else b""
        process = drill.start(output)
        try:
            process.communicate(timeout=drill.random.uniform(0.2, 9.0))
            drill.report_equal(output)  # it was faster: the next one begins anew
            rounds += 1
            output = drill.folder / f"kill-{rounds}"
            continue
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        done += 1
        orphans += drill.orphans()
        after = (output / "records.jsonl").read_bytes() if (output / "records.jsonl").exists() else b""
        whole = before[: before.rfind(b"\n") + 1]
        lost += not after.startswith(whole)
    drill.run(output)
    drill.expect(f"{orphans} orphans, {lost} times a record was lost", ok=not orphans and not lost)
    return f"{done} kills over {rounds + 1} ledgers: {drill.report_equal(output)}, {orphans} orphans"


def end_comparison(drill: Drill) -> str:
    """SIGTERM and SIGHUP at random moments: claims, temporary folders and workers are gone; the comparison goes on."""
    output, temporary = drill.folder / "ended", drill.folder / "tmp"
    temporary.mkdir()
    statuses: Counter[int] = Counter()
    for number in [signal.SIGTERM, signal.SIGHUP] * max(2, drill.kills // 10):
        process = drill.start(output, env={"TMPDIR": str(temporary)})
        try:
            process.communicate(timeout=drill.random.uniform(1.5, 6.0))
            drill.report_equal(output)  # it was faster: the next one begins anew
            output = drill.folder / f"ended-{statuses.total()}"
            continue
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        out, _ = process.communicate(timeout=60)
        statuses[process.returncode] += 1
        drill.expect(
            f"{number.name}: exit status {process.returncode}: {out[-200:]}", ok=process.returncode == 128 + number
        )
        drill.expect(f"{number.name}: claims are left", ok=not (output / ".records.jsonl.claims").exists())
        left = [path.name for path in temporary.iterdir()]
        drill.expect(f"{number.name}: {left} are left", ok=not left)
        drill.expect(f"{number.name}: {drill.orphans()} orphans", ok=not drill.orphans())
    drill.run(output)
    return f"exit statuses {dict(statuses)}, nothing left: {drill.report_equal(output)}"


def closed_streams(drill: Drill) -> str:
    """Stdout and stderr that are closed or full: every record is kept, and the exit status says what was lost."""
    told = []
    for name, streams, status in (
        ("closed stdout", ">&-", 1),
        ("full stdout", ">/dev/full", 1),
        ("closed stderr", ">/dev/null 2>&-", 0),
        ("full stderr", ">/dev/null 2>/dev/full", 0),
        ("all closed", "<&- >&- 2>&-", 1),
    ):
        output = drill.folder / name.replace(" ", "-")
        process = drill.start(output, streams=streams)
        out, _ = process.communicate(timeout=300)
        drill.expect(f"{name}: exit status {process.returncode}: {out[-200:]}", ok=process.returncode == status)
        drill.expect(f"{name}: {out!r}", ok=out.count("\n") == (status == 1 and "2>" not in streams))
        told.append(f"{name}: {drill.report_equal(output)}")
    return "; ".join(told)


def kill_workers(drill: Drill) -> str:
    """Kill -9 of the processes of runs; what they did is recorded as failed and made again."""
    output, killed = drill.folder / "workers", 0
    process = drill.start(output)
    while process.poll() is None:
        time.sleep(drill.random.uniform(0.3, 2.0))
        if (workers := drill.workers()) and killed < max(2, drill.kills // 10):
            with contextlib.suppress(ProcessLookupError):
                os.kill(drill.random.choice(workers), signal.SIGKILL)
                killed += 1
    process.communicate()
    errors = sum(line["stopped"] == "crash" for line in read(output))
    drill.run(output, "--retry", "failed")
    return f"{killed} killed, {errors} recorded as such; again: {drill.report_equal(output, once=False)}"


def full_disk(drill: Drill) -> str:
    """Let the disk be full in the middle of a record, and go on when there is space."""
    output = drill.folder / "disk"
    output.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(output)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, check=False, capture_output=True).returncode == 0
    limit = None if mounted else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (14_000, resource.RLIM_INFINITY))
    try:
        process = drill.start(output, preexec_fn=limit)
        out, _ = process.communicate(timeout=300)
        told = process.returncode == 2 and out.startswith("cwb: error: ") and out.count("\n") == 1
        drill.expect(f"a full disk was not told in one line with status 2: {out[-200:]}", ok=told)
        kept = len(read(output))
        tail = (output / "records.jsonl").read_bytes()[-1:]
        drill.expect(f"{kept} records, the last byte is {tail!r}", ok=0 < kept < len(drill.expected) and tail == b"\n")
        if mounted:
            subprocess.run(["mount", "-o", "remount,size=16m", str(output)], check=True)
        drill.run(output)
        how = "a tmpfs of 16 KiB" if mounted else "RLIMIT_FSIZE of 14,000 bytes"
        return f"{how}: {kept} records kept ({out.strip().splitlines()[-1]}); then {drill.report_equal(output)}"
    finally:
        if mounted:
            subprocess.run(["umount", str(output)], check=True)


def bad_methods(drill: Drill) -> str:
    """Stop what hangs, what ignores its limit, what eats memory, and see what crashes."""
    suite, output = drill.folder / "bad.toml", drill.folder / "bad"
    suite.write_text(BAD)
    drill.run(output, "--grace", "1 s", suite=suite)
    found = {line["model"]: line for line in read(output)}
    ended = {name: (line["status"], line["stopped"]) for name, line in found.items()}
    drill.expect(
        f"ended otherwise: {ended}",
        ok=ended
        == {
            "fault-hang": ("feasible", "time"),
            "fault-deaf": ("limit", "time"),
            "fault-eat": ("limit", "memory"),
            "fault-crash": ("error", "crash"),
        },
    )
    drill.expect("an incumbent was lost", ok=all(found[f"fault-{n}"]["incumbent"] for n in ("hang", "deaf", "crash")))
    drill.expect("the answer of what hung was not verified", ok=found["fault-hang"]["verified"] is True)
    seconds = ", ".join(
        f"{name.removeprefix('fault-')} {line['seconds']['total']:.1f} s" for name, line in found.items()
    )
    peak = found["fault-eat"]["peak_rss_bytes"] / 2**20
    return f"{len(found)} records: {seconds}; of 500 MiB {peak:.0f} were held; {drill.orphans()} orphans"


def corrupted_lines(drill: Drill) -> str:
    """Cut the last line, and write nonsense into the middle."""
    output = drill.folder / "corrupted"
    drill.run(output)
    path = output / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"\0" * 100 + b"\n", *lines[3:-1], lines[-1][:500]]))
    drill.run(output)
    broken = (output / "records.jsonl.broken").read_bytes().count(b"\n")
    drill.expect(f"{broken} lines were moved aside", ok=broken == 2)
    return f"{broken} broken lines moved aside, then {drill.report_equal(output)}"


def two_at_once(drill: Drill) -> str:
    """Let two comparisons fill one folder."""
    output = drill.folder / "two"
    both = [drill.start(output) for _ in range(2)]
    outs = [process.communicate(timeout=600)[0] for process in both]
    made = [int(out.split()[0]) for out in outs]
    drill.expect(f"{made} runs were made", ok=sum(made) == len(drill.expected))
    return f"{made[0]} and {made[1]} runs: {drill.report_equal(output)}"


def one_output(drill: Drill) -> str:
    """Let as many runs as there are kills write to one file, half of them through a link; it is whole, and of one."""
    folder = drill.folder / "writers"
    folder.mkdir()
    answer, records = folder / "answer.json", folder / "records.jsonl"
    (folder / "link.json").symlink_to("answer.json")
    answer.touch()
    names = [answer, folder / "link.json"] * (max(6, drill.kills) // 2)
    command = [
        sys.executable,
        "-m",
        "cwb",
        "solve",
        "-qm",
        "ring",
        "--collective",
        "all_reduce",
        "--append",
        str(records),
    ]
    writers = [
        subprocess.Popen([*command, f"ring({4 + number % 5})", "-o", str(name)], stdout=subprocess.DEVNULL)
        for number, name in enumerate(names)
    ]
    statuses = Counter(writer.wait(timeout=600) for writer in writers)
    drill.expect(f"exit statuses {dict(statuses)}", ok=statuses == {0: len(names)})
    written = {line["answer"]["sha256"] for line in map(json.loads, records.read_text().splitlines())}
    digest = hashlib.sha256(answer.read_bytes()).hexdigest()
    drill.expect("the file is of none of the runs", ok=digest in written)
    drill.expect("the link is one no longer", ok=(folder / "link.json").is_symlink())
    check = subprocess.run([sys.executable, "-m", "cwb", "check", str(answer)], capture_output=True, check=False)
    drill.expect(f"the file is wrong: {check.stderr!r}", ok=check.returncode == 0)
    left = sorted(path.name for path in folder.iterdir())
    drill.expect(f"{left} are left", ok=left == ["answer.json", "link.json", "records.jsonl"])
    return f"{len(names)} writers of {len(written)} different files, {len(left)} names, the file is one of them"


def dask(drill: Drill) -> str:
    """Run on four Dask workers and kill one of them."""
    from distributed import LocalCluster

    output = drill.folder / "dask"
    name, value = drill.mark.split("=")
    os.environ[name] = value  # for the workers' runs
    os.environ["PYTHONPATH"] = str(FAULTS)
    with LocalCluster(n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        process = drill.start(output, "--executor", f"dask://{address}")
        while not read(output) or not (workers := drill.workers()):
            time.sleep(0.1)
        victim = parent(workers[0])
        if b"cwb.harness.fork_server" in Path(f"/proc/{victim}/cmdline").read_bytes():
            victim = parent(victim)
        os.kill(victim, signal.SIGKILL)
        process.communicate(timeout=600)
    drill.expect(f"exit status {process.returncode}", ok=process.returncode == 0)
    return f"4 workers, 1 killed at work: {drill.report_equal(output)}"


def parent(pid: int) -> int:
    """Parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


DRILLS: dict[str, Callable[[Drill], str]] = {
    "kill": kill_comparison,
    "signals": end_comparison,
    "streams": closed_streams,
    "workers": kill_workers,
    "disk": full_disk,
    "bad": bad_methods,
    "corrupted": corrupted_lines,
    "two": two_at_once,
    "writers": one_output,
    "dask": dask,
}


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="cwb-drill-") as path:
        yield Path(path)


def main() -> int:
    """Run the drills."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="three kills instead of fifty")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=DRILLS, default=list(DRILLS))
    asked = parser.parse_args()
    with folder() as path:
        drill = Drill(path, 3 if asked.smoke else asked.kills, asked.seed)
        drill.run(path / "undisturbed")
        drill.expected = by_key(read(path / "undisturbed"))
        statuses = Counter(record["status"] for record in drill.expected.values())
        print(f"undisturbed: {len(drill.expected)} records, {dict(statuses)}", flush=True)
        for name in asked.only:
            print(f"{name}: {DRILLS[name](drill)}", flush=True)
        orphans = drill.orphans()
        drill.expect(f"{orphans} processes are left", ok=not orphans)
    for failure in drill.failures:
        print(f"FAILED: {failure}")
    print("all ledgers are equal" if not drill.failures else f"{len(drill.failures)} failures")
    return 1 if drill.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
