"""Explanations of infeasible models: a few conditions that exclude one another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .topology import Topology

SHOWN = 6  #: Conditions of one component that the text lists; the record has all.


@dataclass(frozen=True)
class Condition:
    """One constraint, or one bound of a variable."""

    kind: str  #: One of ``constraint`` and ``bound``.
    component: str  #: Name of the constraint, or of the variable, without its index.
    index: str  #: The index in words, such as ``e=3 (a->b), s=0``; empty without one.
    algebra: str  #: The condition itself, in the model's units.
    #: Meaning of the constraint, from the docstring of the function that declares it; empty for a bound.
    equation: str = ""

    def to_json(self) -> dict[str, str]:
        """Return plain data for a record."""
        return dict(vars(self))


@dataclass(frozen=True)
class Explanation:
    """Conditions of a model that no point satisfies together."""

    model: str
    solver: str  #: Solver that proved the conflict.
    conditions: tuple[Condition, ...] = ()  #: Empty if none were found; ``message`` then has the reason.
    whole: bool = False  #: If the conflict disappears when integer variables may be fractional.
    #: If every proper subset can be satisfied: the rest was solved again without each condition.
    irreducible: bool = False
    by: str = ""
    solves: int = 0
    message: str = ""  #: Reason why there are no conditions.

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a record."""
        return {**vars(self), "conditions": [condition.to_json() for condition in self.conditions]}

    def text(self) -> str:
        """Return the explanation as lines of text."""
        if not self.conditions:
            return f"{self.model}: {self.message}"
        count = len(self.conditions)
        what = "this condition cannot be met" if count == 1 else f"these {count} conditions exclude one another"
        lines = [f"{self.model}: {what}{' in whole numbers' if self.whole else ''}"]
        for name in dict.fromkeys((c.kind, c.component) for c in self.conditions):
            lines += _condition_lines([c for c in self.conditions if (c.kind, c.component) == name])
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


def _condition_lines(conditions: Sequence[Condition]) -> list[str]:
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
    """Return names for the indices of constraints, for ``Formulation.labels``.

    ``ends`` has for each argument of the rules the node or pair of nodes of each value: ends of links, sources of
    chunks.
    """

    def name_of(places: Sequence[int] | Sequence[tuple[int, int]]) -> Callable[[Any], str]:
        def name(value: Any) -> str:
            place = places[value]
            nodes = place if isinstance(place, tuple) else (place,)
            return "->".join(topology.nodes[node].name for node in nodes)

        return name

    return {argument: name_of(places) for argument, places in ends.items()}
