"""Report of a results file: plots, tables, failures with reasons, and environments on one page."""

import html
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ..core.errors import InputError
from ..core.grouping import group_by_key
from ..core.record import ATTESTED, RunRecord
from ..core.text import escape_html
from ..core.units import TIMES, amount, size_text
from .cards import cards
from .gaps import problem_name, problem_of
from .numbers import mark_of, natural, number
from .page import fragment, page, plain_table, section
from .plots.html_page import script
from .runs import NAMES, Facets, LedgerRun, facets_of, options_text, runs_of
from .table import build, status_of
from .tables import TABLES
from .tables import get as get_table

MOST_ROWS = 2000  #: Rows of one table that a page has at most.
_ANSWERED = ("optimal", "feasible")  #: Statuses of an answer.

Play = Callable[[RunRecord], bytes | str | None]


def report(records: Sequence[RunRecord], title: str = "cwb report", play: Play = lambda _: None) -> str:
    """Write the report of records of any methods; of repeated runs the latest counts.

    The page is self-contained, and the same for the same records and versions of cwb and matplotlib. ``play`` returns
    the page that plays the schedule of a record, the reason why there is none, or None if no schedule was kept.
    """
    runs = runs_of(records)
    facets = facets_of(runs)
    parts = {
        "Overview": _overview(records, runs),
        "Plots": cards(records, facets),
        **({"Schedules": players} if (players := _schedules(runs, play)) else {}),
        "Tables": _tables(records, facets),
        "Failures": _failures(runs, facets),
        "Environment": _environment(runs),
    }
    links = "".join(f'<a href="#{name.lower()}">{name}</a>' for name in parts)
    theme = '<button id="theme" type="button">light / dark</button>'
    body = "".join(f'<h2 id="{name.lower()}">{name}</h2>{inside}' for name, inside in parts.items())
    return page(
        title,
        f'<nav class="top"><div><strong>{escape_html(title)}</strong>{links}{theme}</div>{_filters(facets)}</nav>'
        f"<main><h1>{escape_html(title)}</h1>{body}</main><footer>Made by cwb from records alone. Headings of tables "
        "sort; a number is written in full in the CSV of its table.</footer>",
        frames=[script()] if players else [],
    )


def _schedules(runs: Sequence[LedgerRun], play: Play) -> str:
    """Frame the player of the fastest answer of every problem whose schedule was kept."""
    by_problem = group_by_key((problem_of(run), run) for run in runs if run.completion_s is not None)
    players: list[str] = []
    for problem in sorted(by_problem, key=lambda problem: natural(problem_name(problem))):
        for run in sorted(by_problem[problem], key=lambda run: run.completion_s or 0.0):
            if (content := play(run.record)) is None:
                continue
            title = f"{problem_name(problem)}: {run.method}, {amount(run.completion_s or 0.0, TIMES)}"
            inside = (
                f'<p class="reading">{escape_html(content)}</p>'
                if isinstance(content, str)
                else f'<iframe sandbox="allow-scripts" loading="lazy" title="{escape_html(title)}" '
                f'srcdoc="{html.escape(content.decode())}"></iframe>'
            )
            players.append(f'<details class="card player"><summary>{escape_html(title)}</summary>{inside}</details>')
            break
    lead = "The fastest verified answer of each problem among those whose schedules were kept; click to play it."
    return f'<p class="lead">{lead}</p>{"".join(players)}' if players else ""


def _filters(facets: Facets) -> str:
    """Write a choice for each facet that has several values."""
    choices = [
        f'<label>{name} <select data-facet="{index}"><option value="">all</option>'
        + "".join(f'<option value="{number}">{escape_html(value)}</option>' for number, value in enumerate(values))
        + "</select></label>"
        for index, (name, values) in enumerate(zip(NAMES, facets.values, strict=True))
        if len(values) > 1
    ]
    status = '<span id="filtered" role="status"></span>'
    return f'<div class="filters" role="search">{"".join(choices)}{status}</div>' if choices else ""


def _overview(records: Sequence[RunRecord], runs: Sequence[LedgerRun]) -> str:
    statuses = Counter(status_of(run.record) for run in runs)
    other = sum(count for name, count in statuses.items() if name not in _TILES)
    tiles = [
        _tile(len(runs), "runs"),
        _tile(statuses["optimal"], "optimal", "good"),
        _tile(statuses[_ATTESTED], _ATTESTED, "good"),
        _tile(statuses["feasible"], "feasible", "good"),
        _tile(statuses["limit"], "at a limit", "warn"),
        _tile(statuses["unsupported"], "not supported", "warn"),
        _tile(statuses["error"], "errors", "bad"),
        _tile(statuses["invalid"], "failed verification", "bad"),
        *([_tile(other, "other", "warn")] if other else []),
        _tile(len({run.problem for run in runs}), "problems"),
        _tile(len({run.record.model for run in runs}), "methods"),
        _tile(len({run.record.solver for run in runs if run.record.solver}), "solvers"),
    ]
    starts = sorted(run.record.started_at for run in runs if run.record.started_at)
    when = f" Started between {starts[0]} and {starts[-1]}." if starts else ""
    again = len(records) - len(runs)
    remark = f" {again:,} older records of runs that were made again are left out." if again else ""
    lead = f"{len(runs):,} runs of {len({run.record.model for run in runs}):,} methods.{when}{remark}"
    return f'<p class="lead">{escape_html(lead)}</p><div class="tiles">{"".join(tiles)}</div>'


_ATTESTED = f"optimal ({ATTESTED})"
_TILES = ("optimal", _ATTESTED, "feasible", "limit", "unsupported", "error", "invalid")


def _tile(count: int, what: str, tone: str = "") -> str:
    shown_tone = f" {tone}" if tone and count else ""
    return f'<div class="tile{shown_tone}"><b>{count:,}</b><span>{what}</span></div>'


def _tables(records: Sequence[RunRecord], facets: Facets) -> str:
    fragments: list[str] = []
    for name in TABLES:
        try:
            table = build(get_table(name), records)
        except InputError:
            continue  # no record fits
        fragments.append(fragment(table, f"table-{name}", MOST_ROWS, facets))
    return "".join(fragments)


def _failures(runs: Sequence[LedgerRun], facets: Facets) -> str:
    """List every run without a verified answer, with its reason."""
    failures = [run for run in runs if mark_of(run.record) is not None or run.record.status not in _ANSWERED]
    if not failures:
        return '<p class="lead">None: every run gave an answer, and every answer was verified.</p>'
    failures.sort(key=lambda run: (status_of(run.record), run.record.model, run.record.message))
    rows = [
        (
            status_of(run.record) + (f" (stopped: {run.record.stopped})" if run.record.stopped else ""),
            run.record.model,
            run.record.solver or "--",
            run.instance,
            (run.record.collective or "--").replace("_", "-"),
            "--" if run.size_bytes is None else size_text(run.size_bytes),
            options_text(run.record.options) or "--",
            run.record.seed,
            round(number(run.record.seconds.get("total")) or 0.0, 3),
            reason(run.record),
        )
        for run in failures
    ]
    headings = (
        "Status",
        "Method",
        "Solver",
        "Instance",
        "Collective",
        "Size",
        "Options",
        "Seed",
        "Total (s)",
        "Reason",
    )
    codes = [facets.code([run.record]) for run in failures]
    inside = plain_table(headings, rows, "Reason", codes)
    return section("failures-table", "Runs without an answer", inside, [], len(rows))


def reason(record: RunRecord) -> str:
    """Return the reason why a run has no verified answer."""
    parts = [record.message, *map(str, record.violations)]
    if record.incumbent:
        incumbent = ", ".join(f"{name} {value}" for name, value in record.incumbent.items() if value is not None)
        parts.append(f"reported before it was stopped: {incumbent} (not verified)")
    return "; ".join(part for part in parts if part) or "no reason was recorded"


def _environment(runs: Sequence[LedgerRun]) -> str:
    machines: dict[tuple[str, ...], list[RunRecord]] = {}
    packages: Counter[tuple[str, str]] = Counter()
    solvers: Counter[tuple[str, str]] = Counter()
    for run in runs:
        record = run.record
        where = record.environment
        values = (str(where.get(name, "--")) for name in ("cpu", "cores", "platform", "python"))
        machines.setdefault((record.host or "--", *values, record.cwb_version, str(record.threads)), []).append(record)
        versions = where.get("packages")
        if isinstance(versions, Mapping):
            packages.update((str(name), str(version)) for name, version in versions.items())
        if record.solver is not None:
            solvers[record.solver, record.solver_version or "--"] += 1
    hosts = [
        (*key, len(group), min(r.started_at for r in group) or "--", max(r.started_at for r in group) or "--")
        for key, group in sorted(machines.items())
    ]
    headings = ("Host", "CPU", "Cores", "Platform", "Python", "cwb", "Threads", "Runs", "First", "Last")
    text = section("machines", "Machines", plain_table(headings, hosts), [], len(hosts))
    for anchor, title, counts in (("solver-versions", "Solvers", solvers), ("package-versions", "Packages", packages)):
        if counts:
            rows = [(*key, count) for key, count in sorted(counts.items())]
            text += section(anchor, title, plain_table(("Name", "Version", "Runs"), rows), [], len(rows))
    return text
