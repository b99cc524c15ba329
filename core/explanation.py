"""Why a declared model has no solution: a few of its conditions that exclude one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .topology import Topology

#: Conditions of one component that the text lists; the record has all.
SHOWN = 6


@dataclass(frozen=True)
class Condition:
    """One constraint, or one bound of a variable.

    Parameters
    ----------
    kind : str
        ``constraint`` or ``bound``.
    component : str
        Name of the constraint, or of the variable, without its index.
    index : str
        The index in words, such as ``e=3 (a->b), s=0``; empty without one.
    algebra : str
        The condition itself, in the model's units.
    equation : str
        What the constraint is, in the words of the function that declares it; empty of a bound.
    """

    kind: str
    component: str
    index: str
    algebra: str
    equation: str = ""

    def to_json(self) -> dict[str, str]:
        """Plain data for a record."""
        return dict(vars(self))


@dataclass(frozen=True)
class Explanation:
    """Conditions of a model that no point meets together.

    Parameters
    ----------
    model : str
        Name of the formulation.
    solver : str
        Who says that they exclude one another.
    conditions : tuple of Condition
        None where nothing was found; then ``message`` says why.
    whole : bool
        Whether the conditions can be met once integer variables may be fractions.
    irreducible : bool
        Whether all but any one of the conditions can be met: the rest was solved again without each.
    by : str
        How they were found.
    solves : int
        Models that were solved on the way.
    message : str
        Why there are no conditions.
    """

    model: str
    solver: str
    conditions: tuple[Condition, ...] = ()
    whole: bool = False
    irreducible: bool = False
    by: str = ""
    solves: int = 0
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return {**vars(self), "conditions": [condition.to_json() for condition in self.conditions]}

    def text(self) -> str:
        """Return it as lines."""
        if not self.conditions:
            return f"{self.model}: {self.message}"
        count = len(self.conditions)
        what = "this condition cannot be met" if count == 1 else f"these {count} conditions exclude one another"
        lines = [f"{self.model}: {what}{' in whole numbers' if self.whole else ''}"]
        for name in dict.fromkeys((c.kind, c.component) for c in self.conditions):
            lines += _listed([c for c in self.conditions if (c.kind, c.component) == name])
        if count == 1:
            lines.append(f"  {self.by}")
        elif self.irreducible:
            lines.append(f"  irreducible: without any one of them the rest can be met ({self._work})")
        else:
            lines.append(f"  not shown to be irreducible: the time was over, or a model undecided ({self._work})")
        return "\n".join(lines)

    @property
    def _work(self) -> str:
        return f"{self.by}, {self.solves} models solved by {self.solver}"


def _listed(conditions: Sequence[Condition]) -> list[str]:
    """Lines of the conditions of one component."""
    first = conditions[0]
    heading = f"bounds of {first.component}" if first.kind == "bound" else first.component
    lines = [f"  {heading}: {first.equation}" if first.equation else f"  {heading}"]
    for condition in conditions[:SHOWN]:
        lines.append(f"    {condition.index}: {condition.algebra}" if condition.index else f"    {condition.algebra}")
    if len(conditions) > SHOWN:
        lines.append(f"    and {len(conditions) - SHOWN} more")
    return lines


def network_labels(
    topology: Topology, **ends: Sequence[int] | Sequence[tuple[int, int]]
) -> Mapping[str, Callable[[Any], str]]:
    """Names of what constraints are indexed by, for ``Formulation.labels``.

    Parameters
    ----------
    topology : Topology
        The network.
    **ends
        For each argument of the constraints' rules the node, or the two nodes, that its values stand for: of links
        their ends, of chunks their sources.
    """

    def named(places: Sequence[int] | Sequence[tuple[int, int]]) -> Callable[[Any], str]:
        def name(value: Any) -> str:
            place = places[value]
            nodes = place if isinstance(place, tuple) else (place,)
            return "->".join(topology.nodes[node].name for node in nodes)

        return name

    return {argument: named(places) for argument, places in ends.items()}
