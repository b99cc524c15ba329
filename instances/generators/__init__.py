"""Named topologies: abstract graphs and published machines, made from a generator expression.

A generator is a documented function that returns a :class:`~cwb.core.topology.Topology`. Its signature is its
interface: ``torus(4, 4, bandwidth="25 GiB/s")`` calls :func:`.grids.torus`. To add one, write it and name it in
:mod:`.binding`.

Arguments that mean the same everywhere are described here alone. ``bandwidth`` and ``latency`` are those of every
link, in each direction, with their units; ``n`` is the number of nodes, at least 2, and ``network`` an expression. With
``multicast`` switches can copy, with ``nvls`` NVSwitches also add, as NVLink SHARP does. A machine of one box has no
network between ``boxes`` (``chassis``, ``racks``); else GPU i of every box is on switch i mod ``rails``. ``nvlink``
is the rate between a GPU and its NVSwitch, ``nic`` that between a GPU and its rail or leaf switch; the first
``missing_nics`` boxes lack the NIC of their GPU 0. ``skewness`` spreads random capacities, which ``seed`` draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import getdoc

from ...core.topology import Topology
from ..expression import Expression
from .binding import GENERATORS, call, find_generator, usage

__all__ = ["GENERATORS", "Description", "describe", "generate", "names"]


@dataclass(frozen=True)
class Description:
    """Signature and summary of a generator.

    Parameters
    ----------
    signature : str
        The call with its defaults, such as ``ring(n, bidirectional=true, ...)``.
    summary : str
        First line of its documentation.
    """

    signature: str
    summary: str


def names() -> tuple[str, ...]:
    """Names of all generators: the abstract graphs, then the machines."""
    return tuple(GENERATORS)


def describe(name: str) -> Description:
    """Describe a generator in two lines."""
    generator = find_generator(name)
    return Description(usage(name, generator), (getdoc(generator) or "").partition("\n")[0])


def generate(expression: Expression) -> Topology:
    """Make the topology that an expression names.

    Parameters
    ----------
    expression : Expression
        The generator's name and arguments.

    Returns
    -------
    Topology
        The nodes, in the order of their ranks, and the links.

    Raises
    ------
    InputError
        If there is no such generator, or an argument is unknown, missing, of the wrong type or out of range. Sizes
        are checked before memory is taken.
    """
    return call(find_generator(expression.name), expression)
