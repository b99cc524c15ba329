"""The instance format: the fields of a JSON file.

Quantities are strings with units. :mod:`cwb.instances.build` turns a file into an instance, and checks what a JSON
Schema cannot say: sizes that multiply, groups that fit, constraints that can be read. ``instances/schema.json`` and
``instances/workloads/schema.json``, with which editors complete and check files, are made from these classes; a test
keeps them equal.
"""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    PlainValidator,
    StrictBool,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema

from ..core.collective import BUILT_IN, Collective, collective_named
from ..core.design import Objective, PartialUse
from ..core.errors import InputError, show_value
from ..core.experts import MAX_SLOTS
from ..core.fabric import MAX_DIMENSIONS
from ..core.fields import Duration, Money, Price, Rate, Size, Strict
from ..core.topology import NodeKind
from ..core.trace import Routing
from ..core.transformer import MAX_LAYERS, Count, Model, PositiveInt
from ..core.workload import TrainingLoop

MAX_NODES = 1_000_000
MAX_LINKS = 20_000_000

Weight = Annotated[float, Field(ge=1e-12, le=1e12, strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


def _tag_of(value: object) -> str:
    """Return the tag of the alternative that a value's JSON type names, so that errors describe the intended one."""
    if isinstance(value, dict):
        return "<graph>" if "nodes" in value or "links" in value else "<object>"
    return "<list>" if isinstance(value, list) else "<scalar>"


def _word_or_number(value: object) -> str:
    return "<word>" if isinstance(value, str) else "<number>"


def _named_collective(*, with_sizes: bool) -> tuple[PlainValidator, WithJsonSchema]:
    """Return validator and schema of the name of a built-in collective of one size, or ``sizes`` if ``with_sizes``."""
    names = [name for name in BUILT_IN if (collective_named(name).sized_by is not None) is with_sizes]

    def validate(name: object) -> Collective:
        try:
            kind = collective_named(str(name))
        except InputError as error:
            raise ValueError(str(error)) from None
        if with_sizes and kind.sized_by is None:
            raise ValueError(f"{name} has equal parts; expected size in place of sizes, or one of {', '.join(names)}")
        if not with_sizes and kind.sized_by is not None:
            owner = "pair" if kind.sized_by == "pair" else "rank"
            raise ValueError(f"{name} has a size per {owner}; expected sizes beside it")
        return kind

    return PlainValidator(validate), WithJsonSchema({"enum": names, "type": "string"})


class FabricFile(Strict):
    """A multi-dimensional network in building blocks."""

    dimensions: Name = Field(description="Building blocks, innermost first.", examples=["RI(4)_FC(8)_RI(4)_SW(32)"])
    tiers: list[Name] | None = Field(None, max_length=MAX_DIMENSIONS)
    """Technology per dimension, an entry of the cost model; by default the outermost known ones."""
    in_network: list[StrictBool] | None = Field(None, max_length=MAX_DIMENSIONS)
    """Per dimension, whether its switches reduce all-reduces."""
    npus: PositiveInt | None = Field(None, description="Number of NPUs, to be checked against the dimensions.")
    bandwidth: list[Rate] | None = Field(None, max_length=MAX_DIMENSIONS)
    """Bandwidth per NPU of each dimension, where it is not to be designed."""
    latency: list[Duration] | None = Field(None, max_length=MAX_DIMENSIONS)
    """Latency of a link of each dimension; 0 unless given."""


class NodeFile(Strict):
    """A node of an explicit network."""

    name: Name
    kind: NodeKind = NodeKind.COMPUTE
    multicast: StrictBool = Field(False, description="True if a switch may copy one chunk to several links.")
    reduces: StrictBool = Field(False, description="True if a switch adds up the contributions to a sum that pass it.")
    buffer: Size | None = Field(None, description="What a switch can hold; no limit by default.")


class LinkFile(Strict):
    """A link of an explicit network."""

    source: Name
    target: Name
    bandwidth: Rate
    latency: Duration = Field(default=Fraction(0), json_schema_extra={"default": "0 s"})
    count: Annotated[int, Field(ge=1, le=10_000, strict=True)] = Field(1, description="Number of parallel links.")
    bidirectional: StrictBool = Field(False, description="True if there is the same link back.")


class TopologyFile(Strict):
    """An explicit network."""

    nodes: list[NodeFile] = Field(fail_fast=True, min_length=1, max_length=MAX_NODES)
    links: list[LinkFile] = Field(fail_fast=True, max_length=MAX_LINKS)


class _DemandFields(Strict):
    """Fields of any demand: chunks and ranks of a collective."""

    chunks: PositiveInt = 1
    ranks: list[Count] | None = Field(None, fail_fast=True, max_length=MAX_NODES)
    """Process group; all ranks by default."""


class DemandFile(_DemandFields):
    """The collective to schedule."""

    kind: Annotated[Collective, *_named_collective(with_sizes=False)]
    size: Size = Field(description="Full buffer; for an all_gather what every rank holds in the end.")


class SizedDemandFile(_DemandFields):
    """A collective with a size for every rank or ordered pair of ranks."""

    kind: Annotated[Collective, *_named_collective(with_sizes=True)]
    sizes: Annotated[
        list[
            Annotated[
                Annotated[Size, Tag("<scalar>")]
                | Annotated[list[Size], Field(fail_fast=True, max_length=MAX_NODES), Tag("<list>")],
                Discriminator(_tag_of),
            ]
        ],
        Field(fail_fast=True, max_length=MAX_NODES),
    ] = Field(
        description="Per rank of the group, in its order, the size of its part; for all_to_all_v a row per rank, with "
        "the size that it sends to each. 0 B is no message; a rank's own part stays where it is.",
        examples=[["1 MiB", "3 MiB", "0 B"]],
    )


#: A collective with one size, or with a size per rank or pair.
AnyDemandFile = Annotated[
    Annotated[DemandFile, Tag("<size>")] | Annotated[SizedDemandFile, Tag("<sizes>")],
    Discriminator(lambda value: "<sizes>" if isinstance(value, dict) and "sizes" in value else "<size>"),
]


class CommunicationFile(Strict):
    """One collective of a phase."""

    collective: Literal["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "point_to_point"]
    size: Size = Field(description="Full buffer, also for an all_gather.")
    group: Name = Field(description="A group of the workload, such as tp or dp.")


class PhaseFile(Strict):
    """Computation and communication of a layer in one phase."""

    compute: Duration = Field(default=Fraction(0), json_schema_extra={"default": "0 s"})
    communication: list[CommunicationFile] = Field(default=[], max_length=100)


class LayerFile(Strict):
    """A layer with its three phases."""

    name: Name
    forward: PhaseFile = PhaseFile()
    input_gradient: PhaseFile = PhaseFile()
    weight_gradient: PhaseFile = PhaseFile()
    repeat: PositiveInt = Field(1, description="Number of such layers.")


class TransformerFile(Model):
    """A transformer with its degrees."""

    tensor_parallel: PositiveInt = 1
    data_parallel: PositiveInt | None = Field(None, description="By default the NPUs over the TP degree.")


class WorkloadFile(Strict):
    """A workload that instances can use by name: layers or a transformer, and the degrees that it is trained with."""

    editor_schema: str | None = Field(None, alias="$schema", description="For editors; not read.")
    format: Literal["cwb-workload/1"] = Field("cwb-workload/1", alias="schema")
    name: Name
    description: str = ""
    source: str = ""
    tensor_parallel: Annotated[
        Annotated[PositiveInt, Tag("<number>")] | Annotated[Literal["all"], Tag("<word>")],
        Discriminator(_word_or_number),
    ] = Field(1, description="TP degree; DP takes the rest. 'all': both groups span all NPUs.")
    expert_parallel: Annotated[
        Annotated[PositiveInt, Tag("<number>")] | Annotated[Literal["all"], Tag("<word>")],
        Discriminator(_word_or_number),
    ] = Field(1, description="EP degree within DP: the group ep; edp takes the rest of dp. 'all': ep is dp.")
    pipeline_parallel: PositiveInt = Field(1, description="Stages of a pipeline: the group pp, outermost.")
    layers: list[LayerFile] = Field([], fail_fast=True, max_length=MAX_LAYERS)
    transformer: Model | None = Field(None, description="Instead of layers.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.layers) == bool(self.transformer):
            raise ValueError("expected either layers or a transformer")
        return self


#: The degree of a group, or the NPUs that it spans in each dimension.
GroupFile = Annotated[
    Annotated[PositiveInt, Tag("<scalar>")]
    | Annotated[list[PositiveInt], Field(max_length=MAX_DIMENSIONS), Tag("<list>")],
    Discriminator(_tag_of),
]


class TrainingFile(Strict):
    """A workload in an instance: used by name, written out in layers, or described as a transformer."""

    use: Name | None = Field(None, description="A shipped workload, or the path of a workload file.")
    name: Name | None = None
    layers: list[LayerFile] | None = Field(None, fail_fast=True, min_length=1, max_length=MAX_LAYERS)
    transformer: TransformerFile | None = None
    groups: dict[Name, GroupFile] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="NPUs that each group spans per dimension (1 where it does not use one), or degrees, innermost "
        "group first, that multiply to the number of NPUs.",
        examples=[{"tp": [4, 4, 1, 1], "dp": [1, 2, 4, 32]}, {"tp": 16, "dp": 256}],
    )
    loop: TrainingLoop = TrainingLoop.NO_OVERLAP
    weight: Weight = Field(1.0, description="Importance in a group of workloads.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        sources = [name for name in ("use", "layers", "transformer") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise ValueError(f"expected one of use, layers and transformer, not {' and '.join(sources) or 'none'}")
        return self


class PricesFile(Strict):
    """Prices of one tier; a component without a price cannot be bought there."""

    link: Price | None = None
    switch: Price | None = None
    nic: Price | None = None


class DesignFile(Strict):
    """Requirements of a bandwidth design."""

    objective: Objective = Objective.PERF
    total_bandwidth: Rate | None = Field(None, description="Bandwidth per NPU over all dimensions, used exactly.")
    max_total_bandwidth: Rate | None = Field(None, description="The same as an upper limit.")
    cost_budget: Money | None = Field(None, description="Upper limit on the cost of the network.")
    constraints: list[Name] = Field(
        default=[],
        max_length=1000,
        description="Linear constraints on the bandwidths B1, B2, … of the dimensions.",
        examples=[["B1 >= B2 >= B3", "25 GB/s <= B3 <= 150 GB/s", "B1 + B2 = 500 GB/s"]],
    )
    partial_use: PartialUse = PartialUse.FULL
    """Bandwidth of an FC dimension that a group can use which spans a part of it."""


MAX_LOAD = 10**12  #: A larger load of an expert is a mistake.


def _load(value: object) -> Fraction:
    """Return a load as an exact number, a decimal as it is written."""
    number = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    if not number or not 0 <= value <= MAX_LOAD:  # type: ignore[operator]
        raise ValueError(f"{show_value(value)} is wrong; expected a number from 0 to {MAX_LOAD:.0e}")
    return Fraction(str(value))


Load = Annotated[
    Fraction, BeforeValidator(_load), WithJsonSchema({"type": "number", "minimum": 0, "maximum": MAX_LOAD})
]


class ExpertsFile(Strict):
    """Experts whose replicas are to be placed on the NPUs."""

    loads: Annotated[
        Annotated[Name, Tag("<scalar>")]
        | Annotated[
            list[Annotated[list[Load], Field(fail_fast=True, min_length=1, max_length=MAX_SLOTS)]],
            Field(fail_fast=True, min_length=1, max_length=MAX_LAYERS),
            Tag("<list>"),
        ],
        Discriminator(_tag_of),
    ] = Field(
        description="For every layer the load of each expert; or the path of a CSV file with a row for every layer.",
        examples=[[[90, 132, 40, 61]], "loads.csv"],
    )
    slots: PositiveInt = Field(description="Slots of every NPU in a layer, each with one replica.")
    groups: PositiveInt = Field(1, description="Groups of as many experts each, in order, each on one node.")
    nodes: PositiveInt = Field(1, description="Nodes of as many NPUs each, in order; 1 binds no group.")


class ReduceRateFile(Strict):
    """Bytes per second that the nodes of each kind add."""

    compute: Rate | None = None
    switch: Rate | None = None


class InstanceFile(Strict):
    """An instance: a network, and a collective, workloads or experts."""

    editor_schema: str | None = Field(None, alias="$schema", description="For editors; not read.")
    format: Literal["cwb-instance/1"] = Field("cwb-instance/1", alias="schema")
    name: Name | None = Field(None, description="Name in records and tables; by default the file's.")
    description: str = ""
    source: str = Field("", description="Where the numbers come from.")
    network: Annotated[
        Annotated[Name, Tag("<scalar>")]
        | Annotated[FabricFile, Tag("<object>")]
        | Annotated[TopologyFile, Tag("<graph>")],
        Discriminator(_tag_of),
    ] = Field(
        description="Building blocks, an explicit graph, or a text: building-block notation or a generator expression."
    )
    collective: AnyDemandFile | None = None
    also: list[AnyDemandFile] = Field(default=[], max_length=10_000)
    """Further collectives at the same time, such as of other process groups."""
    rank_overhead: Duration = Field(default=Fraction(0), json_schema_extra={"default": "0 s"})
    """Time that every message costs the rank that sends it, one after the other."""
    reduce_rate: (
        Annotated[Annotated[Rate, Tag("<scalar>")] | Annotated[ReduceRateFile, Tag("<object>")], Discriminator(_tag_of)]
        | None
    ) = Field(
        None,
        description="Bytes per second that a rank adds, or that nodes of each kind add; no limit by default.",
        examples=["10 GB/s", {"compute": "10 GB/s", "switch": "100 GB/s"}],
    )
    reduce_while_receiving: StrictBool = False
    """True if nodes add data while it arrives, not when it has arrived."""
    routing: Routing = Routing.FIXED
    """Paths that the network gives sends: the schedule's own, a shortest one by a hash of the flow, or equal parts over
    all shortest ones."""
    workloads: list[TrainingFile] = Field(fail_fast=True, default=[], max_length=1000)
    cost_model: (
        Annotated[
            Annotated[Literal["table-4.1"], Tag("<scalar>")]
            | Annotated[dict[Name, PricesFile], Field(max_length=100), Tag("<object>")],
            Discriminator(_tag_of),
        ]
        | None
    ) = Field(None, description="Prices per tier; 'table-4.1' are the dissertation's.")
    design: DesignFile | None = None
    experts: ExpertsFile | None = None


#: Format to the class that reads it.
FORMATS: Mapping[str, type[BaseModel]] = {"instance": InstanceFile, "workload": WorkloadFile}


def schema_text(name: str) -> str:
    """Write the JSON Schema of a format, a key of :data:`FORMATS`, with sorted keys and a final newline."""
    schema = FORMATS[name].model_json_schema(by_alias=True, schema_generator=_SchemaGenerator)
    dialect = {"$schema": GenerateJsonSchema.schema_dialect}
    return json.dumps(dialect | schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


class _SchemaGenerator(GenerateJsonSchema):
    """Generator of schemas without titles that repeat names, and without defaults within defaults."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Set no titles."""
        del schema
        return False

    def encode_default(self, dft: Any) -> Any:
        """Write a default object as the file would: without the fields that have defaults themselves."""
        if isinstance(dft, BaseModel):
            return dft.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return super().encode_default(dft)
