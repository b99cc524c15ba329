"""The best proved bound on every problem, over all records of a ledger, and how far answers are from it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from ..core.record import NONE, PROOFS, RECOMPUTED, RunRecord
from .clocks import CLOCKS
from .numbers import number
from .runs import LedgerRun

#: What certificates charge: their bounds hold under every clock that charges for it too.
_RESTS_ON = {
    "cut": frozenset({"wire"}),
    "late-cut": frozenset({"wire", "latency"}),
    "partition": frozenset({"wire"}),
    "lengths": frozenset({"wire"}),
    "distance": frozenset({"latency"}),
}


#: Certificates that bound all answers to a question, whatever a method's options ask of its own answers.
_OF_ALL = (
    *_RESTS_ON,
    "dimension-weights",
    "least-loads",
    "lagrangian",
    "sweep",
    "epoch-distance",
    "epoch-cut",
    "epoch-chain",
    "epoch-flow",
    "epoch-prices",
    "epoch-window-prices",
    "epoch-partition",
)


class Bounds:
    """Proved bounds of a ledger.

    A bound holds for the runs of its own problem and measure (on a grid, of the same epochs), restricted ones included.
    One that rests on the network alone, on a cut, a partition, lengths of links or a distance, and that the verifier
    recomputed, holds under every clock that charges for wire, or latency. One that does not bound all answers to the
    question for certain, such as a solver's word, holds for what was asked: where the method has options of its own,
    for runs of that method with the same ones.

    Parameters
    ----------
    runs : sequence of LedgerRun
        All runs. A record whose answer or certificate failed verification proves nothing, nor does what an unfinished
        run had reported.
    """

    def __init__(self, runs: Sequence[LedgerRun]) -> None:
        self._of_scope: dict[Hashable, _Known] = {}
        self._of_network: dict[Hashable, _Known] = {}
        for run in runs:
            if (value := _proved(run.record)) is None:
                continue
            bound, certificate = _Known(value, run.record.proof), _certificate(run.record)
            general = bound.proof == RECOMPUTED and certificate in _OF_ALL
            _keep(self._of_scope, (_scope(run), "" if general else _own(run)), bound, run.record.sense)
            if bound.proof == RECOMPUTED and certificate in _RESTS_ON:
                # On a grid it may have been rounded up to whole ticks, which answers off the grid need not keep.
                everywhere = _Known(run.record.metrics.get("network_bound_s", value), bound.proof)
                _keep(self._of_network, (run.network, _RESTS_ON[certificate]), everywhere, run.record.sense)

    def best(self, run: LedgerRun) -> float | None:
        """Best bound that holds for a run; None where nobody proved one."""
        known = self._best(run)
        return None if known is None else known.value

    def proof(self, run: LedgerRun) -> str:
        """Return how the best bound is known: ``recomputed``, ``attested`` or ``none``."""
        known = self._best(run)
        return NONE if known is None else known.proof

    def proofs(self, runs: Iterable[LedgerRun]) -> str:
        """Return how the bounds of some runs are known, all together; empty where there is none."""
        found = {self.proof(run) for run in runs} - {NONE}
        return " and ".join(proof for proof in PROOFS if proof in found)

    def _best(self, run: LedgerRun) -> _Known | None:
        scopes = [(_scope(run), own) for own in sorted({"", _own(run)})]
        found = [self._of_scope[scope] for scope in scopes if scope in self._of_scope]
        if run.clock is not None:
            pays = CLOCKS[run.clock].pays
            found += [
                self._of_network[run.network, needs]
                for needs in set(_RESTS_ON.values())
                if needs <= pays and (run.network, needs) in self._of_network
            ]
        return max(found, key=lambda known: known.strength(run.record.sense), default=None)

    def gap(self, run: LedgerRun) -> float | None:
        """Relative gap of a run's answer to the best bound; negative where one of the two is wrong."""
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


def _scope(run: LedgerRun) -> Hashable:
    """Return what a bound holds for at least: the same problem, question and grid."""
    return (run.problem, run.clock, run.measured, number(run.record.metrics.get("epoch_duration_s")))


def _own(run: LedgerRun) -> str:
    """Report the method where it has options of its own, which may narrow the question."""
    return run.method if run.method != run.record.model else ""


class _Known(NamedTuple):
    """A bound and how it is known."""

    value: float
    proof: str

    def strength(self, sense: str) -> tuple[float, bool]:
        """Order bounds: the tighter one counts, of equal ones the one that was recomputed."""
        return (-self.value if sense == "maximize" else self.value, self.proof == RECOMPUTED)


def _keep(bounds: dict[Hashable, _Known], key: Hashable, bound: _Known, sense: str) -> None:
    bounds[key] = max(bounds.get(key, bound), bound, key=lambda known: known.strength(sense))
