"""Options of all commands that change a network: ``--ranks``, ``--without-link`` and others."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..core.instance import Instance


def network_edits(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command receives ``edits``, pairs of an option and its value."""

    @click.option("--ranks", metavar="RANKS", help="Keep only these ranks of the network, such as 0-3 or 0,2,8-11.")
    @click.option("--without-link", "without", multiple=True, metavar="A:B", help="Remove the links between two nodes.")
    @click.option("--without-rank", "lost", multiple=True, metavar="NODE", help="Same as --without-node.")
    @click.option(
        "--without-node",
        "nodes",
        multiple=True,
        metavar="NODE",
        help="Remove a rank, switch or NIC with its links; the collective is that of the other ranks.",
    )
    @click.option(
        "--link",
        "links",
        multiple=True,
        metavar="A:B=RATE",
        help="Set the bandwidth of the links between two nodes (a:b=25GB/s, or a:b=50% of what each has), and latency"
        " (a:b=25GB/s,1us), or add them.",
    )
    @wraps(command)
    def with_edits(
        *args: Any,
        ranks: str | None,
        without: tuple[str, ...],
        nodes: tuple[str, ...],
        lost: tuple[str, ...],
        links: tuple[str, ...],
        **kwargs: Any,
    ) -> Any:
        options = ("--without-link", "--without-node", "--without-rank", "--link", "--ranks")
        values = (without, nodes, lost, links, () if ranks is None else (ranks,))
        edits = tuple((option, text) for option, texts in zip(options, values, strict=True) for text in texts)
        return command(*args, edits=edits, **kwargs)

    return with_edits


def keywords_of(edits: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """Return the edits as keyword arguments of the Python verbs."""
    found: dict[str, Any] = {}
    for option, text in edits:
        found.setdefault(option.removeprefix("--").replace("-", "_"), []).append(text)
    return found


def load_edited(what: str, edits: tuple[tuple[str, str], ...]) -> Instance:
    """Load an instance and change its network."""
    from ..instances import load
    from ..instances.edits import Edit, edit_instance

    return edit_instance(load(what), [Edit(*edit) for edit in edits])
