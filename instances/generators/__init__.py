"""Named topologies: abstract graphs and published machines, made from a generator expression.

A generator is a documented function that returns a :class:`~cwb.core.topology.Topology`. Its signature is its
interface: ``torus(4, 4, bandwidth="25 GiB/s")`` calls :func:`.grids.torus`. To add one, write it and name it in
:mod:`.binding`.

Arguments that mean the same everywhere are described here alone. ``bandwidth`` and ``latency`` are those of every link,
in each direction, with their units, and ``global_bandwidth`` that of a link between two groups; ``n`` is the number of
nodes, ``sizes`` are those of each dimension, the innermost first, and ``network`` is an expression. With ``multicast``
switches can copy, with ``nvls`` NVSwitches also add, as NVLink SHARP does. A box has ``per_box`` GPUs, a rack ``gpus``.
A machine of one box has no network between ``boxes`` (``chassis``, ``racks``); else GPU i of every box is on switch i
mod ``rails``. ``pods`` are several; ``spines`` and ``cores`` are switches above all others. ``nvlink`` is the rate
between a GPU and its NVSwitch, ``nic`` that between a GPU and its rail or leaf switch; the first ``missing_nics`` boxes
lack the NIC of their GPU 0. ``rates`` of a machine are ``nominal``, those of its description, or ``effective``: the
part of them that copies within a box attain. ``skewness`` spreads random capacities, which ``seed`` draws. The errors
of numbers out of range say the range.
"""

from dataclasses import dataclass
from inspect import getdoc

from ...core.topology import Topology
from ..expression import Expression
from .binding import GENERATORS, call, find_generator, usage

__all__ = ["GENERATORS", "Description", "describe", "generate", "names"]


@dataclass(frozen=True)
class Description:
    """Signature and summary of a generator."""

    signature: str  #: The call with its defaults, such as ``ring(n, bidirectional=true, ...)``.
    summary: str


def names() -> tuple[str, ...]:
    """Names of all generators: the abstract graphs, then the machines."""
    return tuple(GENERATORS)


def describe(name: str) -> Description:
    """Describe a generator in two lines."""
    generator = find_generator(name)
    return Description(usage(name, generator), (getdoc(generator) or "").partition("\n")[0])


def generate(expression: Expression) -> Topology:
    """Make the topology that an expression names."""
    return call(find_generator(expression.name), expression)
