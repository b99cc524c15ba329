"""Best proved bound of every problem over all records of a ledger, and gaps to it."""

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, get_args

from ..core.bounds import DesignBound, EpochBound, LeastLoads
from ..core.record import NONE, PROOFS, RECOMPUTED
from .numbers import number
from .objective_types import CLOCKS
from .runs import LedgerRun

#: What certificates charge: their bounds hold under every clock that charges for it too.
_RESTS_ON = {
    "cut": frozenset({"wire"}),
    "late-cut": frozenset({"wire", "latency"}),
    "partition": frozenset({"wire"}),
    "lengths": frozenset({"wire"}),
    "late-lengths": frozenset({"wire", "latency"}),
    "distance": frozenset({"latency"}),
}

#: Certificates that bound all answers to a question, whatever a method's options ask of its own answers.
_OF_ALL = {*_RESTS_ON, *(each.name for each in get_args(DesignBound | LeastLoads | EpochBound))}


class Bounds:
    """Proved bounds of a ledger; which runs a bound holds for is in docs/reporting.md.

    A record whose answer or certificate failed verification proves nothing, nor does an unfinished run.
    """

    def __init__(self, runs: Sequence[LedgerRun]) -> None:
        self._of_scope: dict[Hashable, _KnownBound] = {}
        self._of_network: dict[Hashable, _KnownBound] = {}
        for run in runs:
            wrong = run.record.verified is False or run.record.status == "error"
            if wrong or (value := number(run.record.bound)) is None:
                continue
            bound = _KnownBound(value, run.record.proof)
            certificate = str((run.record.certificate or {}).get("certificate"))  # records may be of others
            general = bound.proof == RECOMPUTED and certificate in _OF_ALL
            _keep(self._of_scope, (_scope(run), "" if general else _own(run)), bound, run.record.sense)
            if bound.proof == RECOMPUTED and certificate in _RESTS_ON:
                # On a grid it may have been rounded up to whole ticks, which answers off the grid need not keep.
                low = number(run.record.metrics.get("network_bound_s", value))
                everywhere = _KnownBound(value if low is None else low, bound.proof)
                _keep(self._of_network, (run.network, _RESTS_ON[certificate]), everywhere, run.record.sense)

    def best(self, run: LedgerRun) -> float | None:
        """Return the best bound that holds for a run; None if there is none."""
        bound = self._best(run)
        return None if bound is None else bound.value

    def proof(self, run: LedgerRun) -> str:
        """Return the proof of the best bound: ``recomputed``, ``attested`` or ``none``."""
        bound = self._best(run)
        return NONE if bound is None else bound.proof

    def proofs(self, runs: Iterable[LedgerRun]) -> str:
        """Return the kinds of proof behind the bounds of some runs as one text; empty without a bound."""
        kinds = {self.proof(run) for run in runs} - {NONE}
        return " and ".join(proof for proof in PROOFS if proof in kinds)

    def _best(self, run: LedgerRun) -> "_KnownBound | None":
        scopes = [(_scope(run), own) for own in sorted({"", _own(run)})]
        bounds = [self._of_scope[scope] for scope in scopes if scope in self._of_scope]
        if run.clock is not None:
            pays = CLOCKS[run.clock].pays
            bounds += [
                self._of_network[run.network, needs]
                for needs in set(_RESTS_ON.values())
                if needs <= pays and (run.network, needs) in self._of_network
            ]
        return max(bounds, key=lambda bound: bound.strength(run.record.sense), default=None)

    def gap(self, run: LedgerRun, *, timed: bool = False) -> float | None:
        """Return the relative gap of a run's answer to the best bound; negative where one of the two is wrong.

        ``timed`` is that of the completion time, to the best bound of the network on it, where there are both.
        """
        objective, bound = run.objective, self.best(run)
        bounds = [self._of_network.get((run.network, needs)) for needs in set(_RESTS_ON.values())] if timed else []
        if run.completion_s and (values := [one.value for one in bounds if one is not None]):
            objective, bound = run.completion_s, max(values)
        if objective is None or bound is None:
            return None
        difference = bound - objective if run.record.sense == "maximize" else objective - bound
        if objective == 0:
            return 0.0 if difference == 0 else None
        return difference / abs(objective)


def _scope(run: LedgerRun) -> Hashable:
    """Return the key of runs for which a bound holds at least: same problem, objective type and grid."""
    return (run.problem, run.clock, run.measured, number(run.record.metrics.get("epoch_duration_s")))


def _own(run: LedgerRun) -> str:
    """Return the method if options of its own, or its restriction, may narrow the problem."""
    narrow = run.method != run.record.model or "restricted_to" in run.record.metrics
    return run.method if narrow else ""


class _KnownBound(NamedTuple):
    """A bound and its kind of proof."""

    value: float
    proof: str

    def strength(self, sense: str) -> tuple[float, bool]:
        """Return the sort key of a bound: tighter first, then recomputed before attested."""
        return (-self.value if sense == "maximize" else self.value, self.proof == RECOMPUTED)


def _keep(bounds: dict[Hashable, _KnownBound], key: Hashable, bound: _KnownBound, sense: str) -> None:
    bounds[key] = max(bounds.get(key, bound), bound, key=lambda each: each.strength(sense))
