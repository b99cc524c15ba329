"""Advice for a machine, as a table in the terminal and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.text import markup
from .html_table import plain_table, section
from .numbers import size_text
from .page import page
from .svg import inline

HEADINGS = (
    "size",
    "NCCL takes",
    "predicted us",
    "its schedule us",
    "ring us",
    "best schedule",
    "best us",
    "× over NCCL",
    "bound us",
    "gap %",
    "NCCL's gap %",
    "measured us",
    "measured / predicted",
)


#: Gain of a link's tenth more bandwidth that is worth a sentence.
_LEAST_GAIN = 5e-4


def rows(found: Mapping[str, Any]) -> list[list[object]]:
    """Return one row for each size, in the columns of :data:`HEADINGS`; missing numbers are dashes."""
    return [_row(one) for one in found["rows"]]


def _row(one: Mapping[str, Any]) -> list[object]:
    taken = one["nccl"]
    name = f"{taken['algorithm']} {taken['protocol']}".strip() if taken else None
    if taken and one["nccl_schedule"] != taken["algorithm"]:
        name = f"{name} (here {one['nccl_schedule']})"
    measured, predicted = one["measured_s"], one["nccl_predicted_s"]
    return [
        size_text(one["size_bytes"]),
        name or "-",
        _micros(predicted),
        _micros(one["nccl_s"]),
        _micros(one["ring_s"]),
        one["best"] or "-",
        _micros(one["best_s"]),
        _digits(one["times_nccl"]),
        _micros(one["bound_s"]),
        _percent(one["gap"]),
        _percent(one["nccl_gap"]),
        _micros(measured),
        _digits(measured / predicted if measured and predicted else None),
    ]


def _micros(value: float | None) -> object:
    return _digits(None if value is None else value * 1e6)


def _percent(share: float | None) -> object:
    return _digits(None if share is None else 100 * share)


def _digits(value: float | None) -> object:
    return "-" if value is None else float(f"{value:.4g}")


def hints(found: Mapping[str, Any]) -> list[str]:
    """Write the largest improvements as sentences: the best schedule, another algorithm of NCCL, a faster link."""
    told: list[str] = []
    if below := [
        (one["size_bytes"], one["measured_s"], one["bound_s"]) for one in found["rows"] if one["measured_below_bound"]
    ]:
        told.append(faster_than_bound(below, found["suspects"]))
    best = max((one for one in found["rows"] if one["times_nccl"]), key=lambda one: one["times_nccl"], default=None)
    if best is not None and best["times_nccl"] > 1.02:
        told.append(
            f"{best['best']} is {best['times_nccl']:.3g} times as fast as NCCL's schedule at "
            f"{size_text(best['size_bytes'])}."
        )
    for one in sorted(found["algorithms"], key=lambda one: -one["times"])[:1]:
        told.append(
            f"NCCL's own {one['better']} is {one['times']:.3g} times as fast as the {one['taken']} that it takes at "
            f"{size_text(one['size_bytes'])}, in cwb's model of time."
        )
    for one in [link for link in found["links"] if link["gain"] > _LEAST_GAIN][:1]:
        which = f"the {one['count']:,} links like {one['links']}" if one["count"] > 1 else f"the link {one['links']}"
        told.append(
            f"A tenth more bandwidth of {which} ({one['GBps']:g} GB/s) takes {100 * one['gain']:.3g} % off the bound "
            "at the largest size."
        )
    slow = [one for one in found["rows"] if one["measured_s"] and one["nccl_predicted_s"]]
    worst = max(slow, key=lambda one: one["measured_s"] / one["nccl_predicted_s"], default=None)
    if worst is not None:
        ratio = worst["measured_s"] / worst["nccl_predicted_s"]
        told.append(
            f"The measured time is farthest from NCCL's prediction at {size_text(worst['size_bytes'])}: {ratio:.3g} "
            "times."
        )
    return told


def faster_than_bound(below: Sequence[tuple[int, float, float]], suspects: Sequence[str]) -> str:
    """Write a sentence on measured times below the bound, given as (size, measured s, bound s).

    Parameters
    ----------
    suspects : sequence of str
        Parts of the instance that may be described wrongly, as sentences.
    """
    size, measured_s, bound_s = max(below, key=lambda one: one[2] / one[1])
    return (
        f"Measured times are below the lower bound at {len(below)} {'size' if len(below) == 1 else 'sizes'}, most at "
        f"{size_text(size)}: {measured_s * 1e6:.4g} us, bound {bound_s * 1e6:.4g} us. The instance does not match the "
        f"machine. {' '.join(suspects)}"
    )


def advice_page(found: Mapping[str, Any], plot: bytes) -> str:
    """Write the page of advice.

    Parameters
    ----------
    found : mapping
        The object that ``cwb advise --json`` prints.
    plot : bytes
        The bandwidth curves as SVG.
    """
    title = f"{found['collective']} on {found['instance']}"
    about = f"{found['ranks']:,} ranks in {found['boxes']:,} boxes, {found['gpu']}, NCCL {found['nccl']}"
    label = markup("Bus bandwidth over the size")
    parts = [
        f"<h1>{markup(title)}</h1><p>{markup(about)}</p>",
        "".join(f"<p>{markup(text)}</p>" for text in hints(found)),
        f'<section class="card"><figure style="--panels: 2"><div class="panels">'
        f'<div class="panel">{inline(plot, "busbw", label)}</div></div></figure></section>',
        _section("sizes", "By size", HEADINGS, rows(found), _NOTES),
        _section(
            "algorithms",
            "NCCL's table",
            ("algorithm", "protocol", "latency us", "bandwidth GB/s"),
            _costs(found),
            [_TABLE],
        ),
        _section(
            "graphs",
            "NCCL's channels",
            ("algorithm", "channels", "within a box GB/s", "between boxes GB/s"),
            _graphs(found),
            [],
        ),
        _section(
            "links",
            "What more bandwidth is worth",
            ("links", "number", "GB/s", "gain of a tenth more %"),
            _links(found),
            _why(found),
        ),
        _section("left-out", "Left out", ("schedule", "why"), [list(pair) for pair in found["left_out"].items()], []),
    ]
    return page(title, f"<main>{''.join(parts)}</main><footer>Made by cwb advise.</footer>", wide=True)


_NOTES = (
    "NCCL's prediction has the latencies and caps that NVIDIA has measured; all other times but the measured ones are "
    "completion times in cwb's model of time, by the rates and latencies of the machine's links.",
    "× over NCCL is the time of NCCL's schedule over that of the best one; a gap is (time - bound) / time, of the best "
    "schedule and of NCCL's.",
)
_TABLE = "A bandwidth of 0: NCCL does not take it here."


def _section(anchor: str, title: str, headings: Sequence[str], lines: list[list[object]], notes: Sequence[str]) -> str:
    return (
        section(anchor, title, plain_table(headings, lines, long="why"), notes, len(lines), opened=True)
        if lines
        else ""
    )


def _costs(found: Mapping[str, Any]) -> list[list[object]]:
    return [
        [one["algorithm"], one["protocol"], round(one["latency_us"], 2), round(one["bandwidth_GBps"], 2)]
        for one in found["table"]
    ]


def _graphs(found: Mapping[str, Any]) -> list[list[object]]:
    return [[name, one["channels"], one["intra_GBps"], one["inter_GBps"]] for name, one in found["graphs"].items()]


def _links(found: Mapping[str, Any]) -> list[list[object]]:
    return [[one["links"], one["count"], one["GBps"], round(100 * one["gain"], 2)] for one in found["links"]]


def _why(found: Mapping[str, Any]) -> list[str]:
    return [found["why_no_links"]] if found["why_no_links"] else []
