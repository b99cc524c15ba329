"""Where runs are made: on this machine, on the workers of a Dask cluster, or as jobs of Slurm.

Every executor is a :class:`concurrent.futures.Executor` that is given :func:`~cwb.harness.supervise.supervise` and a
task; each says how many threads of runs it takes at a time.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..core.errors import InputError
from .environment import cores
from .forks import close_servers, start_servers
from .process import FORKS
from .task import Task

#: Jobs that are in the queue of a cluster at a time, unless somebody says otherwise.
_QUEUED_JOBS = 64

#: How often jobs are asked whether they are done, in seconds.
_POLL_S = 0.2

SPECS = "local, dask://HOST:PORT, slurm, slurm:NAME=VALUE,… or slurm-local"


class RunExecutor(Executor):
    """What every executor can do beside the standard's."""

    @abstractmethod
    def capacity(self) -> int:
        """Threads of runs that it takes at a time."""

    def expect(self, tasks: Sequence[Task]) -> None:
        """Make ready for what will be submitted."""
        del tasks


class LocalExecutor(RunExecutor):
    """Processes of this machine: a thread here watches over each.

    Parameters
    ----------
    jobs : int, optional
        Threads of runs at a time; by default the cores that may be used.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self._jobs = jobs or cores()
        self._stop = threading.Event()
        self._threads = ThreadPoolExecutor(self._jobs)

    def capacity(self) -> int:
        """Number of jobs."""
        return self._jobs

    def expect(self, tasks: Sequence[Task]) -> None:
        """Start what the first runs are forked from, no more than the cores import at a time."""
        if FORKS:
            start_servers(tasks, min(self._jobs, cores()))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn(*args, stop=event)`` in a thread."""
        return self._threads.submit(fn, *args, stop=self._stop, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End; the processes of runs in progress are killed if futures are to be cancelled."""
        if cancel_futures:
            self._stop.set()
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        close_servers()


class DaskExecutor(RunExecutor):
    """The workers of a Dask cluster, where cwb is installed and files have the same names.

    A worker that dies has its runs made again by another one.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``10.0.0.1:8786``.
    jobs : int, optional
        Threads of runs at a time; by default those of all workers.

    Raises
    ------
    InputError
        If Dask is not installed, or nobody answers.
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
        """Number of jobs, or the threads that the cluster has now."""
        return self._jobs or max(1, sum(self._client.nthreads().values()))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run on a worker."""
        future: Future[Any] = self._inner.submit(_on_dask, fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End; runs that are cancelled end on their workers within a second."""
        self._inner.shutdown(wait and not cancel_futures)
        self._client.close()


def _on_dask(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run ``fn(*args, stop=…)`` on a worker, where the event is set when the task is cancelled."""
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
    """A job of the cluster for every run, by submitit.

    Parameters
    ----------
    folder : Path
        Where the logs of the jobs are kept; both sides must see it.
    jobs : int, optional
        Jobs in the queue at a time.
    cluster : str
        ``slurm``, or ``local`` to try it without one.
    **parameters
        Slurm's own, such as ``partition``.

    Raises
    ------
    InputError
        If submitit or the cluster is missing.
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
        self._given, self._jobs = parameters, jobs or _QUEUED_JOBS
        self._open: dict[Future[Any], Any] = {}
        self._lock, self._over = threading.Lock(), threading.Event()
        self._poller = threading.Thread(target=self._poll, daemon=True)
        self._poller.start()

    def capacity(self) -> int:
        """Number of jobs."""
        return self._jobs

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a job that has the threads, the time and the memory of its run."""
        future: Future[Any] = Future()
        asked = {name: value for name, value in _job_of(args[0]).items() if name not in self._given}
        with self._lock:
            self._submitit.update_parameters(**asked)
            self._open[future] = self._submitit.submit(fn, *args, **kwargs)
        future.set_running_or_notify_cancel()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End; the jobs at hand are taken out of the queue, or killed, if futures are to be cancelled."""
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
                    _settle(future, job)
                    with self._lock:
                        del self._open[future]


def _settle(future: Future[Any], job: Any) -> None:
    """Resolve a future with the result of its job."""
    try:
        future.set_result(job.result())
    except Exception as error:
        future.set_exception(error)


def _job_of(task: dict[str, Any]) -> dict[str, Any]:
    """Resources that a job requests: the time and memory of the run, of its verifier and of what watches over them."""
    request, memory = task["cell"]["request"], task["cell"]["memory_bytes"]
    asked: dict[str, Any] = {"cpus_per_task": request["threads"]}
    if request["time_limit_s"] is not None:
        asked["timeout_min"] = 10 + int(3 * (request["time_limit_s"] + task["grace_s"]) / 60)
    if memory is not None:
        asked["mem_gb"] = memory / 2**30 + 1
    return asked


def open_executor(spec: str, folder: Path, jobs: int | None = None) -> RunExecutor:
    """Open an executor by its name on the command line.

    Parameters
    ----------
    spec : str
        ``local``, ``dask://host:port``, ``slurm`` (with parameters: ``slurm:partition=cpu,account=me``) or
        ``slurm-local``.
    folder : Path
        Where jobs of a cluster leave their logs.
    jobs : int, optional
        Threads of runs at a time.

    Raises
    ------
    InputError
        If there is no such executor, or it cannot be had here.
    """
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
