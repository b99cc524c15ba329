"""Time that messages and sums cost the ranks, beside that of the links."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .errors import InputError
from .topology import NodeKind
from .units import TIMES, amount, show


@dataclass(frozen=True)
class RankCosts:
    """Costs of the nodes of an instance; an instance without costs has none of these."""

    #: Seconds of its rank that every message costs before its first byte leaves, one message after the other.
    overhead_s: Fraction = Fraction(0)
    #: Bytes per second that a rank adds, one contribution after the other; None costs nothing.
    reduce_rate_Bps: Fraction | None = None
    switch_reduce_rate_Bps: Fraction | None = None  #: The same of a switch that adds.
    while_receiving: bool = False  #: A contribution is added while it arrives; otherwise when it has arrived.

    def __post_init__(self) -> None:
        if self.overhead_s < 0:
            raise InputError("a message must not cost less than nothing", place="rank_overhead")
        if any(rate is not None and rate <= 0 for rate in (self.reduce_rate_Bps, self.switch_reduce_rate_Bps)):
            raise InputError("a rate must be greater than zero", place="reduce_rate")

    def reduce_rate(self, kind: NodeKind) -> Fraction | None:
        """Return the bytes per second that nodes of a kind add; None costs nothing."""
        return self.reduce_rate_Bps if kind is NodeKind.COMPUTE else self.switch_reduce_rate_Bps

    @property
    def in_words(self) -> str:
        """The costs in words, with the remark that bounds do not count them."""
        return f"{self}; bounds leave these costs out"

    def __bool__(self) -> bool:
        return bool(self.overhead_s or self.reduce_rate_Bps or self.switch_reduce_rate_Bps)

    def __str__(self) -> str:
        when = "while data arrives" if self.while_receiving else "of data that has arrived"
        rates = ((self.reduce_rate_Bps, "ranks"), (self.switch_reduce_rate_Bps, "switches"))
        sums = [f"{who} add {show(rate, 'GB/s')} {when}" for rate, who in rates if rate]
        message = [f"a message costs its rank {amount(self.overhead_s, TIMES)}"] if self.overhead_s else []
        return ", ".join([*message, *sums])
