"""Communication sketches: which edges may be used, and which ranks are alike.

Statements are separated by semicolons or lines:

* ``avoid A -> B``: no edge from a node whose name matches A to one that matches B (``*`` and ``?`` as in file names);
* ``only A -> B``: of the edges out of nodes that match A, those to nodes that match B alone;
* ``shift N``: what rank r does with its chunks, rank r + N does with its own, modulo the number of ranks, N being a divisor of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ...core.errors import InputError, shown
from ...core.topology import Topology
from ..common.hyper_edges import Edge

#: Length of a sketch.
MAX_LENGTH = 10_000

_RULE = re.compile(r"(avoid|only)\s+(\S{1,100})\s*->\s*(\S{1,100})\Z")
_SHIFT = re.compile(r"shift\s+([1-9][0-9]{0,5})\Z")


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

    def allowed(self, topology: Topology, edges: Iterable[Edge]) -> tuple[Edge, ...]:
        """Give the edges that the rules leave."""
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
