"""Transformers described by a few numbers, and the training workloads derived from them.

Docs/instances/workloads.md has the formulas. A layer is attention and an MLP, as in Megatron-LM, or attention, a router
with what all tokens use, and experts. Every block has one collective of gradients; a vocabulary adds an output layer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool

from .collective import Collective
from .errors import InputError
from .fabric import Fabric
from .fields import Speed, Strict
from .units import show
from .workload import Communication, Layer, Phase, TrainingLoop, Workload, map_groups

MAX_LAYERS = 100_000
DEFAULT_SPEED_FLOPS = Fraction(234 * 10**12)  #: 75 % of an A100, as measured for the dissertation (section 4.5.2).

TP, DP, EP, EDP, PP = "tp", "dp", "ep", "edp", "pp"

PositiveInt = Annotated[int, Field(ge=1, le=10**12, strict=True)]
Count = Annotated[int, Field(ge=0, le=10**12, strict=True)]

_BYTES = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}


class Model(Strict):
    """A transformer from which computation and communication follow (see the page on workloads)."""

    layers: Annotated[int, Field(ge=1, le=MAX_LAYERS, strict=True)]
    hidden: PositiveInt
    sequence: PositiveInt
    batch: PositiveInt = Field(description="Sequences per iteration over all replicas.")
    precision: Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8"] = "fp16"
    zero_stage: Annotated[int, Field(ge=0, le=3, strict=True)] = 2
    vocabulary: Count = Field(0, description="0 leaves embedding and output layer out.")
    heads: PositiveInt = Field(1, description="Heads of attention.")
    kv_heads: Count = Field(0, description="Those of keys and values (grouped-query attention); 0 is as many.")
    head_size: Count = Field(0, description="Mean size of a head's key and value; 0 is hidden / heads.")
    attention_parameters: Count = Field(0, description="Weights of attention; 0 is those of its four matrices.")
    mlp_hidden: Count = Field(0, description="Inner size of an MLP; 0 is 4 hidden.")
    gated: StrictBool = Field(False, description="Three matrices in an MLP (SwiGLU), not two.")
    experts: Count = Field(0, description="Experts of a layer; 0 is a dense model.")
    expert_hidden: Count = Field(0, description="Inner size of an expert; 0 is 4 hidden.")
    active_experts: PositiveInt = Field(1, description="Experts that a token is sent to.")
    shared_experts: Count = Field(0, description="Further experts, which all tokens use.")
    dense_layers: Count = Field(0, description="First layers, without experts.")
    speed: Speed = Field(DEFAULT_SPEED_FLOPS, json_schema_extra={"default": show(DEFAULT_SPEED_FLOPS, "TFLOPS")})
    """Operations per second that an NPU attains."""

    def derive_layers(self, sizes: Mapping[str, int]) -> tuple[Layer, ...]:
        """Derive the layers for groups of these sizes; one that is missing has a single NPU."""
        if self.batch % (replicas := sizes.get(DP, 1)):
            raise InputError(f"a batch of {self.batch} does not split over {replicas} replicas", place="batch")
        if self.experts % (split := sizes.get(EP, 1)):
            raise InputError(f"{self.experts} experts do not split over {split} NPUs", place="experts")
        if self.heads % (self.kv_heads or 1):
            raise InputError(f"{self.heads} heads do not share {self.kv_heads} heads of keys", place="kv_heads")
        if self.experts and self.active_experts > self.experts:
            raise InputError(f"{self.active_experts} of {self.experts} experts", place="active_experts")
        if self.dense_layers > self.layers:
            raise InputError(f"{self.dense_layers} of {self.layers} layers", place="dense_layers")
        tokens, h = Fraction(self.batch, replicas) * self.sequence, self.hidden
        block = _Blocks(self, sizes, tokens)
        width = self.heads * (self.head_size or h // self.heads)
        attention = (
            self.attention_parameters or 2 * h * width * (self.heads + (self.kv_heads or self.heads)) // self.heads
        )
        scores = 4 * tokens * self.sequence * width
        matrices = (3 if self.gated else 2) * h
        dense = self.dense_layers if self.experts else self.layers
        layers = [
            block.make("attention", attention, dense, scores=scores),
            block.make("mlp", matrices * (self.mlp_hidden or 4 * h), dense),
        ]
        if sparse := self.layers - dense:
            k, sends = self.active_experts, block.talk(Collective.ALL_TO_ALL, tokens * self.active_experts * h, EP)
            expert = matrices * (self.expert_hidden or 4 * h)
            always = h * self.experts + self.shared_experts * expert
            layers += [
                block.make("attention of experts", attention, sparse, scores=scores),
                block.make("router", always, sparse, forward=sends),
                block.make("experts", expert * self.experts, sparse, active=expert * k, forward=sends, back=sends),
                Layer("combined", input_gradient=Phase(communication=sends), repeat=sparse),
            ]
        if self.vocabulary:
            layers.append(block.make("output", self.vocabulary * h, 1))
        return tuple(layer for layer in layers if layer.repeat)


@dataclass(frozen=True)
class Transformer:
    """Transformer with its training setup."""

    name: str
    model: Model
    #: ``tensor_parallel`` and ``data_parallel``: degrees of TP and DP; their product is the number of NPUs.
    tensor_parallel: int = 1
    data_parallel: int = 1
    loop: TrainingLoop = TrainingLoop.NO_OVERLAP
    weight: Fraction = Fraction(1)  #: Importance in a group of workloads.

    def with_parallelism(self, tensor_parallel: int, data_parallel: int) -> Self:
        """Return the same model trained as HP-(TP, DP) (dissertation, section 4.2.3)."""
        return replace(self, tensor_parallel=tensor_parallel, data_parallel=data_parallel)

    def workload(self, fabric: Fabric) -> Workload:
        """Derive the workload on a fabric."""
        degrees = {TP: self.tensor_parallel, DP: self.data_parallel}
        spans = map_groups(fabric, degrees)
        return Workload(self.name, self.model.derive_layers(degrees), spans, self.loop, self.weight)


@dataclass(frozen=True)
class _Blocks:
    """Blocks of a transformer in groups of some sizes, for the tokens of a replica."""

    model: Model
    sizes: Mapping[str, int]
    tokens: Fraction

    def talk(self, kind: Collective, values: Fraction, group: str) -> tuple[Communication, ...]:
        """Return the collective, or nothing in a group of one."""
        size = Fraction(values) * _BYTES[self.model.precision]
        return (Communication(kind, size, group),) if self.sizes.get(group, 1) > 1 else ()

    def make(
        self,
        name: str,
        parameters: int,
        repeat: int,
        *,
        active: int | None = None,
        scores: Fraction = Fraction(0),
        forward: tuple[Communication, ...] = (),
        back: tuple[Communication, ...] = (),
    ) -> Layer:
        """Derive one block.

        Numbers are of all TP ranks together. ``active``: of experts, the parameters that a token uses; ``scores``:
        forward operations whose factors are both activations.
        """
        ranks, kind, zero = self.sizes.get(TP, 1), Collective, self.model.zero_stage
        operations = 2 * self.tokens * (parameters if active is None else active)
        split, group = (1, DP) if active is None or self.sizes.get(EP, 1) == 1 else (self.sizes[EP], EDP)
        outputs = self.tokens * self.model.hidden * (1 if active is None else self.model.active_experts)
        activations = self.talk(kind.ALL_REDUCE, outputs, TP)
        message = self.talk(kind.POINT_TO_POINT, self.tokens * self.model.hidden, PP)
        share = Fraction(parameters, ranks * split)
        reduce_scatter, all_gather = (self.talk(one, share, group) for one in (kind.REDUCE_SCATTER, kind.ALL_GATHER))
        if zero == 0:
            synchronize = self.talk(kind.ALL_REDUCE, share, group)
        else:
            synchronize = reduce_scatter + (all_gather if zero < 3 else ())
        fetch = all_gather if zero == 3 else ()
        speed = ranks * self.model.speed
        return Layer(
            name,
            forward=Phase((operations + scores) / speed, fetch + activations + forward + message),
            input_gradient=Phase((operations + 2 * scores) / speed, fetch + activations + back + message),
            weight_gradient=Phase(operations / speed, synchronize),
            repeat=repeat,
        )
