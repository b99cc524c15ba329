"""The best proved bound on every problem, over all records of a ledger, and how far answers are from it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..core.record import RunRecord
from .clocks import CLOCKS
from .numbers import number
from .runs import Run

#: What certificates charge: their bounds hold under every clock that charges for it too.
_RESTS_ON = {
    "cut": frozenset({"wire"}),
    "partition": frozenset({"wire"}),
    "lengths": frozenset({"wire"}),
    "distance": frozenset({"latency"}),
}


#: Certificates that nobody can recompute, and none at all.
_ON_A_WORD = ("solver", "")


class Bounds:
    """Proved bounds of a ledger.

    A bound holds for the runs of its own problem and question (on a grid, of the same epochs). One that rests on the network alone, on a cut, a
    partition, lengths of links or a distance, holds under every clock that charges for wire, or latency. One on a solver's word holds for
    what the solver was asked: where the method has options of its own, for runs of that method with the same ones.

    Parameters
    ----------
    runs : sequence of Run
        All runs. A record whose answer or certificate failed verification proves nothing, nor does what an unfinished run had told.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self._of_scope: dict[Hashable, float] = {}
        self._of_network: dict[Hashable, float] = {}
        for run in runs:
            if (bound := _proved(run.record)) is None:
                continue
            certificate = _certificate(run.record)
            _keep(
                self._of_scope, (_scope(run), _own(run) if certificate in _ON_A_WORD else ""), bound, run.record.sense
            )
            if certificate in _RESTS_ON:
                _keep(self._of_network, (run.problem[:2], _RESTS_ON[certificate]), bound, run.record.sense)

    def best(self, run: Run) -> float | None:
        """Give the best bound that holds for a run; None where nobody proved one."""
        scopes = [(_scope(run), own) for own in {"", _own(run)}]
        found = [self._of_scope[scope] for scope in scopes if scope in self._of_scope]
        if run.clock is not None:
            pays = CLOCKS[run.clock].pays
            found += [
                self._of_network[run.problem[:2], needs]
                for needs in set(_RESTS_ON.values())
                if needs <= pays and (run.problem[:2], needs) in self._of_network
            ]
        return (min if run.record.sense == "maximize" else max)(found, default=None)

    def gap(self, run: Run) -> float | None:
        """Give the relative gap of a run's answer to the best bound; negative where one of the two is wrong."""
        objective, bound = run.objective, self.best(run)
        if objective is None or bound is None:
            return None
        difference = bound - objective if run.record.sense == "maximize" else objective - bound
        if objective == 0:
            return 0.0 if difference == 0 else None
        return difference / abs(objective)


def _proved(record: RunRecord) -> float | None:
    return None if record.verified is False or record.status == "error" else number(record.bound)


def _certificate(record: RunRecord) -> str:
    kind = (record.certificate or {}).get("certificate")
    return kind if isinstance(kind, str) else ""


def _scope(run: Run) -> Hashable:
    """Tell what a bound holds for at least: the same problem, question and grid."""
    return (run.problem, run.clock, run.question, number(run.record.metrics.get("epoch_duration_s")))


def _own(run: Run) -> str:
    """Tell the method where it has options of its own, which may narrow the question."""
    return run.method if run.method != run.record.model else ""


def _keep(bounds: dict[Hashable, float], key: Hashable, bound: float, sense: str) -> None:
    known = bounds.get(key, bound)
    bounds[key] = min(known, bound) if sense == "maximize" else max(known, bound)
