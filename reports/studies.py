"""Tables and pages of studies: advice for a machine, schedules by size, reproduced papers."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..core.paper_results import Finding, PublishedFile, parse_printed
from ..core.text import escape_html
from ..core.units import size_text
from .numbers import MISSING, NumberFormat
from .page import inline, page, plain_table, section
from .table import Column, Key, Row, Table, TableCell, TableSpec

ADVICE_HEADINGS = (
    "size",
    "NCCL takes",
    "predicted us",
    "expected us",
    "overheads %",
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
    "{} takes",  # by another version of NCCL
    "{} predicted us",
    "predicted / {}'s",
)

_LEAST_GAIN = 5e-4  #: Gain of a link's tenth more bandwidth that is worth a sentence.


def advice_table(advice: Mapping[str, Any]) -> tuple[list[str], list[list[object]]]:
    """Return headings and a row for each size; missing numbers are dashes, and columns of dashes are left out."""

    def digits(value: float | None, factor: float = 1.0) -> object:
        return "-" if value is None else float(f"{value * factor:.4g}")

    rows: list[list[object]] = []
    for one in advice["rows"]:
        choice, measured_s, predicted_s = one["nccl"], one["measured_s"], one["nccl_predicted_s"]
        name = f"{choice['algorithm']} {choice['protocol']}".strip() if choice else "-"
        if choice and one["nccl_schedule"] != choice["algorithm"]:
            name += f" (here {one['nccl_schedule']})"
        ratio = measured_s / predicted_s if measured_s and predicted_s else None
        times = [digits(one[key], 1e6) for key in ("nccl_predicted_s", "nccl_expected_s", "nccl_s", "ring_s")]
        times.insert(2, digits(one["overhead"], 100))
        best = [one["best"] or "-", digits(one["best_s"], 1e6), digits(one["times_nccl"])]
        gaps = [digits(one["bound_s"], 1e6), digits(one["gap"], 100), digits(one["nccl_gap"], 100)]
        against = [one["against"] or "-", digits(one["against_s"], 1e6), digits(one["times_against"])]
        ends = [digits(measured_s, 1e6), digits(ratio), *against]
        rows.append([size_text(one["size_bytes"]), name, *times, *best, *gaps, *ends])
    headings = [text.format((advice["against"] or "").partition(" ")[0]) for text in ADVICE_HEADINGS]
    columns = [place for place in range(len(headings)) if any(row[place] != "-" for row in rows)]
    return [headings[place] for place in columns], [[row[place] for place in columns] for row in rows]


def hints(advice: Mapping[str, Any]) -> list[str]:
    """Write the largest improvements as sentences: the best schedule, another algorithm of NCCL, a faster link."""
    sentences: list[str] = []
    if below := [
        (one["size_bytes"], one["measured_s"], one["bound_s"]) for one in advice["rows"] if one["measured_below_bound"]
    ]:
        sentences.append(faster_than_bound(below, advice["suspects"]))
    best = max((one for one in advice["rows"] if one["times_nccl"]), key=lambda one: one["times_nccl"], default=None)
    if best is not None and best["times_nccl"] > 1.02:
        part = best["overhead"] or 0
        rest = f", where {100 * part:.0f} % of the expected time are overheads, mostly left out" if part > 0.5 else ""
        sentences.append(
            f"{best['best']} is {best['times_nccl']:.3g} times as fast as NCCL's schedule at "
            f"{size_text(best['size_bytes'])}{rest}."
        )
    for one in sorted(advice["algorithms"], key=lambda one: -one["times"])[:1]:
        sentences.append(
            f"NCCL's own {one['better']} is {one['times']:.3g} times as fast as the {one['taken']} that it takes at "
            f"{size_text(one['size_bytes'])}, in cwb's model of time."
        )
    for one in [link for link in advice["links"] if link["gain"] > _LEAST_GAIN][:1]:
        which = f"the {one['count']:,} links like {one['links']}" if one["count"] > 1 else f"the link {one['links']}"
        sentences.append(
            f"A tenth more bandwidth of {which} ({one['GBps']:g} GB/s) takes {100 * one['gain']:.3g} % off the bound "
            "at the largest size."
        )
    return [*sentences, *_diagnosis_in_words(advice)]


def _diagnosis_in_words(advice: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on the largest measured size, its likely causes, and a log."""
    diagnosis: Mapping[str, Any] = advice["diagnosis"] or {"log": ()}
    if "size_bytes" in diagnosis:
        low, high, expected, actual = (
            advice["busbw_factor"] * diagnosis["size_bytes"] / diagnosis[key] / 1e9
            for key in ("high_s", "low_s", "expected_s", "measured_s")
        )
        verdict = "slower than" if actual < low or diagnosis["causes"] else "faster than" if actual > high else "as"
        yield (
            f"{size_text(diagnosis['size_bytes'])} is measured {verdict} expected: {actual:.4g} GB/s bus bandwidth, "
            f"expected {expected:.4g}, {low:.4g} to {high:.4g} in nine of ten cases."
        )
        for one in diagnosis["causes"][:2]:
            rate = advice["busbw_factor"] * diagnosis["size_bytes"] / one["expected_s"] / 1e9
            yield f"Expected is {rate:.4g} GB/s with {one['cause']}."
    yield from diagnosis["log"]


def faster_than_bound(below: Sequence[tuple[int, float, float]], suspects: Sequence[str]) -> str:
    """Write a sentence on measured times below the bound, given as (size, measured s, bound s).

    The suspects are sentences on parts of the instance that may be described wrongly.
    """
    size, measured_s, bound_s = max(below, key=lambda one: one[2] / one[1])
    return (
        f"Measured times are below the lower bound at {len(below)} {'size' if len(below) == 1 else 'sizes'}, most at "
        f"{size_text(size)}: {measured_s * 1e6:.4g} us, bound {bound_s * 1e6:.4g} us. The instance does not match the "
        f"machine. {' '.join(suspects)}"
    )


def advice_page(advice: Mapping[str, Any], wide: bytes, narrow: bytes) -> str:
    """Write the page of what ``cwb advise --json`` prints, with its curves as SVG for wide and for narrow screens."""
    title = f"{advice['collective']} on {advice['instance']}"
    about = f"{advice['ranks']:,} ranks in {advice['boxes']:,} boxes, {advice['gpu']}, NCCL {advice['nccl']}"
    costs = [
        [one["algorithm"], one["protocol"], round(one["latency_us"], 2), round(one["bandwidth_GBps"], 2)]
        for one in advice["table"]
    ]
    graphs = [[name, one["channels"], one["intra_GBps"], one["inter_GBps"]] for name, one in advice["graphs"].items()]
    links = [[one["links"], one["count"], one["GBps"], round(100 * one["gain"], 2)] for one in advice["links"]]
    why = [advice["why_no_links"]] if advice["why_no_links"] else []
    left_out = [list(pair) for pair in advice["left_out"].items()]
    headings, rows = advice_table(advice)
    sections: list[tuple[str, str, Sequence[str], Sequence[Sequence[object]], Sequence[str]]] = [
        ("sizes", "By size", headings, rows, _NOTES),
        ("algorithms", "NCCL's table", ("algorithm", "protocol", "latency us", "bandwidth GB/s"), costs, [_ZERO]),
        ("graphs", "NCCL's channels", ("algorithm", "channels", "within a box GB/s", "between boxes GB/s"), graphs, []),
        ("links", "What more bandwidth is worth", ("links", "number", "GB/s", "gain of a tenth more %"), links, why),
        ("left-out", "Left out", ("schedule", "why"), left_out, []),
    ]
    plots = "".join(
        f'<div class="panel {name}">{inline(plot, name, "Bus bandwidth over the size")}</div>'
        for name, plot in (("wide", wide), ("narrow", narrow))
    )
    parts = [
        f"<h1>{escape_html(title)}</h1><p>{escape_html(about)}</p>",
        *(f"<p>{escape_html(text)}</p>" for text in hints(advice)),
        f'<section class="card" id="plot"><figure style="--panels: 4"><div class="panels">{plots}</div>'
        "</figure></section>",
        *(
            section(anchor, heading, plain_table(columns, lines, long="why"), notes, len(lines), is_open=True)
            for anchor, heading, columns, lines, notes in sections
            if lines
        ),
    ]
    return page(title, f"<main>{''.join(parts)}</main><footer>Made by cwb advise.</footer>", wide=True)


_NOTES = (
    "NCCL's prediction has the latencies and caps that NVIDIA has measured; all other times but the measured ones are "
    "completion times in cwb's model of time, by the rates and latencies of the machine's links.",
    "× over NCCL is the time of NCCL's schedule over that of the best one; a gap is (time - bound) / time, of the best "
    "schedule and of NCCL's.",
    "The expected time has the overheads that NCCL's prediction leaves out, as in cwb predict; overheads are its part "
    "that does not grow with the size: launch, protocol and latencies. Schedules have the latencies of links alone.",
)
_ZERO = "A bandwidth of 0: NCCL does not take it here."

SELECTION_HEADINGS = ("from B", "to B", "schedule", "time us", "to us", "bound us", "to us", "gap %", "to %", "file")


def selection_rows(selection: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return a row for each range of sizes in ``select.json``, in the columns of :data:`SELECTION_HEADINGS`."""
    return [
        (
            f"{one['min_bytes']:,}",
            f"{one['max_bytes']:,}",
            one["schedule"],
            *(f"{seconds * 1e6:,.6g}" for seconds in one["seconds"]),
            *(f"{seconds * 1e6:,.6g}" for seconds in one["bound_s"]),
            *(f"{100 * gap:.4g}" for gap in one["gap"]),
            one["file"],
        )
        for one in selection["ranges"]
    ]


def selection_markdown(selection: Mapping[str, Any]) -> str:
    """Return the chosen schedules as a table in Markdown."""
    rules = ["---" if name in ("schedule", "file") else "---:" for name in SELECTION_HEADINGS]
    lines = [SELECTION_HEADINGS, rules, *selection_rows(selection)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def selection_csv(selection: Mapping[str, Any]) -> str:
    """Return the chosen schedules as comma-separated values, numbers in full and in base units."""
    stream = io.StringIO()
    out = csv.writer(stream, lineterminator="\n")
    ends = ("first_s", "last_s", "first_GBps", "last_GBps", "first_bound_s", "last_bound_s")
    out.writerow(["min_bytes", "max_bytes", "schedule", *ends, "steps", "file"])
    for one in selection["ranges"]:
        numbers = [*one["seconds"], *one["algbw_GBps"], *one["bound_s"], one["steps"]]
        out.writerow([one["min_bytes"], one["max_bytes"], one["schedule"], *numbers, one["file"]])
    return stream.getvalue()


#: Our numbers have two digits more than most printed ones, so that rounding is seen.
_OURS = NumberFormat("general", 6)


def reproduction_table(paper: PublishedFile, findings: Sequence[Finding]) -> Table:
    """Tabulate a reproduction: paper, ours, difference, verdict; equal reasons share a number and a note below."""
    reasons = list(dict.fromkeys(f.reason for f in findings if f.reason))
    notes = [paper.note] if paper.note else []
    notes += [f"({number}) {reason}" for number, reason in enumerate(reasons, 1)]
    keys = tuple(Key(name.lower(), name) for name in ("Where", "Section", "Row", "Quantity", "Verdict"))
    spec = TableSpec(
        name="reproduce",
        title=f"{paper.title}: printed numbers and ours",
        expects="published numbers",
        entries=lambda records: [],
        keys=keys,
        columns=(
            Column("paper", "Paper", lambda record: None, _OURS),
            Column("ours", "Ours", lambda record: None, _OURS),
            Column("difference", "Difference", lambda record: None, NumberFormat("fixed", 2, 0.01), "%"),
        ),
    )
    return Table(spec, tuple(range(len(keys))), tuple(_finding_row(f, reasons) for f in findings), (), tuple(notes))


def emulation_table(paper: PublishedFile, rows: Sequence[Mapping[str, Any]], note: str) -> Table:
    """Tabulate methods that were measured on an emulated network, with predicted times beside measured ones."""
    names = ("predicted_s", "predicted_with_headers_s", "median_s", "low_s", "high_s", "ratio_with_headers", "load")
    keys = tuple(Key(name, name.capitalize()) for name in ("instance", "method", "pieces", "messages"))
    columns = tuple(Column(name, name, lambda record: None, _OURS) for name in names)
    title = f"{paper.title}: methods on an emulated network"
    spec = replace(reproduction_table(paper, ()).spec, title=title, keys=keys, columns=columns)
    lines = []
    for row in rows:
        labels = row["instance"], row["method"], str(row["pieces"] or ""), str(row["messages"])
        cells = tuple(_number_cell(row[name], NumberFormat("general", 4).show) for name in names)
        lines.append(Row(labels, (cells,), ("right" if row["right"] else "wrong",)))
    return Table(spec, tuple(range(len(keys))), tuple(lines), (), (note,))


def _finding_row(finding: Finding, reasons: Sequence[str]) -> Row:
    row, ours, difference = finding.row, finding.ours, finding.difference
    verdict = finding.agreement.value + (f" ({reasons.index(finding.reason) + 1})" if finding.reason else "")
    quantity = f"{row.column} ({row.unit})" if row.unit and row.column else row.column or row.unit
    place = row.section if row.page is None else f"{row.section}, p. {row.page}"
    read = parse_printed(row.printed)
    number = None if read.value is None or not read.exact else float(read.value)
    cells = (
        TableCell(row.printed, number, words=row.printed if number is None else None),
        TableCell(ours, words=ours) if isinstance(ours, str) else _number_cell(ours, _OURS.show),
        _number_cell(difference, lambda value: f"{100 * value:.2f}" if abs(value) >= 5e-5 else "0"),
    )
    return Row((row.table, place, row.row, quantity, verdict), (cells,), (finding.agreement.value,))


def _number_cell(value: float | None, show: Callable[[float], str]) -> TableCell:
    return TableCell(MISSING.text) if value is None else TableCell(show(value), value)
