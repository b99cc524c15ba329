"""Network with links coloured by the value of more bandwidth on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.errors import InputError
from ...core.sensitivity import Entry, Sensitivity
from ...core.topology import Topology
from .look import bare, new_figure, short
from .network_layout import Layout, layout
from .schedule_network import RANKS, draw_nodes, frame_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Inches between neighbours, and least width of the plot.
_SPACING_IN, _WIDTH_IN = 0.5, 3.4

#: Colours from no to the most effect, legible in black and white.
_COLOURS = "cividis_r"

#: Links without effect.
_NONE = "#D4D4D4"


def draw(network: Any, worth: Sensitivity) -> Figure:
    """Draw a network with the seconds saved by one more GB/s on all links of a class.

    Raises
    ------
    InputError
        If there are no links to draw, or too many ranks to tell apart.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    if not isinstance(network, Topology):
        raise InputError(
            f"{network} has no links that could be drawn; expected an explicit network", source="--picture"
        )
    if len(network.ranks) > RANKS:
        raise InputError(f"{len(network.ranks):,} ranks; expected at most {RANKS}", source="--picture")
    where = with_all(network, layout(network))
    low, high = frame_of(where)
    width, height = max(_WIDTH_IN, (high[0] - low[0]) * _SPACING_IN), (high[1] - low[1]) * _SPACING_IN
    figure = new_figure(height + 0.9, width)
    axes = figure.subplots()
    bare(axes, low, high)
    gains = gains_of(worth)
    place = {network.nodes[node].name: at for node, at in where.places.items()}
    most = max(gains.values(), default=0.0)
    scale = Normalize(0.0, most or 1.0)
    shown: Any = ScalarMappable(scale, _COLOURS)
    pairs = sorted(gains, key=lambda pair: gains[pair])
    colours = [shown.cmap(scale(gains[pair])) if gains[pair] > 0 else _NONE for pair in pairs]
    widths = [2.2 if gains[pair] > 0 else 1.0 for pair in pairs]
    axes.add_collection(
        LineCollection([(place[a], place[b]) for a, b in pairs], colors=colours, linewidths=widths, zorder=2)
    )
    draw_nodes(axes, network, where)
    if most > 0:
        bar = figure.colorbar(shown, ax=axes, location="bottom", fraction=0.05, pad=0.02, aspect=40)
        bar.set_label("seconds less for each GB/s more on all links alike; grey: none")
    figure.suptitle(short(f"{worth.model} on {worth.instance}: {worth.seconds:.6g} s", 60), size=7)
    return figure


def gains_of(worth: Sensitivity) -> dict[tuple[str, str], float]:
    """Return the seconds saved by one more GB/s, by pair of nodes.

    Links of a class, which are alike, are widened together.
    """
    gains: dict[tuple[str, str], float] = {}
    for entry in sorted(worth.entries, key=lambda entry: entry.count):
        gains |= dict.fromkeys(entry.members, _gain(entry))
    return gains


def _gain(entry: Entry) -> float:
    return 0.0 if entry.up is None or entry.up.slope_s_per_GBps is None else abs(entry.up.slope_s_per_GBps)


def with_all(topology: Topology, where: Layout) -> Layout:
    """Add places for switches between boxes: a row above everything, in order of their names."""
    missing = [node for node in range(len(topology.nodes)) if node not in where.places]
    if not missing:
        return where
    x, y = zip(*where.places.values(), strict=True)
    step = (max(x) - min(x)) / (len(missing) + 1)
    places = {node: (min(x) + step * place, max(y) + 1.6) for place, node in enumerate(missing, start=1)}
    return Layout({**where.places, **places}, where.boxes)
