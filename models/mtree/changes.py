"""Links that fail or degrade, and traffic of others: an instance with its network as it is now."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ...core.errors import InputError, Unsupported, shown
from ...core.instance import Instance
from ...core.topology import Link, Topology
from ...core.units import Kind, parse

_EXPECTED = "expected two sites and what their links have now, such as a-b=0 (failed), a-b=0.5, a-b=80 Mb/s or a-b=-20 Mb/s (taken by others)"


@dataclass(frozen=True)
class Change:
    """What happens to all links between two sites, in both directions.

    Parameters
    ----------
    one, other : str
        Names of the sites.
    factor : Fraction
        Share of the bandwidth that is kept.
    rate_Bps : Fraction or None
        The bandwidth instead; a negative one is taken off.
    """

    one: str
    other: str
    factor: Fraction = Fraction(1)
    rate_Bps: Fraction | None = None

    def of(self, link: Link) -> Fraction:
        """Bandwidth that a link has now."""
        if self.rate_Bps is None:
            return link.bandwidth_Bps * self.factor
        return self.rate_Bps + (link.bandwidth_Bps if self.rate_Bps < 0 else 0)


def read_change(text: str, topology: Topology) -> Change:
    """Read a change of a network.

    Raises
    ------
    InputError
        If it is none, or names sites that no link joins.
    """
    pair, equals, value = text.rpartition("=")
    if not equals:
        raise InputError(f"{shown(text)} is wrong; {_EXPECTED}")
    joined = {(link.source, link.target) for link in topology.links}
    pair = pair.strip()
    cuts = [(pair[:at].strip(), pair[at + 1 :].strip()) for at, letter in enumerate(pair) if letter == "-"]
    found = [ends for ends in cuts if ends in joined or ends[::-1] in joined]
    if len(found) != 1:
        raise InputError(f"{shown(pair)} names no two sites with a link; {_EXPECTED}")
    one, other = found[0]
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
        return Change(one, other, factor=Fraction(value))
    try:
        rate = parse(value.removeprefix("-"), Kind.RATE)
    except InputError:
        raise InputError(f"{shown(text)} is wrong; {_EXPECTED}") from None
    return Change(one, other, rate_Bps=-rate if value.startswith("-") else rate)


def changed(instance: Instance, changes: Sequence[str]) -> Instance:
    """Give the instance with its network as it is after some changes, one after the other; links without bandwidth are gone.

    Raises
    ------
    InputError
        If a change is none.
    Unsupported
        If the instance has no explicit network.
    """
    topology = instance.network
    if not isinstance(topology, Topology):
        raise Unsupported("expected an explicit network")
    bandwidth = [link.bandwidth_Bps for link in topology.links]
    for index, text in enumerate(changes):
        try:
            change = read_change(text, topology)
        except InputError as error:
            raise error.at(source="-O", place=f"changes[{index}]") from None
        for place, link in enumerate(topology.links):
            if {link.source, link.target} == {change.one, change.other}:
                bandwidth[place] = max(
                    Fraction(0), change.of(replace(link, bandwidth_Bps=bandwidth[place] or Fraction(1)))
                )
    kept = [replace(link, bandwidth_Bps=rate) for link, rate in zip(topology.links, bandwidth, strict=True) if rate]
    return instance.with_changes(network=replace(topology, links=tuple(kept)))
