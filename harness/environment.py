"""Where a run ran, and the memory that a process holds."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

#: What makes numbers differ between two machines of the same version of cwb.
_PACKAGES = ("pyomo", "highspy", "gurobipy", "pyscipopt", "numpy", "scipy", "numba")


def cwb_version() -> str:
    """Version of the installed package."""
    return package_version("cwb") or "unknown"


def package_version(name: str) -> str | None:
    """Version of an installed package; None if it is not."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def environment() -> dict[str, Any]:
    """The part of a record about the machine and the libraries."""
    versions = {name: package_version(name) for name in _PACKAGES}
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": cores(),
        "packages": {name: version for name, version in versions.items() if version},
    }


def cores() -> int:
    """Cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu() -> str:
    """Name of the processor, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def memory_bytes(pid: int) -> int | None:
    """Physical memory that a process holds now; None if there is no such process or nobody tells.

    Address space says little: compiled kernels and solvers map two to four times of what they use.
    """
    if sys.platform == "linux":
        return _status_bytes(pid, "VmRSS")
    try:
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
        return int(shown.stdout) * 1024
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None


def spare_bytes() -> int | None:
    """Physical memory that the machine can still give; None where nobody tells."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def peak_rss_bytes() -> int | None:
    """Most physical memory that this process has held; None where nobody tells."""
    if sys.platform == "win32":
        return None
    if sys.platform == "linux" and (peak := _status_bytes(os.getpid(), "VmHWM")) is not None:
        return peak  # getrusage's also counts what the parent held before this program was started
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _status_bytes(pid: int, field: str) -> int | None:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None
