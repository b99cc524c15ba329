"""Machine and libraries of a run, and memory use of processes."""

import os
import platform
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ..core.record import RunRecord

#: What makes numbers differ between two machines of the same version of cwb.
_PACKAGES = ("pyomo", "highspy", "gurobipy", "pyscipopt", "numpy", "scipy", "numba")


def cwb_version() -> str:
    """Return the version of the installed package."""
    return package_version("cwb") or "unknown"


@cache
def package_version(name: str) -> str | None:
    """Return the version of an installed package, None if missing."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def environment() -> dict[str, Any]:
    """Return the fields of a record about the machine and the libraries."""
    versions = {name: package_version(name) for name in _PACKAGES}
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": cores(),
        "packages": {name: version for name, version in versions.items() if version},
    }


def time_stamp() -> str:
    """Return the time of day, as records have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def study_record(**facts: Any) -> RunRecord:
    """Return the record of a study, not of a method: no collective, no solver, and an objective in s."""
    same: dict[str, Any] = dict.fromkeys(("collective", "solver", "solver_version"))
    same |= {"cwb_version": cwb_version(), "threads": 1, "status": "feasible", "objective_unit": "s"}
    return RunRecord(host=platform.node(), **same, **facts)


def cores() -> int:
    """Return the number of cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu() -> str:
    """Return the processor's name, as far as the system reports it."""
    with suppress(OSError):
        if match := re.search(r"^model name\s*:(.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE):
            return match[1].strip()
    return platform.processor() or platform.machine()


def memory_bytes(pid: int) -> int | None:
    """Return a process's resident memory; None if it does not exist or the system does not report it.

    Address space says little: compiled kernels and solvers map two to four times of what they use.
    """
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except (psutil.Error, OSError):
        return None


def spare_bytes() -> int:
    """Return the physical memory that is still available."""
    import psutil

    return int(psutil.virtual_memory().available)


def peak_rss_bytes() -> int | None:
    """Return this process's peak resident memory; None if the system does not report it."""
    if sys.platform == "win32":
        return None
    if sys.platform == "linux":  # psutil knows no peak here, and getrusage's counts what was held before a fork
        with suppress(OSError):
            if match := re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text()):
                return int(match[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
