"""Cases in separate processes, each with a limit in processor seconds, so that endless ones become findings."""

from __future__ import annotations

import os
import resource
import signal
import time
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from cwb.benchmarks.adversary.fault import Campaign, Fault, take_comparisons

#: Seconds on the wall after which a case that uses no processor is given up.
PATIENCE_S = 900

#: Address space of a process: what asks for more is told, and takes nothing from others.
MEMORY_BYTES = 16 * 2**30


class CaseResult(NamedTuple):
    """A case that has been run, its processor seconds, and how often it compared."""

    campaign: str
    seed: int
    faults: list[Fault]
    seconds: float
    comparisons: int = 0


def run(
    campaigns: dict[str, Campaign], tasks: Iterable[tuple[str, list[int]]], processes: int, deadline: float
) -> Iterator[CaseResult]:
    """Run batches of seeds by campaign, starting none after the deadline, a time of ``time.monotonic``."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # threads that wait by spinning would use up the limits of cases
    waiting = deque(tasks)
    workers = [_Worker() for _ in range(processes)]
    try:
        while True:
            for worker in workers:
                if worker.task is None and waiting and time.monotonic() < deadline:
                    worker.begin(*waiting.popleft())
            busy = [worker for worker in workers if worker.task is not None]
            if not busy:
                return
            ready = wait([worker.pipe for worker in busy], timeout=5)
            for worker in busy:
                if worker.pipe in ready:
                    yield from worker.heard(campaigns)
                elif time.monotonic() - worker.since > PATIENCE_S:
                    yield from worker.give_up_case(campaigns, f"no answer in {PATIENCE_S} s")
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process, what it does, and the case that it is at."""

    def __init__(self) -> None:
        self.task: tuple[str, list[int]] | None = None
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.since = time.monotonic()

    def begin(self, campaign: str, seeds: list[int]) -> None:
        """Hand over a batch."""
        self.task, self.since = (campaign, list(seeds)), time.monotonic()
        self.pipe.send(self.task)

    def heard(self, campaigns: dict[str, Campaign]) -> Iterator[CaseResult]:
        """Take what the process tells: a case done."""
        try:
            done: CaseResult = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            yield from self.give_up_case(campaigns, "its process died")
            return
        self.since = time.monotonic()
        assert self.task is not None
        self.task[1].remove(done.seed)
        if not self.task[1]:
            self.task = None
        yield done

    def give_up_case(self, campaigns: dict[str, Campaign], why: str) -> Iterator[CaseResult]:
        """Up the case that the process was at, and go on with the next one in a new process."""
        assert self.task is not None
        name, seeds = self.task
        self.stop()
        campaign = campaigns[name]
        if self.process.exitcode == -signal.SIGPROF:
            why = f"not in {campaign.cpu_s} processor seconds"
        fault = Fault(
            "does not end",
            f"--campaign {name} --seed {seeds[0]} --cases 1",
            why,
            "an end",
            campaign.endless and campaign.endless(seeds[0]),
        )
        yield CaseResult(name, seeds[0], [fault], float(campaign.cpu_s))
        self._start()
        self.task = None
        if seeds[1:]:
            self.begin(name, seeds[1:])

    def stop(self) -> None:
        """End the process: one that waits ends by itself when nobody is there to ask."""
        self.pipe.close()
        if self.task is None:
            self.process.join(10)
        self.process.kill()
        self.process.join()


def _serve(pipe: Connection) -> None:
    """Run what is asked for, case by case; the alarm of the limit ends the process, whatever it is doing."""
    from cwb.benchmarks.adversary.campaigns import CAMPAIGNS

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    while True:
        try:
            name, seeds = pipe.recv()
        except EOFError:
            return
        campaign = CAMPAIGNS[name]
        for seed in seeds:
            began = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, campaign.cpu_s)
            take_comparisons()  # what a case before it left
            faults = _case(campaign, seed)
            signal.setitimer(signal.ITIMER_PROF, 0)
            pipe.send(CaseResult(name, seed, faults, time.process_time() - began, take_comparisons()))


def _case(campaign: Campaign, seed: int) -> list[Fault]:
    try:
        return list(campaign.case(seed))
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} at {place.filename}:{place.lineno}"
        return [Fault("the adversary fails", f"--campaign {campaign.name} --seed {seed}", text, "an oracle", None)]


def batches(campaign: Campaign, seeds: Iterable[int]) -> Iterator[tuple[str, list[int]]]:
    """Cut seeds into batches."""
    row: list[Any] = []
    for seed in seeds:
        row.append(seed)
        if len(row) == campaign.batch:
            yield campaign.name, row
            row = []
    if row:
        yield campaign.name, row
