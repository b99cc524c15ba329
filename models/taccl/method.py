"""``taccl``: the method, its options, and sketches: which edges may be used, and which ranks are alike.

Statements of a sketch are separated by semicolons or lines:

* ``avoid A -> B``: no edge from a node whose name matches A to one that matches B (``*`` and ``?`` as in file names);
* ``only A -> B``: of the edges out of nodes that match A, those to nodes that match B alone;
* ``shift N``: what rank r does with its chunks, rank r + N does with its own, modulo the number of ranks, N being a
  divisor of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import Field

from ...algorithms.graphs.hyper_edges import RankEdge
from ...algorithms.schedules.commodities import supports_copies
from ...core.errors import InputError, shown
from ...core.fields import Strict
from ...core.formulation import Formulation
from ...core.method import Kind, Method
from ...core.schedule import StepSchedule
from ...core.topology import Topology

#: Length of a sketch.
MAX_LENGTH = 10_000

_RULE = re.compile(r"(avoid|only)\s+(\S{1,100})\s*->\s*(\S{1,100})\Z")
_SHIFT = re.compile(r"shift\s+([1-9][0-9]{0,5})\Z")


PAPER = "Shah et al., TACCL: Guiding Collective Algorithm Synthesis using Communication Sketches, NSDI 2023"


class SketchOptions(Strict):
    """Options of ``taccl/contiguity``."""

    sketch: str = Field(
        "",
        max_length=MAX_LENGTH,
        description="Statements such as 'avoid box0.* -> box1.*; shift 8', separated by semicolons.",
    )


class RoutingOptions(SketchOptions):
    """Options of ``taccl/routing``."""

    connections: Literal["any", "min", "max"] = Field(
        "any", description="Whether few (uc-min) or many (uc-max) of the edges through switches are used."
    )


class TacclOptions(RoutingOptions):
    """Options of ``taccl``."""

    contiguity: bool = Field(True, description="Whether neighbours in an order may be sent together.")
    routing_gap: float = Field(0.01, ge=0, le=1, description="Relative gap at which the routing may stop.")


@dataclass(frozen=True)
class Sketch:
    """A sketch that has been read.

    Parameters
    ----------
    rules : tuple of (str, str, str)
        ``avoid`` or ``only``, and two patterns.
    shift : int or None
        By how much ranks are alike.
    """

    rules: tuple[tuple[str, str, str], ...] = ()
    shift: int | None = None

    def allowed(self, topology: Topology, edges: Iterable[RankEdge]) -> tuple[RankEdge, ...]:
        """The edges that the rules leave."""
        names = [node.name for node in topology.nodes]
        return tuple(edge for edge in edges if self._allows(names[edge.source], names[edge.target]))

    def _allows(self, source: str, target: str) -> bool:
        return all(
            not (fnmatchcase(source, one) and fnmatchcase(target, other) == (word == "avoid"))
            for word, one, other in self.rules
        )


def parse_sketch(text: str, ranks: int) -> Sketch:
    """Read a sketch.

    Raises
    ------
    InputError
        If a statement is none, or ranks cannot be alike in this way.
    """
    if len(text) > MAX_LENGTH:
        raise InputError(f"{len(text):,} characters; expected at most {MAX_LENGTH:,}", place="sketch")
    rules: list[tuple[str, str, str]] = []
    shift: int | None = None
    for index, statement in enumerate(filter(None, (part.strip() for part in re.split(r"[;\n]", text)))):
        place = f"sketch[{index}]"
        if (rule := _RULE.match(statement)) is not None:
            rules.append((rule[1], rule[2], rule[3]))
        elif (moved := _SHIFT.match(statement)) is not None and shift is None:
            shift = int(moved[1])
            if ranks % shift or shift == ranks:
                raise InputError(f"shift {shift}; expected a proper divisor of the {ranks} ranks", place=place)
        else:
            raise InputError(f"{shown(statement)}; expected avoid A -> B, only A -> B or one shift N", place=place)
    return Sketch(tuple(rules), shift)


METHOD = Method(
    name="taccl",
    kind=Kind.HEURISTIC,
    summary="routing as an integer program, then ordering and contiguity, guided by a sketch",
    paper=PAPER,
    answer_type=StepSchedule,
    options=TacclOptions,
    solve=f"{__package__}.solve:run",
    supports=supports_copies,
)

ROUTING = Formulation(
    "taccl/routing",
    summary="which edges carry which chunk: the longest way and the busiest link, before sends are put in turns",
    paper=PAPER,
    equations="stage 1, routing; an interpretation, since the paper was not available",
    index=f"{__package__}.solve:routing_of",
    build=f"{__package__}.formulations.routing:build",
    extract=f"{__package__}.solve:routed_schedule",
    labels=f"{__package__}.solve:labels",
    needs=("integers",),
    options=RoutingOptions,
    supports=supports_copies,
    agrees_with="taccl",
    bounds=False,
)

CONTIGUITY = Formulation(
    "taccl/contiguity",
    summary="when sends on the fastest ways begin, and which neighbours in a link's order go together",
    paper=PAPER,
    equations="stage 3, contiguity; an interpretation, since the paper was not available",
    index=f"{__package__}.solve:fastest_orders",
    build=f"{__package__}.formulations.contiguity:build",
    extract=f"{__package__}.solve:joined_schedule",
    needs=("integers",),
    options=SketchOptions,
    supports=supports_copies,
    agrees_with="taccl",
    bounds=False,
)
