"""Files of MSCCL checked: by the rules of the runtimes, by running them, and together as a folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import located
from ...core.files import read_whole
from .dialects import DEFAULT_MAX_BYTES, DIALECTS, MAX_CHILDREN, Dialect
from .findings import Finding, Findings
from .interpreter import execute
from .lint import RULES, lint
from .outcome import check_outcome
from .program import Algorithm
from .quirks import quirks
from .read import MAX_BYTES, parse_algorithm

#: A program that breaks one of these rules cannot be run.
_NEEDED = ("gpus", "peers", "loop", "types", "counts", "peerless", "buffer_names", "connections", "chains")


@dataclass(frozen=True)
class Checked:
    """What is found in a file.

    Parameters
    ----------
    path : Path
        The file.
    algorithm : Algorithm
        What it says.
    text : Findings
        What the runtimes' readers stumble over.
    rules : dict of str to Findings
        By the rules of every dialect that was asked for.
    runs : dict of str to Findings
        What goes wrong when it runs ``in`` and ``out`` of place; empty where it cannot be run.
    root : int or None
        The root of a collective that has one.
    """

    path: Path
    algorithm: Algorithm
    text: Findings
    rules: dict[str, Findings]
    runs: dict[str, Findings]
    root: int | None

    @property
    def runs_on(self) -> tuple[str, ...]:
        """Dialects that take it."""
        return tuple(name for name, findings in self.rules.items() if not findings.wrong)

    @property
    def problems(self) -> list[str]:
        """What is wrong in it, whatever the dialect, or for every dialect."""
        wrong = [*self.text.wrong, *(finding for run in self.runs.values() for finding in run.wrong)]
        found = list(dict.fromkeys(map(str, wrong)))
        if not self.runs_on:
            found += dict.fromkeys(
                f"{name}: {finding}" for name, findings in self.rules.items() for finding in findings.wrong
            )
        return found

    @property
    def notes(self) -> list[str]:
        """What is worth knowing: what a dialect rejects that others take, and what is not wrong."""
        found: list[str] = []
        for name, findings in self.rules.items():
            told: list[Finding] = findings.kept if self.runs_on else [one for one in findings.kept if not one.wrong]
            found += [f"{name}: {finding}" for finding in told]
        return list(dict.fromkeys(found))


def check_file(path: Path, dialects: Sequence[Dialect]) -> Checked:
    """Check a file.

    Raises
    ------
    InputError
        If it cannot be read, see :func:`~.read.read_algorithm`.
    """
    with located(source=str(path)):
        raw = read_whole(path, MAX_BYTES, "an XML file")
        algorithm = parse_algorithm(raw)
    return check_algorithm(algorithm, dialects, path, quirks(raw))


def check_algorithm(
    algorithm: Algorithm, dialects: Sequence[Dialect], path: Path = Path(), text: Findings | None = None
) -> Checked:
    """Check a program; see :func:`check_file`."""
    rules = {dialect.name: lint(algorithm, dialect) for dialect in dialects}
    runs: dict[str, Findings] = {}
    root: int | None = None
    if obstacle(algorithm) is None:
        for inplace in placements(algorithm):
            run = execute(algorithm, inplace=inplace)
            if run.ended:
                root = check_outcome(run)
            runs["in" if inplace else "out"] = run.findings
    return Checked(path, algorithm, text or Findings(), rules, runs, root)


def obstacle(algorithm: Algorithm) -> Finding | None:
    """Why a program cannot be run at all; None if it can."""
    if algorithm.ngpus > MAX_CHILDREN:
        return Finding("elements", f"{algorithm.ngpus:,} GPUs; expected at most {MAX_CHILDREN:,}")
    for gpu in algorithm.gpus:
        if len({block.id for block in gpu.blocks}) < len(gpu.blocks):
            return Finding("blocks", "two thread blocks have the same id", f"gpu {gpu.id}")
    for name in _NEEDED:
        for text, place, wrong in RULES[name](algorithm, DIALECTS["msccl-executor"]):
            if wrong:
                return Finding(name, text, place)
    return None


def placements(algorithm: Algorithm) -> list[bool]:
    """Whether the calls that a file is for are in place: both, if it is for both."""
    inplace = bool(algorithm.inplace)
    outofplace = not inplace if algorithm.outofplace is None else bool(algorithm.outofplace)
    return [placed for placed, said in ((True, inplace), (False, outofplace)) if said]


def ranges(files: Sequence[Checked], dialect: Dialect) -> list[str]:
    """Holes and overlaps of the sizes that files of one collective, number of GPUs and placement are for."""
    groups: dict[tuple[str, int, bool], list[tuple[int, int | None, str]]] = defaultdict(list)
    for one in files:
        algorithm = one.algorithm
        for placed in placements(algorithm):
            span = _span(algorithm, dialect)
            groups[algorithm.coll, algorithm.ngpus, placed].append((*span, one.path.name))
    found: list[str] = []
    for (coll, ngpus, placed), spans in sorted(groups.items(), key=lambda item: item[0]):
        what = f"{dialect.name}: {coll} of {ngpus} GPUs, {'in place' if placed else 'out of place'}"
        found += [f"{what}: {text}" for text in _between(sorted(spans, key=lambda span: span[0]))]
    return found


def _span(algorithm: Algorithm, dialect: Dialect) -> tuple[int, int | None]:
    """First size that a file is for, and the first that it is not for; None without end."""
    low, high = algorithm.min_bytes or 0, algorithm.max_bytes
    if dialect.exclusive:
        return low, DEFAULT_MAX_BYTES if high is None else high
    return low, None if not high else high + 1


def _between(spans: list[tuple[int, int | None, str]]) -> list[str]:
    """Holes and overlaps of spans that are sorted by their begin."""
    found: list[str] = []
    end, name = spans[0][1], spans[0][2]
    for low, high, other in spans[1:]:
        if end is None or low < end:
            upto = [one for one in (end, high) if one is not None]
            last = f"{min(upto) - 1:,}" if upto else "any size"
            found.append(f"{name} and {other} overlap from {low:,} to {last} bytes")
        elif low > end:
            found.append(f"a hole from {end:,} to {low - 1:,} bytes, between {name} and {other}")
        if end is not None and (high is None or high > end):
            end, name = high, other
    return found
