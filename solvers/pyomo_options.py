"""Known properties of solvers that Pyomo drives, beyond Pyomo's own; imports nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class KnownSolver:
    """Option names of one solver, and its way to stop.

    Parameters
    ----------
    program : str
        Name of the program; empty if it is not known to be one.
    gap, node_limit, threads, seed, tolerance : str
        Its own names of these options; empty if there is none, or none is known.
    always : mapping
        Options of every solve of a MIP.
    increment : str
        Option for the least improvement of a solution over the last one.
    takes_fractions : bool
        If its time limit may be a fraction of a second.
    stops_on_interrupt : bool
        If it stops at SIGINT and still writes its best result.
    digits : float
        Relative error of the numbers it writes.
    is_first_order : bool
        If it may solve linear programs by a first-order method, whose "optimal" proves no bound.
    options : frozenset of str, optional
        Every option that may be given by its own name; None if they cannot be checked.
    """

    program: str = ""
    gap: str = ""
    node_limit: str = ""
    threads: str = ""
    seed: str = ""
    tolerance: str = ""
    always: Mapping[str, object] = field(default_factory=dict)
    increment: str = ""
    takes_fractions: bool = False
    stops_on_interrupt: bool = False
    digits: float = 1e-7
    is_first_order: bool = False
    options: frozenset[str] | None = None

    @property
    def reserved_options(self) -> Mapping[str, str]:
        """Options that are set by other means, with these means."""
        pairs = {
            self.gap: "rel_gap",
            self.node_limit: "node_limit",
            self.threads: "the budget's threads (--threads)",
            self.seed: "the budget's seed (--seed)",
            self.tolerance: "feasibility_tolerance",
        }
        return {name: means for name, means in pairs.items() if name}


_CBC_OPTIONS = """
    allowableGap clique combineSolutions combine2Solutions constraintfromCutoff costStrategy crash crossover cutDepth
    cutoff cutsOnOff depthMiniBab Dins DivingCoefficient DivingFractional DivingGuided DivingLineSearch
    DivingPseudoCost DivingSome DivingVectorLength dualBound dualTolerance dwHeuristic feasibilityPump flowCoverCuts
    GMICuts gomoryCuts greedyHeuristic heuristicsOnOff hotStartMaxIts idiotCrash increment integerTolerance
    knapsackCuts lagomoryCuts latwomirCuts liftAndProjectCuts localTreeSearch maxIterations maxSolutions
    mixedIntegerRoundingCuts nodeStrategy passCuts passFeasibilityPump passTreeCuts perturbation pivotAndComplement
    pivotAndFix preprocess presolve preTolerance primalWeight probingCuts proximitySearch pumpCutoff pumpTune
    randomizedRounding reduceAndSplitCuts reduce2AndSplitCuts Rens residualCapacityCuts Rins roundingHeuristic
    scaling slowcutpasses sprintCrash strategy strongBranching trustPseudoCosts twoMirCuts
    VndVariableNeighborhoodSearch zeroHalfCuts zeroTolerance
"""

_GLPK_OPTIONS = """
    adv amd bestb bestp bfs bib binarize btf cbg cgr clique cover cuts dfs drtom dual exact first flip fpump ft gomory
    interior intopt last luf memlim mir mostf nointopt nopresol nord norelax noscale nosteep pcost presol primal proxy
    qmd relax scale std steep symamd xcheck
"""

#: By the name in Pyomo's ``SolverFactory``.
KNOWN: Mapping[str, KnownSolver] = {
    "cbc": KnownSolver(
        program="cbc",
        gap="ratioGap",
        node_limit="maxNodes",
        threads="threads",
        seed="randomCbcSeed",
        tolerance="primalTolerance",
        always={"allowableGap": 0},
        increment="increment",
        takes_fractions=True,
        stops_on_interrupt=True,
        options=frozenset(_CBC_OPTIONS.split()),
    ),
    "cuopt": KnownSolver(is_first_order=True),
    "glpk": KnownSolver(program="glpsol", gap="mipgap", digits=1e-9, options=frozenset(_GLPK_OPTIONS.split())),
}


def known_solver(name: str) -> KnownSolver:
    """Return the known properties of a solver; empty ones for most."""
    return KNOWN.get(name, KnownSolver())
