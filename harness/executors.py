"""Executors of runs: this machine, the workers of a Dask cluster, or Slurm jobs.

Every executor is a :class:`concurrent.futures.Executor` that is given :func:`~cwb.harness.supervise.supervise` and
a task, and has a capacity in threads of simultaneous runs.
"""

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..core.errors import InputError
from .environment import cores
from .process import FORKS, close_servers, start_servers
from .task import Task

_QUEUED_JOBS = 64  #: Jobs that are in the queue of a cluster at a time, unless somebody says otherwise.
_POLL_S = 0.2  #: How often jobs are asked whether they are done, in seconds.

SPECS = "local, dask://HOST:PORT, slurm, slurm:NAME=VALUE,… or slurm-local"


class RunExecutor(Executor):
    """Interface of executors beyond the standard library's."""

    @abstractmethod
    def capacity(self) -> int:
        """Return the number of threads of simultaneous runs."""

    def expect(self, tasks: Sequence[Task]) -> None:
        """Prepare for tasks that will be submitted."""
        del tasks


class LocalExecutor(RunExecutor):
    """Executor by processes of this machine, each watched by a thread; by default a run for every usable core."""

    def __init__(self, jobs: int | None = None) -> None:
        self._jobs = jobs or cores()
        self._stop = threading.Event()
        self._threads = ThreadPoolExecutor(self._jobs)

    def capacity(self) -> int:
        """Return the number of jobs."""
        return self._jobs

    def expect(self, tasks: Sequence[Task]) -> None:
        """Start the first runs' fork servers, no more than there are cores for imports."""
        if FORKS:
            start_servers(tasks, min(self._jobs, cores()))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn(*args, stop=event)`` in a thread."""
        return self._threads.submit(fn, *args, stop=self._stop, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut down; kill the processes of runs in progress if futures are cancelled."""
        if cancel_futures:
            self._stop.set()
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        close_servers()


class DaskExecutor(RunExecutor):
    """Executor by workers of a Dask cluster with cwb installed and the same file names.

    Runs of a worker that dies are repeated by another one. The address is that of the scheduler: ``10.0.0.1:8786``.
    """

    def __init__(self, address: str, jobs: int | None = None) -> None:
        try:
            import distributed
        except ImportError:
            raise InputError('needs Dask: pip install "cwb[dask]"', source="--executor") from None
        make: Any = distributed.Client
        try:
            self._client = make(f"tcp://{address}", timeout=10, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"no Dask scheduler: {reason}", source=f"dask://{address}") from None
        self._jobs = jobs
        self._inner = self._client.get_executor(pure=False)

    def capacity(self) -> int:
        """Return the number of jobs, or of the cluster's current threads."""
        return self._jobs or max(1, sum(self._client.nthreads().values()))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run on a worker."""
        future: Future[Any] = self._inner.submit(_on_dask, fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut down; cancelled runs end on their workers within a second."""
        self._inner.shutdown(wait and not cancel_futures)
        self._client.close()


def _on_dask(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run ``fn(*args, stop=…)`` on a worker; cancelling the task sets the event."""
    from distributed import get_worker

    worker, over, stop = get_worker(), threading.Event(), threading.Event()
    key = worker.get_current_task()

    def watch() -> None:
        while not over.wait(1.0):
            task = worker.state.tasks.get(key)
            if task is None or task.state in ("cancelled", "released"):
                stop.set()

    threading.Thread(target=watch, daemon=True).start()
    try:
        return fn(*args, stop=stop, **kwargs)
    finally:
        over.set()


class SlurmExecutor(RunExecutor):
    """Executor by one cluster job per run, through submitit.

    The folder for the jobs' logs is visible to both sides; other parameters are Slurm's own, such as ``partition``.
    """

    def __init__(self, folder: Path, jobs: int | None = None, cluster: str = "slurm", **parameters: str) -> None:
        try:
            import submitit
        except ImportError:
            raise InputError('needs submitit: pip install "cwb[slurm]"', source="--executor") from None
        try:
            self._submitit = submitit.AutoExecutor(folder, cluster=cluster)
            self._submitit.update_parameters(name="cwb", **{f"slurm_{key}": text for key, text in parameters.items()})
        except Exception as error:
            raise InputError(" ".join(str(error).split()), source="--executor") from None
        self._parameters, self._jobs = parameters, jobs or _QUEUED_JOBS
        self._open: dict[Future[Any], Any] = {}
        self._lock, self._over = threading.Lock(), threading.Event()
        self._poller = threading.Thread(target=self._poll, daemon=True)
        self._poller.start()

    def capacity(self) -> int:
        """Return the number of jobs."""
        return self._jobs

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a job with the threads, time and memory of its run."""
        future: Future[Any] = Future()
        resources = {name: value for name, value in _job_of(args[0]).items() if name not in self._parameters}
        with self._lock:
            self._submitit.update_parameters(**resources)
            self._open[future] = self._submitit.submit(fn, *args, **kwargs)
        future.set_running_or_notify_cancel()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut down; remove current jobs from the queue, or kill them, if futures are cancelled."""
        if cancel_futures:
            with self._lock:
                jobs = list(self._open.values())
            for job in jobs:
                job.cancel(check=False)
        elif wait:
            while self._open:
                self._over.wait(_POLL_S)
        self._over.set()
        self._poller.join()

    def _poll(self) -> None:
        while not self._over.wait(_POLL_S):
            with self._lock:
                jobs = list(self._open.items())
            for future, job in jobs:
                if job.done():
                    try:
                        future.set_result(job.result())
                    except Exception as error:
                        future.set_exception(error)
                    with self._lock:
                        del self._open[future]


def _job_of(task: Task) -> dict[str, Any]:
    """Return a job's resources: time and memory of the run, its verifier and their supervisor."""
    request, memory = task.cell.request, task.cell.memory_bytes
    resources: dict[str, Any] = {"cpus_per_task": request.threads}
    if request.time_limit_s is not None:
        resources["timeout_min"] = 10 + int(3 * (request.time_limit_s + task.grace_s) / 60)
    if memory is not None:
        resources["mem_gb"] = memory / 2**30 + 1
    return resources


def open_executor(spec: str, folder: Path, jobs: int | None = None) -> RunExecutor:
    """Open an executor by its name on the command line, such as ``slurm:partition=cpu,account=me``."""
    name, _, rest = spec.partition(":")
    match name:
        case "local" if not rest:
            return LocalExecutor(jobs)
        case "dask" if rest.startswith("//") and len(rest) > 2:
            return DaskExecutor(rest[2:], jobs)
        case "slurm":
            pairs = [pair.partition("=") for pair in rest.split(",") if pair]
            if not all(key and equals and value for key, equals, value in pairs):
                raise InputError(f"{rest!r} is wrong; expected NAME=VALUE,…", source="--executor")
            return SlurmExecutor(folder, jobs, **{key: value for key, _, value in pairs})
        case "slurm-local" if not rest:
            return SlurmExecutor(folder, jobs, "local")
    raise InputError(f"{spec!r} is unknown; expected {SPECS}", source="--executor")
