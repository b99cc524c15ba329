"""Experts of a mixture-of-experts model, and the slots of the GPUs that hold their replicas."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

from .display import DisplayMixin
from .errors import InputError

MAX_SLOTS = 10_000_000  #: More slots in all, over the GPUs of all layers, are a mistake.


@dataclass(frozen=True, repr=False)
class Experts(DisplayMixin):
    """Loads of experts, and the slots that are to hold their replicas.

    In every layer each GPU has the same number of slots, and each slot holds one replica of an expert of that layer.
    The replicas of an expert share its load equally.
    """

    loads: tuple[tuple[Fraction, ...], ...]  #: Load of each expert in every layer, such as tokens.
    #: ``gpus`` and ``slots``: number of GPUs, and of slots per GPU and layer.
    gpus: int
    slots: int
    groups: int = 1  #: Number of equal groups of consecutive experts; all replicas of a group are on one node.
    nodes: int = 1  #: Number of nodes with equally many consecutive GPUs and equally many groups; 1 restricts no group.

    def __post_init__(self) -> None:
        if not self.loads or not self.loads[0]:
            raise InputError("no loads; expected those of every expert, such as [[90, 132, 40]]", place="loads")
        for layer, loads in enumerate(self.loads):
            if len(loads) != self.count:
                text = f"{len(loads):,} experts; expected {self.count:,}, as in the first layer"
                raise InputError(text, place=f"loads[{layer}]")
            if min(loads) < 0:
                at = f"loads[{layer}][{loads.index(min(loads))}]"
                raise InputError(f"{min(loads)} is negative; expected a load of at least 0", place=at)
        self._check_divisions()
        if self.replicas < self.count:
            text = (
                f"{self.replicas:,} slots on {self.gpus:,} GPUs; expected at least one for each of {self.count:,} "
                "experts"
            )
            raise InputError(text, place="slots")
        if self.replicas * len(self.loads) > MAX_SLOTS:
            raise InputError(f"more than {MAX_SLOTS:,} slots in all layers", place="slots")

    def _check_divisions(self) -> None:
        for place, number, of, what in (
            ("groups", self.count, self.groups, "experts"),
            ("nodes", self.gpus, self.nodes, "GPUs"),
            ("nodes", self.groups if self.nodes > 1 else self.nodes, self.nodes, "groups of experts"),
        ):
            if number % of:
                raise InputError(f"{of:,}; expected a divisor of {number:,} {what}", place=place)

    @property
    def count(self) -> int:
        """Number of experts of a layer."""
        return len(self.loads[0])

    @property
    def replicas(self) -> int:
        """Number of slots of all GPUs in a layer, each with a replica."""
        return self.gpus * self.slots

    @property
    def most(self) -> int:
        """Largest number of replicas of an expert when all others on its node have one."""
        return (self.replicas - self.count) // self.nodes + 1

    def group(self, expert: int) -> int:
        """Return the group of an expert."""
        return expert * self.groups // self.count

    def node(self, gpu: int) -> int:
        """Return the node of a GPU."""
        return gpu * self.nodes // self.gpus

    def layer(self, layer: int) -> Self:
        """Return the experts of one layer."""
        return replace(self, loads=(self.loads[layer],))

    def _facts(self) -> Mapping[str, object]:
        bound = {"groups": self.groups, "nodes": self.nodes} if self.nodes > 1 else {}
        return {"layers": len(self.loads), "experts": self.count, "gpus": self.gpus, "slots": self.slots, **bound}
