"""Results of nccl-tests and rccl-tests: the printed table, and the file of ``-J``.

A line of the table is ``size count type redop root time algbw busbw #wrong``, the last four twice, out of place and in
place; older versions have no ``root`` and call the last one ``error``. Text before or after a line, such as a time
stamp or a host name, is ignored, as are lines of other kinds. A size is that of the whole data, as everywhere in cwb.
Sources: ``src/util.cu`` and ``src/common.cu`` of NVIDIA/nccl-tests a0b82b2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.collective import Collective
from ..core.errors import InputError, locate_errors, show_value
from ..core.files import read_text

MAX_BYTES = 16 * 2**20

#: Times of a file at most, and letters of a line with some.
MAX_SAMPLES, MAX_LINE = 10_000, 1000

#: Bytes and microseconds of a time that is one; zero stands for none.
_SIZES, _LEAST_US, _MOST_US = 2**60, 1e-3, 1e12

#: Programs by the collective that they measure; sizes of the others mean something else.
PROGRAMS = {
    "all_reduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "broadcast": Collective.BROADCAST,
    "reduce": Collective.REDUCE,
    "alltoall": Collective.ALL_TO_ALL,
}

_PROGRAM = re.compile(r"\b(all_reduce|all_gather|reduce_scatter|broadcast|reduce|alltoall)_perf")
_TYPE = r"(?:u?int(?:8|32|64)?|half|float|double|bfloat16|fp?8_?e\w+|f8e\w+|float8_?e\w+)"
_LINE = re.compile(rf"(?<![\w.])([0-9]+)\s+[0-9]+\s+{_TYPE}\s+(?:[a-z]\w*\s+)?((?:[-+.\w/]+\s*)+)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?\Z")

#: Columns of one half of a line: time, two bandwidths, errors.
_HALF = 4

_RANK = re.compile(r"\bRank\s{1,9}([0-9]{1,9})\s{1,9}(?:Group\s{1,9}[0-9]{1,9}\s{1,9})?Pid\s")
_LIBRARY = re.compile(r"nccl-library=([0-9]+)|NCCL version ([0-9]+\.[0-9]+\.[0-9]+)")


@dataclass(frozen=True)
class Sample:
    """One time."""

    size: int
    seconds: float
    in_place: bool


@dataclass(frozen=True)
class Measurements:
    """Measurements in a file."""

    samples: tuple[Sample, ...]  #: Samples in the order of the file; those of no bytes or no time are left out.
    collective: Collective | None
    ranks: int | None
    version: str


def read_measured(path: Path) -> Measurements:
    """Read a file of either kind."""
    with locate_errors(source=str(path)):
        text = read_text(path, MAX_BYTES)
        found = _from_json(text) if text.lstrip().startswith("{") else _from_text(text)
        if not found.samples:
            raise InputError("no line with a size and times; expected the output of nccl-tests, or its -J file")
        if len(found.samples) > MAX_SAMPLES:
            raise InputError(f"{len(found.samples):,} times; expected at most {MAX_SAMPLES:,}")
        return found


def _from_text(text: str) -> Measurements:
    samples: list[Sample] = []
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) <= MAX_LINE and (found := _LINE.search(line)) is not None:
            with locate_errors(f"line {number}"):
                samples += _samples(int(found[1]), found[2].split())
    ranks = {int(number) for number in _RANK.findall(text)}
    return Measurements(tuple(samples), _collective(text), len(ranks) or None, _version(text))


def _samples(size: int, words: Sequence[str]) -> Iterator[Sample]:
    """Yield the times of a line from the words after type and operator; a root adds one word."""
    rooted = len(words) > 2 * _HALF or len(words) == _HALF + 1
    halves = words[int(rooted) :]
    for place in range(2):
        time = halves[place * _HALF] if len(halves) >= (place + 1) * _HALF else ""
        if _NUMBER.match(time):
            yield from _sample(size, float(time), place == 1)


def _sample(size: int, microseconds: float, in_place: bool) -> Iterator[Sample]:
    """Yield a sample, if there are bytes and time."""
    if not 0 <= size <= _SIZES:
        raise InputError(f"{show_value(size)}; expected a size of at most 2^60 bytes")
    if microseconds != 0 and not _LEAST_US <= microseconds <= _MOST_US:
        raise InputError(f"{microseconds:g} us; expected a time from {_LEAST_US:g} to {_MOST_US:g} us")
    if size > 0 and microseconds > 0:
        yield Sample(size, microseconds * 1e-6, in_place)


def _collective(text: str) -> Collective | None:
    names = set(_PROGRAM.findall(text))
    return PROGRAMS[names.pop()] if len(names) == 1 else None


def _version(text: str) -> str:
    found = _LIBRARY.search(text)
    if found is None:
        return ""
    return found[2] or _version_text(int(found[1]))


def _version_text(code: int) -> str:
    """Format NCCL's version code, such as 22907."""
    return f"{code // 10000}.{code % 10000 // 100}.{code % 100}" if code >= 10000 else ""


def _from_json(text: str) -> Measurements:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("not JSON") from None
    results = data.get("results") if isinstance(data, dict) else None
    if not isinstance(results, list):
        raise InputError(f"{show_value(results)}; expected a list", place="results")
    samples = [sample for index, result in enumerate(results) for sample in _of_result(result, f"results[{index}]")]
    args = data.get("args")
    program = _collective(" ".join(map(str, args[:1]))) if isinstance(args, list) else None
    config = data.get("config")
    listed = data.get("ranks", config.get("ranks") if isinstance(config, dict) else None)
    ranks = (
        {show_value(one.get("rank")) for one in listed if isinstance(one, dict)} if isinstance(listed, list) else set()
    )
    code = data.get("nccl_version")
    return Measurements(
        tuple(samples), program, len(ranks) or None, _version_text(code) if isinstance(code, int) else ""
    )


def _of_result(result: Any, place: str) -> Iterator[Sample]:
    if not isinstance(result, dict) or not isinstance(size := result.get("size"), int):
        raise InputError("expected an object with a size", place=place)
    for key in ("out_of_place", "in_place"):
        half = result.get(key)
        if isinstance(half, Mapping):
            time = half.get("time")
            if isinstance(time, bool) or not isinstance(time, (int, float)) or not 0 <= time <= _MOST_US:
                raise InputError(f"{show_value(time)}; expected microseconds", place=f"{place}.{key}.time")
            with locate_errors(f"{place}.{key}"):
                yield from _sample(size, time, key == "in_place")
