"""Options of a simulated training iteration, for files and keyword arguments."""

from typing import Annotated, Any, Literal

from pydantic import Field

from .fields import Duration, Rate, Size, Strict


class TrainingOptions(Strict):
    """Options of a training iteration, as in ``cwb train``."""

    workload: str | None = None
    group: dict[str, str] = Field(default_factory=dict)
    method: dict[str, str] = Field(default_factory=dict)
    options: dict[str, dict[str, Any]] = Field(default_factory=dict, description="Of each method.")
    bandwidth: list[Rate] | None = None
    latency: list[Duration] | None = None
    design: str | None = None
    loop: Literal["no-overlap", "tp-dp-overlap", "ddp"] | None = None
    bucket: list[Size] = Field(default_factory=list, description="Of several the best is taken.")
    streams: Literal["one", "group", "unlimited"] = "one"
    microbatches: Annotated[int, Field(ge=1, le=10_000)] = 1
    pipeline: Literal["1f1b", "gpipe"] = "1f1b"
