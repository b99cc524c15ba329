"""Tables of collectives and of solvers: what stands in them, what is ranked, what is averaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cwb.core.errors import InputError
from cwb.core.outcome import NO_ANSWER
from cwb.core.record import RunRecord
from cwb.reports.formats import FORMATS
from cwb.reports.statistics import shifted_geometric_mean
from cwb.reports.table import Row, Table, TableCell, build
from cwb.reports.tables import TABLES, get

Make = Callable[..., RunRecord]

SUFFIXES = {"latex": "tex", "md": "md", "csv": "csv", "text": "txt"}


def column(table: Table, name: str) -> int:
    return [column.name for column in table.spec.columns].index(name)


def cell(table: Table, row: Row, name: str) -> TableCell:
    return row.cells[0][column(table, name)]


def rows_of(table: Table, **labels: Any) -> list[Row]:
    places = {key.name: i for i, key in enumerate(table.spec.keys)}
    return [row for row in table.rows if all(row.labels[places[name]] == label for name, label in labels.items())]


@pytest.mark.parametrize("name", sorted(set(TABLES) - {"libra-perf"}))
def test_golden(name: str, wide: list[RunRecord], golden: Callable[[str, str], None]) -> None:
    """Every table of a ledger with every status and clock is what it was, to the byte, in Markdown and LaTeX."""
    table = build(get(name), wide)
    for form in ("md", "latex"):
        golden(f"reports/{name}.{SUFFIXES[form]}", FORMATS[form](table))


@pytest.mark.parametrize("name", TABLES)
def test_the_order_of_records_does_not_matter(name: str, wide: list[RunRecord]) -> None:
    """The same records in another order make the same bytes in every format."""
    table, turned = build(get(name), wide), build(get(name), wide[::-1])
    for form, render in FORMATS.items():
        assert render(table) == render(turned), form


@pytest.mark.parametrize("name", TABLES)
def test_no_cell_is_blank(name: str, wide: list[RunRecord]) -> None:
    """Every cell has a number or a mark, and every mark is explained below."""
    table = build(get(name), wide)
    for row in table.rows:
        for one in (one for group in row.cells for one in group):
            assert one.text
            assert one.value is not None or any(f"{one.text} " in note for note in table.notes), one.text


def test_questions_are_not_ranked_together(make_run: Make) -> None:
    """The best objective of each question is in bold, a bound alone never is, and the best completion time is that of
    all methods."""
    records = [
        make_run("ring", 4e-5),
        make_run("bfb", 2e-5),
        make_run("forestcoll", 1e-5, clock="flow"),
        make_run("blink", 1.5e-5, clock="flow"),
        make_run("tacos", 1.2e-5, clock="circuit"),
        make_run("teccl", 3e-5, clock="te-ccl"),
        make_run("forestcoll-lp", 0.5e-5, clock="bound", kind="relaxation"),
        make_run("multitree", 1e-6, verified=False),
    ]
    table = build(get("forestcoll"), records)
    assert {row.labels[3] for row in table.rows if cell(table, row, "objective_s").best} == {"bfb", "forestcoll"}
    assert {row.labels[3] for row in table.rows if cell(table, row, "completion_time_s").best} == {"tacos"}
    assert {row.labels[3] for row in table.rows if cell(table, row, "busbw_GBps").best} == {"tacos"}
    assert "question" in [key.name for key in table.keys]
    assert any("not ranked against one another" in note for note in table.notes)
    assert cell(table, rows_of(table, method="multitree")[0], "completion_time_s").text == "inv."
    assert cell(table, rows_of(table, method="forestcoll-lp")[0], "completion_time_s").value is None


def test_an_objective_without_a_question_is_not_ranked(make_run: Make) -> None:
    """Records that do not tell what their objective is are in no ranking of objectives."""
    records = [make_run("bfb", 1e-5, metrics={"clock": None}), make_run("ring", 2e-5, metrics={"clock": None})]
    table = build(get("bfb"), records)
    assert not any(cell(table, row, "objective_s").best for row in table.rows)


def test_one_question_needs_no_column(make_run: Make) -> None:
    """If all runs answer the same question, it is printed below the table, not in every row."""
    table = build(get("bfb"), [make_run("ring", 4e-5), make_run("bfb", 2e-5)])
    assert "question" not in [key.name for key in table.keys]
    assert any(note.startswith("Objectives. simulated:") for note in table.notes)


def test_seeds_are_averaged(make_run: Make) -> None:
    """Runs that differ in their seed are one row: the mean, half of its interval, and how many there were, the failed
    one too."""
    records = [make_run("teccl", t, seed=seed, clock="te-ccl") for seed, t in enumerate((1e-5, 2e-5, 3e-5))]
    table = build(get("teccl"), [*records, make_run("teccl", None, seed=3)])
    (row,) = table.rows
    assert cell(table, row, "objective_s").value == pytest.approx(2e-5)
    assert cell(table, row, "completion_time_s").value == pytest.approx(3e-5)
    half = 1.5 * 4.302653e-5 / 3**0.5
    assert cell(table, row, "completion_time_s_half_width").value == pytest.approx(half, rel=1e-6)
    assert cell(table, row, "runs").text == "4"
    assert row.statuses == ("feasible+limit",)
    assert any("Student's t" in note for note in table.notes)


@pytest.mark.parametrize("name", sorted(set(TABLES) - {"libra-perf", "summary", "solvers", "seeds"}))
def test_all_columns_are_of_the_same_runs(name: str, make_run: Make) -> None:
    """Over several seeds every number of a row is the mean of the same runs, in whatever order they came."""
    spec = get(name)
    model = {"mtree": "mtree", "textbook": "ring", "themis": "themis", "all-to-all": "teccl-all-to-all"}.get(name)
    told = ("trees", "max_height", "pieces", "T_L", "T_B", "epochs", "epoch_duration_s", "allreduce_rate_Bps")
    told = (*told, "normalized_throughput", "strength_share", "mean_tree_height", "mean_max_fanout")
    records = [
        make_run(model or name, (1 + seed) * 1e-5, seed=seed, clock="flow", metrics=dict.fromkeys(told, 2.0 + seed))
        for seed in range(3)
    ]
    if name == "exact-heuristic":
        records.append(make_run("exact", 1e-5, kind="exact", clock="flow"))
    alone = [build(spec, [record, *records[3:]]) for record in records[:3]]
    table = build(spec, records)
    for c, column in enumerate(table.spec.columns):
        if column.name.endswith("half_width") or column.name == "runs":
            continue
        values = []
        for one in alone:
            place = [other.name for other in one.spec.columns].index(column.name)
            values += [row.cells[0][place].value for row in one.rows if row.labels[3 % len(row.labels)] != "exact"]
        (row,) = [row for row in table.rows if row.labels[3 % len(row.labels)] != "exact"]
        known = [value for value in values if value is not None]
        expected = pytest.approx(sum(known) / len(known)) if known else None
        assert row.cells[0][c].value == expected, column.name


def test_no_interval_of_single_runs(make_run: Make) -> None:
    """Without repeated runs there is no column of intervals, and no note about it."""
    table = build(get("teccl"), [make_run("teccl", clock="te-ccl")])
    assert "completion_time_s_half_width" not in [column.name for column in table.spec.columns]
    assert not any("Student's t" in note for note in table.notes)


def test_a_table_has_its_papers_problems(make_run: Make) -> None:
    """A paper's table has all methods on the problems that its own were run on, and no other problem."""
    records = [make_run("bfb"), make_run("ring"), make_run("ring", bytes_=1e9), make_run("ring", instance="torus(2,2)")]
    table = build(get("bfb"), records)
    assert [(row.labels[0], row.labels[2], row.labels[3]) for row in table.rows] == [
        ("torus(3,3)", 2.0**20, "bfb"),
        ("torus(3,3)", 2.0**20, "ring"),
    ]
    with pytest.raises(InputError, match="expected records of the model 'mtree' or 'gost'"):
        build(get("mtree"), records)


def test_fractions_are_read(make_run: Make) -> None:
    """Exact fractions of records are numbers of tables; what is none is no value."""
    for text, value in {"14/15": 14 / 15, "3": 3.0, "1/0": None, "1e999999999": None, "x": None, "-1/2": -0.5}.items():
        table = build(get("bfb"), [make_run("bfb", metrics={"T_L": 1, "T_B": text})])
        found = [c.name for c in table.spec.columns]
        assert (table.rows[0].cells[0][found.index("T_B")].value if "T_B" in found else None) == value, text


def test_exact_against_heuristic(make_run: Make) -> None:
    """The gap is to the best bound of all records by the same clock, the ratio to the fastest exact method that proved
    its answer."""
    exact: dict[str, Any] = {"kind": "exact", "status": "optimal", "solver": "highs"}
    records = [
        make_run("sccl", 2e-5, bound=2e-5, certificate={"certificate": "solver"}, seconds={"solve": 8.0}, **exact),
        make_run("taccl", 2e-5, bound=1e-5, seconds={"solve": 4.0}, **exact),
        make_run("late", 2e-5, bound=1e-5, seconds={"solve": 1.0}, **exact | {"status": "feasible"}),
        make_run("ring", 4e-5, seconds={"build": 2.0}),
        make_run("forestcoll", 1e-5, clock="flow", bound=1e-5, certificate=None, kind="exact"),
    ]
    table = build(get("exact-heuristic"), records)
    (row,) = rows_of(table, method="ring")
    assert cell(table, row, "bound").value == 2e-5
    assert cell(table, row, "gap").text == "50.00"
    assert cell(table, row, "time_ratio").value == pytest.approx(0.5)
    (flow,) = rows_of(table, method="forestcoll")
    assert cell(table, flow, "gap").text == "0.00"
    with pytest.raises(InputError, match="a heuristic and of an exact method"):
        build(get("exact-heuristic"), [make_run("ring")])


def test_a_restricted_optimum_answers_another_question(make_run: Make) -> None:
    """The best of few trees is in no ranking with the best of all and lends no time ratio; the bound of all holds for
    it too."""
    exact: dict[str, Any] = {"clock": "flow", "kind": "exact", "status": "optimal"}
    one: dict[str, Any] = {"options": {"trees": 1}, "metrics": {"restricted_to": "at most 1 tree"}}
    records = [
        make_run("mtree", 2e-5, bound=2e-5, seconds={"solve": 1.0}, certificate={"certificate": "x"}, **exact, **one),
        make_run("mtree", 1e-5, bound=1e-5, seconds={"solve": 8.0}, **exact),
        make_run("gost", 1.5e-5, clock="flow", seconds={"solve": 4.0}),
    ]
    two: dict[str, Any] = {"options": {"trees": 2}, "metrics": {"restricted_to": "at most 2 trees"}}
    records.append(make_run("mtree", 2e-5, bound=None, **exact | {"status": "feasible"}, **two))
    table = build(get("exact-heuristic"), records)
    (unproved,) = rows_of(table, method="mtree (trees=2)")
    assert cell(table, unproved, "gap").text == "50.00"
    (narrow,) = rows_of(table, method="mtree (trees=1)")
    assert rows_of(table, question="flow, latency left out; at most 1 tree") == [narrow]
    assert cell(table, narrow, "gap").text == "0.00"
    (whole,), (heuristic,) = rows_of(table, method="mtree"), rows_of(table, method="gost")
    assert cell(table, whole, "objective").best
    assert [cell(table, row, "time_ratio").value for row in (narrow, whole, heuristic)] == [1.0, 1.0, 0.5]


def test_an_attested_bound_on_some_answers_is_lent_to_no_other_method(make_run: Make) -> None:
    """The optimum of a restricted model without options is no bound for a better answer of another method."""
    exact: dict[str, Any] = {"clock": "flow", "kind": "exact", "status": "optimal", "certificate": {"certificate": "x"}}
    few = make_run("mtree/few", 2e-5, bound=2e-5, **exact, metrics={"restricted_to": "few of mtree/few"})
    table = build(get("exact-heuristic"), [few, make_run("gost", 1.5e-5, clock="flow")])
    assert cell(table, rows_of(table, method="gost")[0], "gap").text == "33.33"  # to its own bound of 1e-5


def test_solvers(make_run: Make) -> None:
    """Solved, shifted geometric means with failures at the limit, wins, ties and losses over the tasks that all solvers
    had."""
    made: dict[str, Any] = {"kind": "exact", "status": "optimal"}
    spent = {"highs": (1.0, 10.0, 5.0, None), "scip": (2.0, 10.2, None, None)}
    records = [
        make_run("teccl-milp", 1e-5, solver=solver, seed=seed, seconds={"solve": s}, **made)
        if s is not None
        else make_run("teccl-milp", None, solver=solver, seed=seed, kind="exact")
        for solver, times in spent.items()
        for seed, s in enumerate(times)
    ]
    records.append(make_run("teccl-milp", 1e-5, solver="highs", seed=9, seconds={"solve": 1e-3}, **made))
    table = build(get("solvers"), records)
    highs, scip = table.rows
    texts = [cell(table, highs, name).text for name in ("tasks", "solved", "win", "tie", "loss")]
    assert texts == ["4", "3", "2", "1", "1"]
    texts = [cell(table, scip, name).text for name in ("tasks", "solved", "win", "tie", "loss")]
    assert texts == ["4", "2", "0", "1", "3"]
    assert cell(table, highs, "time_s").value == pytest.approx(shifted_geometric_mean([1.0, 10.0, 5.0, 60.0]))
    assert cell(table, scip, "time_s").value == pytest.approx(shifted_geometric_mean([2.0, 10.2, 60.0, 60.0]))
    assert cell(table, highs, "time_s").best
    assert not cell(table, scip, "time_s").best
    assert any("shift 1 s" in note and "seed 0" in note for note in table.notes)


def test_what_a_solver_does_not_support_is_no_time_out(make_run: Make) -> None:
    """A task that a solver refuses counts for no solver, neither as solved nor at the limit; how many it refused is
    told."""
    made: dict[str, Any] = {"kind": "exact", "status": "optimal", "seconds": {"solve": 2.0}}
    records = [make_run("libra", 1e-5, solver=solver, seed=0, **made) for solver in ("highs", "scip")]
    records.append(make_run("libra", 1e-5, solver="highs", seed=1, **made))
    records.append(make_run("libra", None, solver="scip", seed=1, kind="exact", status="unsupported"))
    table = build(get("solvers"), records)
    highs, scip = table.rows
    for row in (highs, scip):
        assert [cell(table, row, name).text for name in ("tasks", "solved", "loss")] == ["1", "1", "0"]
        assert cell(table, row, "time_s").value == pytest.approx(2.0)
    assert (cell(table, highs, "unsupported").text, cell(table, scip, "unsupported").text) == ("--", "1")


def test_refusals_are_told_where_a_single_solver_took_a_model_on(make_run: Make) -> None:
    """Each solver that refuses has its row, and the only one that does not wins against nobody."""
    made: dict[str, Any] = {"kind": "exact", "seconds": {"solve": 2.0}}
    records = [make_run("mtree", 1e-5, solver="highs", status="optimal", **made)]
    records += [make_run("mtree", None, solver=name, status="unsupported", **made) for name in ("gurobi", "scip")]
    table = build(get("solvers"), records)
    texts = {row.labels[1]: [cell(table, row, name).text for name in ("win", "unsupported")] for row in table.rows}
    assert texts.keys() == {"gurobi", "highs", "scip"}
    assert texts["highs"] == ["0", "--"]
    assert [texts[name][1] for name in ("gurobi", "scip")] == ["1", "1"]


def test_an_answer_without_proof_is_not_solved(make_run: Make) -> None:
    """Of an exact method an answer is not enough; an answer that failed verification is none."""
    records = [
        make_run("sccl", solver="highs", kind="exact", status="feasible"),
        make_run("sccl", solver="scip", kind="exact", status="optimal", verified=False),
        make_run("taccl", solver="highs"),
        make_run("taccl", solver="scip", status="optimal"),
    ]
    table = build(get("solvers"), records)
    assert [cell(table, row, "solved").text for row in table.rows] == ["0", "0", "1", "1"]
    with pytest.raises(InputError, match="at least two solvers"):
        build(get("solvers"), records[:1])


def test_a_bound_alone_that_a_solver_attests_is_solved(make_run: Make) -> None:
    """A relaxation without an answer has nothing to verify: it is solved in its own time, and attested."""
    made: dict[str, Any] = {"clock": "bound", "kind": "relaxation", "status": "optimal", "verified": None}
    made |= {"bound": 1e-5, "proof": "attested", "seconds": {"solve": 2.0}}
    table = build(get("solvers"), [make_run("flow", 1e-5, solver=name, **made) for name in ("highs", "scip")])
    for row in table.rows:
        assert [cell(table, row, name).text for name in ("solved", "attested", "tie")] == ["1", "1", "1"]
        assert cell(table, row, "time_s").value == pytest.approx(2.0)


def test_seeds(make_run: Make) -> None:
    """Means over all tasks with failures at the limit, the range of the means of seeds, excess, and ties to the
    digit."""
    made: dict[str, Any] = {"clock": "flow"}
    times = {1: ((1.0, 4.0), (2.0, None)), 2: ((1.5, 1.5), (1.5, 1.5))}
    objectives = {1: ((1e-5, 3e-5), (1e-5, None)), 2: ((1e-5, 2e-5), (2e-5, 2e-5))}
    records = [
        make_run(
            "gost",
            objectives[trees][k][seed],
            f"torus({2 + k},{2 + k})",
            seed=seed,
            options={"heads": trees},
            seconds={"search": times[trees][k][seed]} if times[trees][k][seed] else {},
            **made,
        )
        for trees in times
        for k in (0, 1)
        for seed in (0, 1)
    ]
    records.append(make_run("gost", 1e-9, "torus(4,4)", seed=0, options={"heads": 1}, **made))
    table = build(get("seeds"), records)
    first, second = table.rows
    assert [row.labels[1] for row in table.rows] == ["heads=1", "heads=2"]
    counts = ("tasks", "seeds", "failed", "best", "tied")
    assert [cell(table, first, name).text for name in counts] == ["4", "2", "1", "2", "1"]
    assert [cell(table, second, name).text for name in counts] == ["4", "2", "0", "3", "1"]
    assert cell(table, first, "time_s").value == pytest.approx(shifted_geometric_mean([1.0, 4.0, 2.0, 60.0]))
    assert cell(table, first, "time_least_s").value == pytest.approx(shifted_geometric_mean([1.0, 2.0]))
    assert cell(table, first, "time_largest_s").value == pytest.approx(shifted_geometric_mean([4.0, 60.0]))
    assert cell(table, second, "time_s").value == pytest.approx(1.5)
    assert cell(table, second, "time_s").best
    assert cell(table, first, "excess").value == pytest.approx((0 + 2 + 0) / 3)
    assert cell(table, first, "excess_largest").value == pytest.approx(2.0)
    assert cell(table, second, "excess").value == pytest.approx((0 + 1 + 1 + 1) / 4)


def test_options_of_a_solver_are_settings(make_run: Make) -> None:
    """A solver with options of its own is another setting."""
    made: dict[str, Any] = {"solver": "highs", "kind": "exact", "status": "optimal"}
    records = [
        make_run("sccl", seed=seed, solver_options=own, **made) for own in ({}, {"presolve": "off"}) for seed in (0, 1)
    ]
    assert [row.labels[2] for row in build(get("seeds"), records).rows] == ["highs", "highs (presolve=off)"]


def test_one_seed_is_no_row(make_run: Make) -> None:
    """A method that was run with one seed, or whose settings share one alone, has no row."""
    records = [make_run("gost", seed=0), make_run("gost", seed=1, options={"heads": 2}), make_run("ring", seed=3)]
    with pytest.raises(InputError, match="at least two seeds"):
        build(get("seeds"), records)


def test_sizes(make_run: Make) -> None:
    """Sizes are in their order, with both bandwidths of nccl-tests."""
    table = build(get("sizes"), [make_run(bytes_=2.0**k, time_s=1e-5) for k in (10, 20, 30)])
    assert [table.label_texts(row)[-1] for row in table.rows] == ["1 KiB", "1 MiB", "1 GiB"]
    last = table.rows[-1]
    assert cell(table, last, "algbw_GBps").value == pytest.approx(2**30 / 1e-5 / 1e9)
    assert cell(table, last, "busbw_GBps").value == pytest.approx(2**30 / 1e-5 / 1e9 * 8 / 9)


def test_algorithms_side_by_side(make_run: Make) -> None:
    """Algorithms on the same network and size are one row; the highest bandwidth of it is in bold, what failed has its
    mark."""
    records = [make_run("ring", 4e-5), make_run("direct", 2e-5), make_run("rhd", None, status="unsupported")]
    table = build(get("textbook"), [*records, make_run("ring", 1e-6, options={"chunks": 4})])
    (row,) = table.rows
    assert [group[0].best for group in row.cells] == [False, True, False, False]
    assert [group[0].text for group in row.cells[2:]] == ["n/a", "--"]


def test_summary_has_every_run(wide: list[RunRecord]) -> None:
    """The summary has a row for every run, failed ones with their marks."""
    from cwb.reports.runs import runs_of

    table = build(get("summary"), wide)
    assert len(table.rows) == len(runs_of(wide))
    marks = {cell(table, row, "objective").text for row in table.rows}
    assert {"t.o.", "n/a", "inf.", "err.", "inv.", "unb."} <= marks


def test_what_was_not_solved_is_told_apart(make_run: Make) -> None:
    """A solution that is no answer is no time-out and has its own time; an error counts with the limit, and is told."""
    made: dict[str, Any] = {"kind": "exact", "seconds": {"build": 3.0, "solve": 1.0}}
    records = [make_run("sccl", 1e-5, solver=name, status="optimal", **made) for name in ("gurobi", "highs", "scip")]
    records += [
        make_run("sccl", None, solver="gurobi", seed=1, status="limit", message=NO_ANSWER, **made),
        make_run("sccl", None, solver="highs", seed=1, status="error", **made),
        make_run("sccl", None, solver="scip", seed=1, status="limit", **made),
    ]
    table = build(get("solvers"), records)
    texts = [[cell(table, row, name).text for name in ("solved", "unanswered", "failed")] for row in table.rows]
    assert texts == [["1", "1", "0"], ["1", "0", "1"], ["1", "0", "0"]]
    times, solves = ([cell(table, row, name).value for row in table.rows] for name in ("time_s", "solve_s"))
    at_limit = [shifted_geometric_mean([own, 60.0]) for own in (4.0, 1.0)]
    assert times == pytest.approx([4.0, at_limit[0], at_limit[0]])
    assert solves == pytest.approx([1.0, at_limit[1], at_limit[1]])
