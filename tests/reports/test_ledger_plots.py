"""Plots of a ledger: what is drawn, what counts as unsolved, and what is said to be left out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cwb.core.record import RunRecord
from cwb.reports.plots.ledger import front, ratios
from cwb.reports.plots.look import look, most_common, strokes
from hypothesis import given
from hypothesis import strategies as st

Make = Callable[..., RunRecord]


def test_ratios() -> None:
    """A series has its factors to the best of every problem that it answered, and none where it did not."""
    values = {("p",): {"a": 2.0, "b": 1.0}, ("q",): {"a": 3.0, "b": 12.0}, ("r",): {"b": 1.0, "c": 5.0}}
    assert ratios(values, "a") == [1.0, 2.0]
    assert ratios(values, "b") == [1.0, 1.0, 4.0]
    assert ratios(values, "c") == [5.0]


def test_profile_counts_failures(make_run: Make) -> None:
    """A method that failed on one of two problems ends at half; each clock of objectives has a panel, bounds have
    none."""
    from cwb.reports.plots.ledger import draw_profile

    records = [
        *(make_run("ring", 4e-5, bytes_=size) for size in (1024.0, 4096.0)),
        *(make_run("dbt", 3e-5, bytes_=size) for size in (1024.0, 4096.0)),
        make_run("bfb", 2e-5, bytes_=1024.0),
        make_run("bfb", None, bytes_=4096.0),
        *(make_run(model, t, bytes_=1024.0, clock="flow") for model, t in (("forestcoll", 1e-5), ("blink", 2e-5))),
        *(make_run(model, 1e-5, bytes_=1024.0, clock="bound") for model in ("forestcoll-lp", "x-lp")),
    ]
    with look():
        figure = draw_profile(records)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["own time, 2 problems", "completion time, 2 problems", "objective, flow, 1 problem"]
    ends = {tuple(line.get_ydata())[-1] for line in figure.axes[1].lines}
    assert ends == {0.5, 1.0}


def test_anytime_steps_down_to_the_verified_answer(make_run: Make) -> None:
    """A line has the better answers alone and ends with the verified one; reports of a solver count if they end at the
    verified objective; a method that reported nothing is a point, and gaps that no axis holds are left out."""
    from cwb.reports.plots.ledger import draw_anytime

    def reports(of: str, *values: float) -> list[dict[str, Any]]:
        return [{"objective": v, "seconds": 0.1 * k, "of": of} for k, v in enumerate(values, start=1)]

    proved = {"bound": 1e-5, "proof": "recomputed", "certificate": {"certificate": "cut"}, "seconds": {"solve": 1.0}}
    records = [
        make_run("ring", 2e-5, **proved, history=reports("method", 4e-5, 5e-5, 2e-5, 5e-324)),
        make_run("bfb", 2e-5, **proved, history=[*reports("solver", 3.0, 4e-5), *reports("solver", 2e-5)]),
        make_run("dbt", 2e-5, **proved, history=reports("solver", 3.0, 2.0)),
        make_run("rhd", 4e-5, **proved),
    ]
    with look():
        (axes,) = draw_anytime(records).axes
    lines = {line.get_label(): line.get_xydata() for line in axes.lines}
    assert lines["ring"] == pytest.approx(np.array([(0.1, 0.75), (0.3, 0.5), (1.0, 0.5)]))
    assert lines["bfb"][-1] == pytest.approx(np.array((1.0, 0.5)))
    assert len(lines["bfb"]) == 4
    assert lines["dbt"] == pytest.approx(np.array([(1.0, 0.5)]))
    assert lines["rhd"] == pytest.approx(np.array([(1.0, 0.75)]))


def test_gap_profile(make_run: Make) -> None:
    """A method at the bound on one of two problems begins at half, and one that failed there ends at half."""
    from cwb.reports.plots.ledger import draw_gap_profile

    certificate = {"certificate": "cut"}
    records = [
        make_run("ring", t, bytes_=size, bound=1e-5, proof="recomputed", certificate=certificate)
        for t, size in ((1e-5, 1024.0), (2e-5, 4096.0))
    ]
    records += [make_run("bfb", 2e-5, bytes_=1024.0), make_run("bfb", None, bytes_=4096.0)]
    with look():
        lines = {line.get_label(): line for line in draw_gap_profile(records).axes[0].lines}
    begins, beyond = list(lines["ring"].get_xdata())[1:3]
    assert begins == 1.0 < beyond
    assert [list(lines[name].get_ydata())[-1] for name in ("bfb", "ring")] == [0.5, 1.0]


points = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.just(1)), min_size=1, max_size=12)


@given(found=points)
def test_front(found: list[Any]) -> None:
    """On the front stand, in order, those that no other point beats; everything else is beaten by one of them."""
    kept = front(found)
    assert all(a[0] < b[0] and a[1] > b[1] for a, b in pairwise(kept))
    assert all(any(f[0] <= p[0] and f[1] <= p[1] for f in kept) for p in found)


def test_series_are_told_apart() -> None:
    """Sixteen series have sixteen strokes, the same whatever the order of the names."""
    names = [f"method-{i}" for i in range(16)]
    styles = strokes(names)
    seen = [{name: value for name, value in style.items() if name != "label"} for style in styles.values()]
    assert len({tuple(sorted(style.items())) for style in seen}) == 16
    assert strokes(names[::-1]) == styles


def test_most_common() -> None:
    """The names with the most runs are kept, in their natural order."""
    assert most_common(["b", "a", "a", "c10", "c10", "c9", "c9"], 3) == ["a", "c9", "c10"]


def test_scaling_tells_the_exponent(make_run: Make) -> None:
    """A method whose time grows as the square of the ranks has the exponent 2 in the legend; with two numbers of ranks
    it has none."""
    from cwb.core.errors import InputError
    from cwb.reports.plots.ledger import draw_scaling as draw_ranks

    sizes = {"torus(2,2)": 4, "torus(3,3)": 9, "torus(4,4)": 16}
    records = [make_run("bfb", instance=name, seconds={"balance": 0.01 * n * n}) for name, n in sizes.items()]
    with look():
        figure = draw_ranks(records)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["bfb: r^2.0 ± 0.0"]
    with pytest.raises(InputError, match="three numbers of ranks"), look():
        draw_ranks(records[:2])


def test_bandwidth_draws_the_mean_of_seeds(make_run: Make) -> None:
    """A line goes through the mean busbw of every size; what is left out is told."""
    from cwb.reports.plots.ledger import draw_bandwidth as draw

    records = [
        make_run("bfb", t, bytes_=size, seed=seed) for size in (1024.0, 2.0**20) for seed, t in enumerate((1e-5, 2e-5))
    ]
    with look():
        (axes,) = draw(records).axes
    ((x, y), _) = axes.lines[0].get_xydata().tolist()
    assert x == 1024.0
    assert y == pytest.approx((1024 / 1e-5 + 1024 / 2e-5) / 2 / 1e9 * 8 / 9)
