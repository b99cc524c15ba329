"""Commands of cwb as users call them; an internal error is reported, not raised."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import cwb
from cwb.benchmarks.adversary.fault import Fault, count_comparisons
from cwb.core.errors import CwbError
from cwb.harness import Request, run
from cwb.schedules import verdict_of

#: Relative difference of floating-point numbers that says nothing.
ROUNDING = 1e-9

#: Exit statuses that no run of an unmodified method may end with.
WRONG_STATUS = {1: "internal error", 5: "verification failed"}


def folder() -> Path:
    """A folder of this process for files."""
    path = Path(tempfile.gettempdir()) / f"adversary-{os.getpid()}"
    path.mkdir(exist_ok=True)
    return path


def load(data: Mapping[str, Any]) -> Any:
    """Load the data of an instance file; rates such as ``1/3 B/s``, invalid in files, are set afterwards."""
    path = folder() / "instance.json"
    links = data["network"]["links"]
    odd = {
        index: Fraction(link["bandwidth"].split()[0])
        for index, link in enumerate(links)
        if "/" in link["bandwidth"][:-3]
    }
    if odd:
        plain = [{**link, "bandwidth": "1 B/s"} if index in odd else link for index, link in enumerate(links)]
        data = {**data, "network": {**data["network"], "links": plain}}
    path.write_text(json.dumps(data))
    loaded = cwb.load(path)
    if odd:
        network = loaded.network
        exact = (replace(link, bandwidth_Bps=odd.get(i, link.bandwidth_Bps)) for i, link in enumerate(network.links))
        loaded = loaded.with_changes(network=replace(network, links=tuple(exact)))
    return loaded


@dataclass
class Reply:
    """The result of a question.

    Parameters
    ----------
    question : str
        Asks it again.
    instance, record, answer, certificate : object
        As cwb gives them; None where it did not.
    refused, crash : str or None
        The error that it was refused with, and the one that should not have happened.
    warned : list of str
        Warnings on the way.
    """

    question: str
    instance: Any = None
    record: Any = None
    answer: Any = None
    certificate: Any = None
    refused: str | None = None
    crash: str | None = None
    warned: list[str] = field(default_factory=list)

    @property
    def has_answer(self) -> bool:
        """True if there is an answer that the verifier accepted."""
        return self.record is not None and self.record.objective is not None and self.record.verified is not False

    @property
    def outcome_text(self) -> str:
        """Status, objective and bound in a line."""
        if self.record is None:
            return self.crash or self.refused or "nothing"
        record = self.record
        wrong = f", {record.violations[0]}" if record.violations else ""
        return f"{record.status} {record.objective!r}, bound {record.bound!r}, exit status {record.exit_status}{wrong}"


def solve(data: Mapping[str, Any], model: str, *, time_limit_s: float | None = None, **options: Any) -> Reply:
    """Solve the data of an instance file with a method."""
    solved = Reply(solve_command(data, model, options))
    with watch_errors(solved):
        instance = load(data)
        done = run(instance, Request(model, options=options, time_limit_s=time_limit_s))
        solved.instance, solved.record = done.instance, done.record
        solved.answer, solved.certificate = done.answer, done.certificate
    return solved


@contextlib.contextmanager
def watch_errors(solved: Reply) -> Iterator[None]:
    """Report errors and warnings of what is done inside."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            yield
        except CwbError as error:
            solved.refused = f"{type(error).__name__}: {error}"
        except (Exception, RecursionError) as error:
            solved.crash = f"internal error: {type(error).__name__}: {error}"[:300]
    solved.warned += [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]


def solve_command(data: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> str:
    """Command line that asks a question, the instance on its standard input written out."""
    words = [
        f"-O {shlex.quote(f'{k}={v if isinstance(v, str) else json.dumps(v, default=str)}')}"
        for k, v in options.items()
    ]
    return " ".join(["cwb solve --model", model, shlex.quote(json.dumps(data, separators=(",", ":"))), *words])


def conduct(solved: Reply, defect: int | None = None) -> list[Fault]:
    """Yield faults visible without an oracle: a crash, a warning, exit status 1 or 5, an exceeded bound."""
    found: list[Fault] = []

    def add(kind: str, known: str) -> None:
        found.append(Fault(kind, solved.question, solved.outcome_text, known, defect))

    if solved.crash:
        add("internal error", "an answer or a reason")
    for text in solved.warned[:1]:
        found.append(Fault("warning", solved.question, text, "no warning", defect))
    record = solved.record
    if record is not None and record.exit_status in WRONG_STATUS:
        add(WRONG_STATUS[record.exit_status], "exit status 0, 3, 4, 6 or 7")
    if solved.has_answer and record.bound is not None and not record.bound <= record.objective * (1 + ROUNDING):
        add("bound above the objective", "a bound is at most the objective")
    if solved.has_answer and record.status == "optimal" and record.bound is None:
        add("optimal without a bound", "a bound")
    return found


def claims(solved: Reply, best: Fraction | float | None, what: str, defect: int | None = None) -> list[Fault]:
    """Hold status and bound against an answer that is known; None is one that is known not to exist."""
    record = solved.record
    if record is None or record.status in ("unsupported", "error"):
        return []
    count_comparisons()
    known = f"{what}: {best if best is None else float(best)!r}"
    if best is None:
        return (
            [Fault("answer to what has none", solved.question, solved.outcome_text, known, defect)]
            if solved.has_answer
            else []
        )
    if record.status == "infeasible":
        return [Fault("feasible called infeasible", solved.question, solved.outcome_text, known, defect)]
    found: list[Fault] = []
    top = float(best) * (1 + ROUNDING)
    if record.status == "optimal" and record.objective is not None and record.objective > top:
        found.append(Fault("better than optimal", solved.question, solved.outcome_text, known, defect))
    elif record.bound is not None and record.bound > top and record.verified is not False:
        found.append(Fault("bound above an answer", solved.question, solved.outcome_text, known, defect))
    return found


def impossible(solved: Reply, least: Fraction | float, what: str, defect: int | None = None) -> list[Fault]:
    """Hold an objective against a lower bound that is known."""
    count_comparisons(solved.has_answer)
    if solved.has_answer and solved.record.objective < float(least) * (1 - ROUNDING):
        return [Fault("below a bound", solved.question, solved.outcome_text, f"{what}: {float(least)!r}", defect)]
    return []


def verdict(instance: Any, answer: Any, certificate: Any = None) -> tuple[Any, str | None]:
    """Have an answer verified; give the verdict, or the error that should not have happened."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return verdict_of(instance, answer, certificate), None
        except CwbError:
            return None, None
        except (Exception, RecursionError) as error:
            return None, f"{type(error).__name__}: {error}"[:300]


def command(*words: str) -> tuple[int, str, str]:
    """Run a command of cwb in this process; give exit status, standard output and standard error."""
    from cwb.cli.main import run as cwb_run

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    status = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        try:
            cwb_run(list(words))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
    texts = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read())
    return status, texts[0], texts[1]


def command_text(words: tuple[str, ...]) -> str:
    """A command line as it is typed."""
    return "cwb " + " ".join(map(shlex.quote, words))
