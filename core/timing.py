"""Time models of schedules on a grid of epochs, and of messages and sums that cost the ranks time."""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from .errors import InputError
from .topology import NodeKind
from .units import TIMES, amount, show


class Semantics(Enum):
    """Cost in epochs of a chunk's path over a link; values under different semantics are never compared.

    ``te-ccl``, ``te-ccl-paid-switch`` (the published code's ``switch_to_gpu_link_on``) and ``store-and-forward`` are in
    the table of docs/methods/teccl.md; ``circuit`` is the cost in TACOS (docs/schedules/verifier.md, "Circuits"). The
    last two are physical: a schedule holds in seconds as well.
    """

    TE_CCL = "te-ccl"
    TE_CCL_PAID_SWITCH = "te-ccl-paid-switch"
    STORE_AND_FORWARD = "store-and-forward"
    CIRCUIT = "circuit"


#: What TE-CCL's models count in: a chunk passes one link after the other.
EPOCHS = (Semantics.TE_CCL, Semantics.TE_CCL_PAID_SWITCH, Semantics.STORE_AND_FORWARD)


@dataclass(frozen=True)
class BandwidthChange:
    """Interval of epochs in which a link is slower or faster (section 5, "Modeling variable bandwidth")."""

    link: int
    #: ``first`` and ``last``: first epoch of the interval, and the first one after it.
    first: int
    last: int
    #: Bandwidth over the link's own; 0 is a link that is down. Factors of overlapping changes multiply.
    factor: Fraction

    def __post_init__(self) -> None:
        if self.link < 0 or not 0 <= self.first < self.last or self.factor < 0:
            raise InputError("expected a link, epochs in order and a factor of at least 0", place="timing.changes")


@dataclass(frozen=True)
class Timing:
    """Grid of epochs of an instance's schedules."""

    semantics: Semantics
    epoch_s: Fraction
    #: If chunks may be split arbitrarily, as in TE-CCL's linear program: then a link carries bandwidth times epoch in
    #: every epoch, and its delay is one epoch and the latency. Otherwise chunks are whole: if one takes w epochs, a
    #: link starts at most one in any w epochs, and its delay includes all of them.
    fluid: bool = False
    #: Links whose bandwidth varies. The capacity of a window is the sum over its epochs; delays do not change.
    changes: tuple[BandwidthChange, ...] = ()

    def factor(self, link: int, epoch: int) -> Fraction:
        """Return a link's bandwidth in an epoch over its own."""
        factor = Fraction(1)
        for change in self.changes:
            if change.link == link and change.first <= epoch < change.last:
                factor *= change.factor
        return factor

    def __post_init__(self) -> None:
        if self.epoch_s <= 0:
            raise InputError("an epoch must be longer than zero", place="timing.epoch_s")


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
