"""Record of a run, printed by ``cwb solve --json`` and read by tables."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from .display import DisplayMixin
from .errors import ExitStatus, InputError, locate_os_errors
from .jsonl import lock_for_append
from .strict_json import parse_json

SCHEMA = "cwb-record/1"

#: How a bound is known: recomputed by the verifier, attested by a solver or a method, or none.
RECOMPUTED, ATTESTED, NONE = PROOFS = ("recomputed", "attested", "none")

MAX_LINE_BYTES = 64 * 2**20  #: A line longer than this is not a record; nothing larger is taken into memory.

_MAX_KEYS = 2**16


@dataclass(frozen=True, repr=False)
class RunRecord(DisplayMixin):
    """One run of one method on one instance; the fields are a contract with other people's scripts.

    The last ones are those of ``cwb compare``; records without them can be read.
    """

    cwb_version: str
    model: str
    kind: str
    instance: str
    instance_sha256: str
    collective: str | None
    solver: str | None
    solver_version: str | None
    options: Mapping[str, Any]
    seed: int
    threads: int
    status: str
    objective: float | None = None
    objective_unit: str | None = None
    sense: str = "minimize"
    bound: float | None = None
    gap: float | None = None
    verified: bool | None = None
    violations: tuple[str, ...] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    size: Mapping[str, int] = field(default_factory=dict)
    answer: Mapping[str, Any] | None = None
    certificate: Mapping[str, Any] | None = None
    message: str = ""
    host: str = ""
    started_at: str = ""
    exit_status: int = 0
    #: Digest of the whole task: instance, method, options, seed, limits, solver and versions. Of several records with
    #: the same key the last one counts.
    key: str = ""
    #: Those of ``time_limit_s``, ``gap`` and ``memory_bytes`` that were set.
    limits: Mapping[str, Any] = field(default_factory=dict)
    #: Reason why the run was ended from outside: ``time``, ``memory``, or ``crash`` if its process died by itself.
    stopped: str | None = None
    #: Last report of a run before it was stopped: ``objective`` and ``bound`` (neither is verified), their origin
    #: ``of`` (``method``, or ``solver`` for the objective of the solver's own model), and its time ``seconds``.
    incumbent: Mapping[str, Any] | None = None
    #: Reports that improved ``objective`` or ``bound``, in the form of ``incumbent``, at most 200.
    history: Sequence[Mapping[str, Any]] = field(default_factory=list)
    peak_rss_bytes: int | None = None
    #: Environment of the run: ``python``, ``platform``, ``cpu``, ``cores`` and the ``packages`` by version.
    environment: Mapping[str, Any] = field(default_factory=dict)
    #: Proof of ``bound``: ``recomputed`` by the verifier from the certificate, ``attested`` by a solver or the method,
    #: or ``none`` without a bound. A bound in a record without this field counts as attested.
    proof: str = NONE
    solver_options: Mapping[str, Any] = field(default_factory=dict)
    #: Reason why there is no answer, if requested: an :class:`~cwb.core.explanation.Explanation`.
    explanation: Mapping[str, Any] | None = None
    #: Best solutions of a declared model, if several were requested: ``rank``, ``model_objective`` and ``answer`` of
    #: each, and from the verifier ``objective``, ``verified`` and ``violations``.
    pool: Sequence[Mapping[str, Any]] = field(default_factory=list)
    #: Value of more bandwidth, if requested: a :class:`~cwb.core.sensitivity.Sensitivity`.
    sensitivity: Mapping[str, Any] | None = None
    #: Size of the collective, see :class:`~cwb.core.collective.Collective`; None without one, of several at once, and
    #: in older records.
    size_bytes: float | None = None
    #: Constraints whose rule was called row by row and not once for all rows, and why.
    row_by_row: Mapping[str, str] = field(default_factory=dict)
    bound_of: str | None = None  #: Method whose ``bound`` it is; None without one, and in older records.
    schema: str = SCHEMA

    def __post_init__(self) -> None:
        if self.bound is not None and self.proof == NONE:
            object.__setattr__(self, "proof", ATTESTED)

    @property
    def shown_status(self) -> str:
        """Status as printed; an optimum whose bound is only attested is named so."""
        is_attested = self.status == "optimal" and self.proof == ATTESTED
        return f"{self.status} ({ATTESTED})" if is_attested else self.status

    def _facts(self) -> Mapping[str, object]:
        unit = f" {self.objective_unit}" if self.objective_unit else ""
        numbers = {"objective": self.objective, "bound": self.bound}
        values = {name: None if value is None else f"{value:.6g}{unit}" for name, value in numbers.items()}
        task = {"model": self.model, "instance": self.instance, "collective": self.collective}
        return {
            **task,
            "status": self.shown_status,
            **values,
            "verified": self.verified,
            "message": self.message or None,
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain data for JSON, the schema first."""
        data = asdict(self)
        for name in ("row_by_row", "history"):
            if not data[name]:
                del data[name]
        return {"schema": data.pop("schema"), **data}

    def as_failure(self, error: Exception) -> Self:
        """Return the failure record of a method whose record JSON cannot represent."""
        claims: dict[str, Any] = dict.fromkeys(("objective", "bound", "gap", "verified", "answer", "certificate"))
        message = f"internal error: the record is not JSON: {error}"
        facts: dict[str, Any] = {"status": "error", "message": message, "exit_status": int(ExitStatus.FAILURE)}
        return replace(self, violations=(), metrics={}, **claims, **facts)

    @classmethod
    def from_json(cls, data: object, *, source: str, place: str) -> Self:
        """Read a record."""
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise InputError(f"expected a record of schema {SCHEMA!r}", source=source, place=place)
        values = {name: value for name, value in data.items() if name in cls.__dataclass_fields__}
        if isinstance(violations := values.get("violations"), list):
            values["violations"] = tuple(violations)
        if (proof := values.get("proof", NONE)) not in PROOFS:
            text = f"{proof!r} is wrong; expected one of {', '.join(PROOFS)}"
            raise InputError(text, source=source, place=f"{place}.proof")
        try:
            return cls(**values)
        except TypeError as error:
            missing = str(error).split("argument", maxsplit=1)[-1].lstrip("s: ")
            raise InputError(f"the record has no {missing}", source=source, place=place) from None


def append_record(path: Path, record: RunRecord) -> None:
    """Append a record to a JSONL file in a single write under a lock, so that lines are whole."""
    line = to_line(record)
    with locate_os_errors("cannot be written", str(path)), lock_for_append(path) as file:
        file.append(line)


def to_line(record: RunRecord) -> bytes:
    """Return a record as a line of JSON."""
    return (json.dumps(record.to_json(), allow_nan=False) + "\n").encode()


def record_files(path: Path) -> list[Path]:
    """Return a JSONL file, or every ``*.jsonl`` file in a folder."""
    with locate_os_errors("cannot be read", str(path)):
        if not path.exists():
            missing = f"no such file or folder of records; 'cwb compare SUITE -o {path}' makes one"
            raise InputError(missing, source=str(path))
        files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise InputError("no *.jsonl file in this folder", source=str(path))
    return files


def read_records(path: Path) -> Iterator[RunRecord]:
    """Read the records of a JSONL file, or of every ``*.jsonl`` file in a folder."""
    for file in record_files(path):
        try:
            with file.open("rb") as lines:
                number = 0
                while line := lines.readline(MAX_LINE_BYTES):
                    number += 1
                    place = f"line {number}"
                    try:
                        data = parse_json(line, _MAX_KEYS)
                    except InputError as error:
                        raise InputError(error.problem, source=str(file), place=place) from None
                    yield RunRecord.from_json(data, source=str(file), place=place)
        except OSError as error:
            raise InputError(error.strerror or "cannot be read", source=str(file)) from None


#: Exit status of every status that a record can have, unless a verification failed or an error says otherwise.
EXIT_STATUS: Mapping[str, ExitStatus] = {
    "optimal": ExitStatus.OK,
    "feasible": ExitStatus.OK,
    "infeasible": ExitStatus.INFEASIBLE,
    "unbounded": ExitStatus.FAILURE,
    "limit": ExitStatus.LIMIT,
    "unsupported": ExitStatus.UNSUPPORTED,
    "error": ExitStatus.FAILURE,
}
