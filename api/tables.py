"""Networks, schedules, records and methods as DataFrames of pandas and graphs of networkx."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .answers import sent
from .inputs import Spec, load
from .runs import Run

if TYPE_CHECKING:
    from ..core.answers import Answer
    from ..core.instance import Instance
    from ..core.topology import Topology


def to_networkx(spec: Run | Answer | Spec, instance: Spec = None) -> Any:
    """Convert a network, a schedule or a packing of trees into a ``networkx.MultiDiGraph``.

    Parameters
    ----------
    spec : Run, answer, Topology, or what :func:`load` takes
        Of a run, its schedule.
    instance : Instance or other, optional
        What a schedule is for: then its nodes have names; else they are positions, of trees ranks.

    Returns
    -------
    networkx.MultiDiGraph
        Of a network, nodes have ``kind`` and ``rank``, edges ``bandwidth_Bps``, ``latency_s`` and ``link``, their
        position; numbers are exact, and :func:`load` gives the same network back. Of a schedule, an edge is a send,
        with the columns of :func:`sends`.

    Raises
    ------
    InputError
        If an answer sends nothing.
    """
    from ..exchange.networkx_graphs import network_graph, schedule_graph

    if (found := _answer_of(spec, instance)) is not None:
        return schedule_graph(*found)
    known = load(spec)
    return network_graph(_links_of(known), known.name)


def links(spec: Run | Answer | Spec, instance: Spec = None) -> Any:
    """Return the links as a ``pandas.DataFrame``; for a schedule, with what is sent over them.

    Parameters
    ----------
    spec : Run, answer, Topology, or what :func:`load` takes
        A network, or what is sent over it.
    instance : Instance or other, optional
        What a schedule is for; without it links have numbers alone.

    Returns
    -------
    pandas.DataFrame
        ``link``, ``source``, ``target``, ``bandwidth_GBps``, ``latency_us``; of a schedule also ``sends``,
        ``load_bytes``, ``busy_s`` and ``utilization``.

    Raises
    ------
    InputError
        As of :func:`to_networkx`.
    """
    from ..exchange.frames import links_frame, loads_frame

    if (found := _answer_of(spec, instance)) is not None:
        return loads_frame(*found)
    return links_frame(_links_of(load(spec)))


def sends(spec: Run | Answer, instance: Spec = None) -> Any:
    """Return the sends of a schedule, or the edges of trees, as a ``pandas.DataFrame``.

    Parameters
    ----------
    spec : Run or answer
        The schedule.
    instance : Instance or other, optional
        What it is for: then nodes have names; else they are positions, of trees ranks.

    Returns
    -------
    pandas.DataFrame
        ``send``, ``source``, ``target``, ``chunk`` or ``tree``, ``size_bytes``, ``reduce``, ``step`` or ``start_s`` and
        ``end_s``, and ``path``, the links.

    Raises
    ------
    InputError
        If nothing is sent.
    """
    from ..exchange.frames import sends_frame

    if (found := _answer_of(spec, instance)) is None:
        posed, answer = sent(spec, None)
        return sends_frame(answer, posed)
    return sends_frame(*found)


def _answer_of(spec: Any, instance: Spec) -> tuple[Answer, Instance | None] | None:
    """The answer and its instance, if it is about an answer."""
    from ..core.answers import BandwidthPlan, BoundOnly, ChunkOrders
    from ..schedules.files import ScheduleFile, Written

    if isinstance(spec, Run | ScheduleFile):
        posed, answer = sent(spec, None)
        return answer, posed
    if not isinstance(spec, Written | BandwidthPlan | BoundOnly | ChunkOrders):
        return None
    if instance is None:
        return spec, None
    posed, answer = sent(instance, spec)
    return answer, posed


def _links_of(instance: Instance) -> Topology:
    """The network of an instance; a fabric is expanded into links."""
    from ..core.fabric import Fabric
    from ..core.network_views import links_of

    return links_of(instance.network) if isinstance(instance.network, Fabric) else instance.network


def records(*paths: str | Path) -> Any:
    """Return records as a ``pandas.DataFrame``, with a row for each; of several runs with the same key the last one.

    Parameters
    ----------
    *paths : str or Path
        JSONL files, and folders of them, as ``cwb compare`` writes.

    Returns
    -------
    pandas.DataFrame
        Columns are the fields of records; those of nested objects have a dot: ``seconds.total``,
        ``options.chunks``, ``metrics.busbw_GBps``; ``size_bytes`` is the size of the collective.

    Raises
    ------
    InputError
        If there is no record, or a line is not one; the message names the file and the line.
    """
    from ..reports.frame import records_frame
    from ..reports.records import load_records

    return records_frame(load_records([Path(path) for path in paths]))


def models(spec: Spec = None, collective: str | None = None) -> Any:
    """Return methods as a ``pandas.DataFrame``, as ``cwb list models`` lists them.

    Parameters
    ----------
    spec : Instance or other, optional
        What :func:`load` takes: then who takes it, and why others do not.
    collective : str, optional
        Of the instance.

    Returns
    -------
    pandas.DataFrame
        A row for every ``name``, with ``family``, ``kind`` and ``summary``, and ``network`` and ``collectives`` that it
        takes; of an instance ``takes it`` and ``why not``.
    """
    import pandas as pd

    from ..harness.takers import methods, methods_for

    rows = methods() if spec is None else methods_for(load(spec, collective=collective))
    return pd.DataFrame(rows).fillna("").set_index("name")
