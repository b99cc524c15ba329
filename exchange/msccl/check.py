"""Checks of MSCCL files: by the rules of the runtimes, by running them, and as a folder for many sizes."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import locate_errors
from ...core.files import read_whole, without_collector
from .dialects import DEFAULT_MAX_BYTES, DIALECTS, MAX_CHILDREN, Dialect
from .files import MAX_BYTES, parse_algorithm, quirks, shorten
from .findings import Finding, Findings, first_fault
from .interpreter import execute
from .lint import RULES, lint
from .outcome import check_outcome
from .program import Algorithm

#: A program that breaks one of these rules cannot be run.
_NEEDED = ("gpus", "peers", "loop", "types", "counts", "peerless", "buffer_names", "connections", "chains")
LOADED = {"msccl": 4}  #: Programs that microsoft/msccl loads; it leaves out the others (``MSCCL_MAX_NUM_ALGOS``).


@dataclass(frozen=True)
class AlgorithmReport:
    """Findings in a file."""

    path: Path
    algorithm: Algorithm
    text: Findings  #: Faults that only the runtimes' own XML readers stumble over.
    rules: dict[str, Findings]
    runs: dict[str, Findings]  #: Faults of a run ``in`` and ``out`` of place; empty if it cannot be run.
    root: int | None

    @property
    def runs_on(self) -> tuple[str, ...]:
        """Dialects that take it."""
        return tuple(name for name, findings in self.rules.items() if not findings.wrong)

    @property
    def problems(self) -> list[str]:
        """Faults for every dialect."""
        texts = [str(finding) for findings in (self.text, *self.runs.values()) for finding in findings.wrong]
        if not self.runs_on:
            texts += [f"{name}: {finding}" for name, findings in self.rules.items() for finding in findings.wrong]
        return list(dict.fromkeys(texts))

    @property
    def notes(self) -> list[str]:
        """Remarks: faults for some dialects only, and findings that are no faults."""
        every = ((name, finding) for name, findings in self.rules.items() for finding in findings.first)
        return list(dict.fromkeys(f"{name}: {one}" for name, one in every if self.runs_on or not one.wrong))


@without_collector()
def check_file(path: Path, dialects: Sequence[Dialect]) -> AlgorithmReport:
    """Check a file."""
    with locate_errors(source=str(path)):
        raw, runs = shorten(read_whole(path, MAX_BYTES, "an XML file"))
        return check_algorithm(parse_algorithm(raw, runs), dialects, path, quirks(raw))


def check_algorithm(
    algorithm: Algorithm, dialects: Sequence[Dialect], path: Path = Path(), text: Findings | None = None
) -> AlgorithmReport:
    """Check a program; see :func:`check_file`."""
    rules = {dialect.name: lint(algorithm, dialect) for dialect in dialects}
    runs: dict[str, Findings] = {}
    root: int | None = None
    if obstacle(algorithm) is None:
        for inplace in placements(algorithm):
            run = execute(algorithm, inplace=inplace)
            root = check_outcome(run)
            runs["in" if inplace else "out"] = run.findings
    return AlgorithmReport(path, algorithm, text or Findings(), rules, runs, root)


def obstacle(algorithm: Algorithm) -> Finding | None:
    """Return the reason why a program cannot be run at all; None if it can."""
    if algorithm.ngpus > MAX_CHILDREN:
        return Finding("elements", f"{algorithm.ngpus:,} GPUs; expected at most {MAX_CHILDREN:,}")
    for gpu in algorithm.gpus:
        if len({block.id for block in gpu.blocks}) < len(gpu.blocks):
            return Finding("blocks", "two thread blocks have the same id", f"gpu {gpu.id}")
    return first_fault(RULES, _NEEDED, algorithm, DIALECTS["msccl-executor"])


def placements(algorithm: Algorithm) -> list[bool]:
    """Return whether a file is for calls in place, out of place, or both."""
    inplace = bool(algorithm.inplace)
    outofplace = not inplace if algorithm.outofplace is None else bool(algorithm.outofplace)
    return [placed for placed, supports in ((True, inplace), (False, outofplace)) if supports]


def ranges(files: Sequence[AlgorithmReport], dialect: Dialect) -> list[str]:
    """Holes and overlaps of the sizes that files of one collective, number of GPUs and placement are for."""
    groups: dict[tuple[str, int, bool], list[tuple[int, int | None, str]]] = defaultdict(list)
    for one in files:
        algorithm = one.algorithm
        high = algorithm.max_bytes
        end = high + 1 if high else None
        if dialect.exclusive:
            end = DEFAULT_MAX_BYTES if high is None else high
        for placed in placements(algorithm):
            groups[algorithm.coll, algorithm.ngpus, placed].append((algorithm.min_bytes or 0, end, one.path.name))
    texts: list[str] = []
    for (coll, ngpus, placed), spans in sorted(groups.items(), key=lambda item: item[0]):
        what = f"{dialect.name}: {coll} of {ngpus} GPUs, {'in place' if placed else 'out of place'}"
        texts += [f"{what}: {text}" for text in _between(sorted(spans, key=lambda span: span[0]))]
    return texts


def _between(spans: list[tuple[int, int | None, str]]) -> list[str]:
    """Holes and overlaps of spans that are sorted by their begin: first size, first beyond (None without end), file."""
    texts: list[str] = []
    end, name = spans[0][1], spans[0][2]
    for low, high, other in spans[1:]:
        if end is None or low < end:
            upto = [one for one in (end, high) if one is not None]
            last = f"{min(upto) - 1:,}" if upto else "any size"
            texts.append(f"{name} and {other} overlap from {low:,} to {last} bytes")
        elif low > end:
            texts.append(f"a hole from {end:,} to {low - 1:,} bytes, between {name} and {other}")
        if end is not None and (high is None or high > end):
            end, name = high, other
    return texts


def faults(files: Sequence[AlgorithmReport], first: int, last: int, dialect: Dialect) -> list[str]:
    """Return the faults of files for a range of sizes: their own, holes, overlaps, ends."""
    texts = [f"{one.path.name}: {problem}" for one in files for problem in one.problems] + ranges(files, dialect)
    ends = files[0].algorithm.min_bytes, files[-1].algorithm.max_bytes
    if ends != (first, last + dialect.exclusive):
        texts.append(f"files for {ends[0]} to {ends[1]} bytes; expected {first} to {last + dialect.exclusive}")
    return texts


def config_text(files: Sequence[tuple[Path, Algorithm]]) -> str:
    """Write the file for ``MSCCL_CONFIG`` of microsoft/msccl: path, sizes and protocol of each program.

    A size is in a range if it is ``minbytes`` or larger and smaller than ``maxbytes``. The runtime reads it with the
    reader of programs: no declaration, an element on a line, double quotes.
    """
    lines = [
        f'  <load path="{path}" minbytes="{one.min_bytes}" maxbytes="{one.max_bytes}" proto="{one.proto}"/>\n'
        for path, one in files
    ]
    return "".join(["<msccl_algos>\n", *lines, "</msccl_algos>\n"])
