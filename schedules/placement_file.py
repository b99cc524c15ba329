"""Placement files: experts, slots, placement and certificate in one JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..core.answers import Placement
from ..core.bounds import Certificate, LeastLoads, PairPrices, SolverBound
from ..core.errors import InputError, locate_errors
from ..core.experts import Experts
from ..core.instance import Instance
from .files import begins_with, to_lists, write_data
from .strict import Fields, fraction, integers, is_list, read_json

SCHEMA = "cwb-placement/1"

_MANY = 2**40


class PlacementFile(NamedTuple):
    """Contents of a placement file."""

    name: str
    instance_sha256: str
    experts: Experts
    answer: Placement
    certificate: Certificate | None
    extra: Mapping[str, Any]


def write_placement(
    path: Path,
    instance: Instance,
    answer: Placement,
    certificate: Certificate | None = None,
    extra: Mapping[str, Any] | None = None,
) -> str:
    """Write a placement with its experts atomically, compressed if named ``.gz``; return its SHA-256."""
    experts = instance.experts
    if experts is None:
        raise InputError("expected an instance with experts", source=str(path))
    if path.suffix == ".npz":
        raise InputError(
            "placements have no binary columns; expected a name such as p.json or p.json.gz", source=str(path)
        )
    numbers = {name: getattr(experts, name) for name in ("gpus", "slots", "groups", "nodes")}
    data = {
        "schema": SCHEMA,
        "instance": instance.name,
        "instance_sha256": instance.sha256,
        "experts": {**numbers, "loads": [[str(load) for load in loads] for loads in experts.loads]},
        "placement": [[list(gpu) for gpu in layer] for layer in answer.experts],
        "certificate": None if certificate is None else certificate.to_json(),
        "extra": dict(extra or {}),
    }
    return write_data(path, data)


def is_placement(path: Path) -> bool:
    """Return whether a file is a placement, by its first characters."""
    return begins_with(path, SCHEMA)


def read_placement(path: Path) -> PlacementFile:
    """Read a placement file."""
    with locate_errors(source=str(path)):
        file = Fields(read_json(path))
        file.word("schema", [SCHEMA])
        name, sha256 = file.word("instance"), file.word("instance_sha256")
        experts = _read_experts(file.fields("experts"))
        layers = _lists(file.list_("placement"), "placement")
        answer = Placement(
            tuple(
                tuple(tuple(integers(gpu, 0, _MANY, place).tolist()) for place, gpu in _lists(gpus, place))
                for place, gpus in layers
            )
        )
        certificate = _read_certificate(file.fields("certificate")) if file.has("certificate") else None
        extra = to_lists(file.take("extra")) if file.has("extra") else {}
        Fields(extra, "extra")
        file.reject_unread()
        return PlacementFile(name, sha256, experts, answer, certificate, extra)


def _read_experts(file: Fields) -> Experts:
    loads = tuple(
        tuple(fraction(load, f"{place}[{e}]") for e, load in enumerate(row))
        for place, row in _lists(file.list_("loads"), file.at("loads"))
    )
    numbers = [file.integer(name, 1, _MANY) for name in ("gpus", "slots", "groups", "nodes")]
    file.reject_unread()
    with locate_errors("experts"):
        return Experts(loads, *numbers)


def _lists(values: Any, place: str) -> list[tuple[str, Any]]:
    for index, value in enumerate(values):
        if not is_list(value):
            raise InputError("expected a list", place=f"{place}[{index}]")
    return [(f"{place}[{index}]", value) for index, value in enumerate(values)]


def _read_certificate(file: Fields) -> Certificate:
    if file.word("certificate", ["least-loads", "solver"]) == "solver":
        found: Certificate = SolverBound(file.word("solver"), file.word("version"))
    else:
        loads = tuple(file.fractions("loads", len(file.list_("loads"))))
        prices = file.list_("prices", len(loads))
        found = LeastLoads(
            loads, tuple(_read_prices(each, f"{file.at('prices')}[{i}]") for i, each in enumerate(prices))
        )
    file.reject_unread()
    return found


def _read_prices(data: Any, place: str) -> PairPrices | None:
    if data is None:
        return None
    file = Fields(data, place)
    light: list[tuple[Any, Any]] = []
    for at, pair in _lists(file.list_("light"), file.at("light")):
        if len(pair) != 2:
            raise InputError("expected a load and its weight", place=at)
        light.append((fraction(pair[0], f"{at}[0]"), fraction(pair[1], f"{at}[1]")))
    found = PairPrices(file.fraction("replica"), tuple(light))
    file.reject_unread()
    return found
