"""Networks, schedules, records and methods as pandas DataFrames and networkx graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.answers import Answer, BandwidthPlan, BoundOnly, ChunkOrders
from ..core.instance import Instance
from ..core.network_views import links_of
from ..core.option_names import verb
from ..exchange.frames import links_frame, loads_frame, network_graph, schedule_graph, sends_frame
from ..reports.records import load_records
from ..reports.runs import records_frame
from ..schedules.files import ScheduleFile, Written
from ..studies.inputs import Spec, load
from ..studies.support_matrix import methods, methods_for
from .runs import Run
from .schedules import instance_and_sends

if TYPE_CHECKING:
    from networkx import MultiDiGraph
    from pandas import DataFrame


@verb
def to_networkx(spec: Run | Answer | Spec, instance: Spec = None) -> MultiDiGraph:
    """Convert a network, a schedule or a packing of trees into a graph of networkx.

    Parameters
    ----------
    spec : Run, Answer, Topology, or what :func:`load` takes
        For a run, its schedule is converted.
    instance : Instance or other, optional
        Problem of a schedule, which names its nodes; without it nodes are positions, in trees ranks.

    Returns
    -------
    networkx.MultiDiGraph
        For a network, nodes have ``kind`` and ``rank``, edges ``bandwidth_Bps``, ``latency_s`` and ``link``, their
        position; numbers are exact, and :func:`load` restores the network. For a schedule, an edge is a send, with the
        columns of :func:`sends`.
    """
    if (pair := _answer_of(spec, instance)) is not None:
        return schedule_graph(*pair)
    problem = load(spec)
    return network_graph(links_of(problem.network), problem.name)


@verb
def links(spec: Run | Answer | Spec, instance: Spec = None) -> DataFrame:
    """List the links of a network; for a schedule, with the traffic on them.

    Parameters
    ----------
    spec : Run, Answer, Topology, or what :func:`load` takes
        A network, or a schedule on it.
    instance : Instance or other, optional
        Problem of a schedule; without it links have only numbers.

    Returns
    -------
    pandas.DataFrame
        Columns are ``link``, ``source``, ``target``, ``bandwidth_GBps``, ``latency_us``; for a schedule also ``sends``,
        ``load_bytes``, ``busy_s`` and ``utilization``.
    """
    if (pair := _answer_of(spec, instance)) is not None:
        return loads_frame(*pair)
    return links_frame(links_of(load(spec).network))


@verb
def sends(spec: Run | ScheduleFile | Answer, instance: Spec = None) -> DataFrame:
    """List the sends of a schedule, or the edges of trees.

    Parameters
    ----------
    spec : Run, ScheduleFile or Answer
        A schedule, a run with one, or a schedule file that has been read.
    instance : Instance or other, optional
        Problem of the schedule, which names its nodes; without it nodes are positions, in trees ranks.

    Returns
    -------
    pandas.DataFrame
        Columns are ``send``, ``source``, ``target``, ``chunk`` or ``tree``, ``size_bytes``, ``reduce``, ``step`` or
        ``start_s`` and ``end_s``, and ``path``, the links.
    """
    if (pair := _answer_of(spec, instance)) is None:
        problem, answer = instance_and_sends(spec, None)
        return sends_frame(answer, problem)
    return sends_frame(*pair)


def _answer_of(spec: Any, instance: Spec) -> tuple[Answer, Instance | None] | None:
    """Return an answer with its instance; None if neither argument has an answer."""
    if isinstance(spec, Run | ScheduleFile):
        problem, answer = instance_and_sends(spec, None)
        return answer, problem
    if not isinstance(spec, Written | BandwidthPlan | BoundOnly | ChunkOrders):
        return None
    if instance is None:
        return spec, None
    problem, answer = instance_and_sends(instance, spec)
    return answer, problem


@verb
def records(*paths: str | Path) -> DataFrame:
    """Read records, one row each; of runs with the same key only the last.

    Parameters
    ----------
    *paths : str or Path
        JSONL files and folders of them, as written by ``cwb compare``.

    Returns
    -------
    pandas.DataFrame
        Columns are the fields of records; nested fields have a dot: ``seconds.total``, ``options.chunks``,
        ``metrics.busbw_GBps``; ``size_bytes`` is the size of the collective.
    """
    return records_frame(load_records([Path(path) for path in paths]))


@verb
def models(spec: Spec = None, collective: str | None = None) -> DataFrame:
    """List the methods, as ``cwb list models`` does.

    Parameters
    ----------
    spec : Instance or other, optional
        What :func:`load` takes; adds its support by each method and reasons for the lack of it.
    collective : str, optional
        Collective that replaces the instance's.

    Returns
    -------
    pandas.DataFrame
        A row for every ``name`` has ``family``, ``kind`` and ``summary``, and the supported ``network`` and
        ``collectives``; with an instance also ``takes it`` and ``why not``.
    """
    import pandas as pd

    rows = methods() if spec is None else methods_for(load(spec, collective=collective))
    return pd.DataFrame(rows).fillna("").set_index("name")
