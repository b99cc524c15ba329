"""Experts to be placed: ``experts(gpus=8, slots=2, loads=loads.csv)``, with loads that are given, read or generated."""

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..core.errors import InputError, locate_errors, show_value
from ..core.fields import run_validation
from ..core.instance import Instance
from .demand import falling_weights, read_rows
from .expression import Expression
from .schema import InstanceFile

_PARAMETERS = ("gpus", "slots", "loads", "groups", "nodes", "experts", "layers", "skew", "seed")

LOAD = 2**20  #: Loads of a layer that is generated, together.
_MOST = 100_000  #: Experts and layers that are generated at most.

_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


def experts_instance(expression: Expression, build: Callable[[InstanceFile], Instance]) -> Instance:
    """Make an instance of ``experts(gpus=..., slots=..., ...)``.

    ``expression``: ``gpus`` and ``slots`` of each; ``loads``, a list of the experts' loads, a list of such lists for
    several layers, or the path of a CSV file; or ``experts``, and optionally ``layers``, ``skew`` and ``seed``, to
    generate loads; ``groups`` of experts on ``nodes``. GPUs are at switches, one for each node.
    """
    arguments = expression.bind(_PARAMETERS, mandatory=("gpus", "slots"))
    gpus, nodes = _integer(arguments, "gpus", 2), _integer(arguments, "nodes", 1, 1)
    inside = nodes > 1 and gpus % nodes == 0 and gpus > nodes
    if "loads" in arguments:
        for name in ("experts", "layers", "skew", "seed"):
            if name in arguments:
                raise InputError(f"{name}= together with loads=; expected one of the two")
        loads = _list_layers(arguments["loads"])
    else:
        loads = _generate_loads(arguments)
    numbers: dict[str, Any] = {name: arguments[name] for name in ("slots", "groups", "nodes") if name in arguments}
    data: dict[str, Any] = {
        "schema": "cwb-instance/1",
        "network": f"SW({gpus // nodes})_SW({nodes})" if inside else f"SW({gpus})",
        "experts": {"loads": loads, **numbers},
    }
    return build(run_validation(lambda: InstanceFile.model_validate(data)))


def _list_layers(loads: Any) -> Any:
    """Return loads as in a file: one list is a layer."""
    if isinstance(loads, str):
        return loads
    if not isinstance(loads, tuple):
        raise InputError(f"loads={show_value(loads)}; expected a list such as [90, 132, 40], or a CSV file")
    rows = loads if loads and isinstance(loads[0], tuple) else (loads,)
    return [list(row) if isinstance(row, tuple) else row for row in rows]


def _generate_loads(arguments: dict[str, Any]) -> list[list[int]]:
    """Return loads that fall with a power of the experts' places, in another order in every layer."""
    if "experts" not in arguments:
        raise InputError("experts needs loads=..., or experts=... to generate loads")
    count, layers = _integer(arguments, "experts", 1), _integer(arguments, "layers", 1, 1)
    if count * layers > _MOST:
        raise InputError(f"{count * layers:,} loads; expected at most {_MOST:,}")
    import numpy as np

    random, weight = falling_weights({"skew": Fraction(1, 2), **arguments}, count)
    loads = np.rint(LOAD * weight / weight.sum()).astype(int)
    return [random.permutation(loads).tolist() for _ in range(layers)]


def _integer(arguments: dict[str, Any], name: str, least: int, default: int | None = None) -> int:
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name}={show_value(value)}; expected an integer of at least {least}")
    return value


def read_loads(path: Path) -> tuple[tuple[Fraction, ...], ...]:
    """Read a CSV file: a row for every layer, with the load of each expert."""
    with locate_errors(source=str(path)):
        rows = enumerate(read_rows(path))
        return tuple(tuple(_number(cell, f"[{r}][{c}]") for c, cell in enumerate(row)) for r, row in rows)


def _number(cell: str, place: str) -> Fraction:
    if not _NUMBER.fullmatch(cell.strip()):
        raise InputError(f"{show_value(cell)} is wrong; expected a load such as 90 or 12.5", place=place)
    return Fraction(cell.strip())
