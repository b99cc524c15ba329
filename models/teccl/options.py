"""Options of the TE-CCL methods and of their declared models."""

from fractions import Fraction
from typing import Literal, Self

from pydantic import Field, model_validator

from ...core.fields import Duration, Size, Strict

TimingName = Literal["te-ccl", "te-ccl-paid-switch", "store-and-forward"]


class EpochOptions(Strict):
    """Grid and chunks, for every method of the family."""

    epoch: Literal["fast", "slow"] = "fast"
    """An epoch is the time of one chunk on the fastest or on the slowest link."""
    epoch_duration: Duration | None = None
    """Length of an epoch, such as '3.5 ns', in place of what epoch and epoch_multiplier say."""
    epoch_multiplier: int = Field(1, ge=1, le=10_000, description="Epochs are so many times as long as epoch says.")
    latency_epochs: int = Field(200, ge=1, le=100_000)
    """Epochs are at least the smallest latency over this number."""
    timing: TimingName = "te-ccl"
    """Links as the published code counts them, with switches that cost time (paid), or every hop."""
    chunks: int | None = Field(None, ge=1, le=100_000)
    """Number of equal chunks of a rank's part; the demand's unless given."""
    chunk_size: Size | None = None
    """Size of a chunk, such as '25 KB'; the collective's size follows from it."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.epoch_duration is not None and self.epoch_multiplier != 1:
            raise ValueError("epoch_multiplier has no effect with epoch_duration; give one of the two")
        if self.epoch_duration == 0:
            raise ValueError("an epoch of no time; expected an epoch_duration greater than zero")
        if self.chunk_size == 0:
            raise ValueError("a chunk of no size; expected a chunk_size greater than zero")
        return self


class AllToAllOptions(EpochOptions):
    """Options of ``teccl-all-to-all``."""

    max_columns: int = Field(400_000, ge=1, le=50_000_000)
    """Columns of the largest linear program for an all_to_all."""
    schedule: Literal["auto", "always", "never"] = "auto"
    """Conversion of flows of an all_to_all into sends: auto, up to two million; else only the bound."""


class SearchOptions(AllToAllOptions):
    """Options of ``teccl``."""

    effort: int = Field(200, ge=1, le=1_000_000)
    """Millions of arcs that the search examines, the same on every machine."""
    model_columns: int = Field(60_000, ge=0, le=5_000_000)
    """Sends of the largest model, if bound and search do not meet; 0 for no model."""


class VaryingLink(Strict):
    """A link whose bandwidth varies."""

    source: str = Field(description="Node that the link leaves.")
    target: str = Field(description="Node that it enters.")
    epochs: tuple[int, int] = Field(description="First epoch, and the one after the last.")
    factor: Fraction = Field(ge=0)
    """Bandwidth over the link's own, such as '1/2'; 0 is a link that is down."""


class ModelOptions(EpochOptions):
    """Options common to the declared models."""

    epochs: int | None = Field(None, ge=1, le=1_000_000, description="K, the most epochs that a schedule may take.")
    bandwidth: list[VaryingLink] = Field(default_factory=list)
    """Links that vary: objects with source, target, epochs (first and end) and factor."""


class MilpOptions(ModelOptions):
    """Options of ``teccl-milp``."""

    objective: Literal["makespan", "late", "paper"] = "makespan"
    """makespan, by models of fixed length; late, by one model that counts epochs; or the paper's."""
    priorities: list[int] | None = None
    """Weights of the collectives that run at the same time, in the paper's objective."""
    switches: Literal["as-they-are", "hyper-edges"] = "as-they-are"
    """Form of switches that cannot store: as they are, or direct links (hyper-edges, appendix C)."""
    all_reduce: Literal["direct", "stages"] = "direct"
    """One model of an all-reduce, or one of its contributions and one of an all-gather (stages)."""
    relays: Literal["store", "pass"] = "store"
    """store, ranks may keep what they send on; pass, they send it on at once or never."""
    buffer: int | None = None
    """Chunks that a rank can hold (appendix B), without its own and those that it needs."""
    buffer_counts: Literal["others", "all"] = "others"
    """Chunks that a buffer counts: those of others alone, or also those that a rank has or needs, as printed (all)."""
    start: Literal["constructions", "none"] = "constructions"
    """Use of a schedule of teccl's constructions, which comes first: a start, or the answer within the gap."""

    @model_validator(mode="after")
    def _agree_on_rules(self) -> Self:
        if self.buffer is not None and self.buffer < 1:
            raise ValueError(f"a buffer of {self.buffer} chunks holds less than one; expected at least 1")
        if self.buffer is not None and self.relays == "pass":
            raise ValueError("buffer has no effect with relays=pass; give one of the two")
        if self.buffer is None and self.buffer_counts == "all":
            raise ValueError("buffer_counts has no effect without a buffer")
        if self.priorities is not None and self.objective != "paper":
            raise ValueError("priorities are weights of objective=paper; a makespan has none")
        if self.all_reduce == "stages" and self.objective != "makespan":
            raise ValueError("all_reduce=stages needs objective=makespan")
        if self.all_reduce == "stages" and self.epochs is not None:
            raise ValueError("epochs limits one model; all_reduce=stages has two")
        if self.priorities is not None and min(self.priorities, default=0) < 1:
            raise ValueError("expected priorities of at least 1")
        return self


class LpOptions(ModelOptions):
    """Options of ``teccl-lp``."""

    objective: Literal["makespan", "paper"] = "makespan"
    """makespan, the fewest epochs by models of fixed length; paper, the paper's objective."""
    buffer: int | None = Field(None, ge=1)
    """Chunks that a rank can hold at the start of an epoch (appendix B)."""


class AstarOptions(ModelOptions):
    """Options of ``teccl-astar``."""

    round_epochs: int | None = Field(None, ge=1, le=100_000)
    """Epochs of a round; the longest delay of a link unless given, at least 4."""
    gamma: float = Field(0.5, gt=0, lt=1)
    """Value of being on the way, relative to being there; the appendix's gamma."""
    start: Literal["constructions", "none"] = "constructions"
    """Use of a schedule of teccl's constructions, from whose sends rounds start."""


class BlockOptions(EpochOptions):
    """Options of ``teccl/all-to-all``."""

    epochs: int | None = Field(None, ge=1, le=1_000_000)
    """K; by default the epochs that distances and cuts need."""
    blocks: int | None = Field(None, ge=1, le=1_000_000)
    """Blocks of epochs in which flows are constant; by default one an epoch."""
    side: Literal["restrict", "relax"] = "restrict"
    """Blocks that give a schedule, or that prove that more epochs are needed."""
