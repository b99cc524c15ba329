"""Schedules of other methods as starts of the general form."""

from __future__ import annotations

import json
from pathlib import Path

import cwb
import pytest
from cwb import solvers
from cwb.cli.main import run as command
from cwb.core.budget import Budget
from cwb.core.errors import InputError
from cwb.core.solver import Termination
from cwb.harness import registry

#: Instances, and methods that make schedules of whole chunks on them; of the last, through a switch that copies.
STARTS = [
    ("ring(4)", "all_gather", "pccl"),
    ("mesh(2,3)", "all_to_all", "pccl"),
    ("torus(2,3)", "all_gather", "tacos"),
    ("line(4)", "all_gather", "spff"),
    ("switch(4)", "all_gather", "direct"),
]


@pytest.mark.parametrize(("name", "collective", "method"), STARTS)
def test_a_schedule_is_a_point_of_the_model(name, collective, method):
    """With sends fixed to those of the start, the model has a solution."""
    run = cwb.solve(name, method, collective=collective)
    declared, problem = registry.formulation("teccl/milp"), cwb.load(name, collective=collective)
    whole = declared.index(*declared.validate_and_pose(problem, {}))
    options = {"epochs": 12, "chunks": len(run.schedule.chunks) // len(whole.problem.commodities)}
    index = declared.index(*declared.validate_and_pose(problem, options))
    model = declared.build(index)
    assert declared.start(model, index, run.schedule) == ""
    assert sum(send.value for send in model.F.values()) > 0
    for send in model.F.values():
        send.fix(send.value)
    assert solvers.get("highs").solve(model, Budget()).termination is Termination.OPTIMAL


def test_a_search_starts_from_a_file_or_a_run(tmp_path, capsys, monkeypatch):
    """The command takes a schedule file and Python a run; both say that the start is taken."""
    monkeypatch.chdir(tmp_path)
    run = cwb.solve("ring(4)", "pccl", collective="all_gather", output="s.json")
    lines: list[str] = []
    found = cwb.solve("ring(4)", "teccl/milp", collective="all_gather", chunks=2, start=run, progress=lines.append)
    assert (found.status, found.metrics["start"], found.verified) == ("optimal", "taken", True)
    assert any(line.startswith("the search begins with the start") for line in lines)
    words = "solve --formulation teccl/milp ring(4) --collective all_gather --start s.json -O chunks=2 --json"
    with pytest.raises(SystemExit):
        command(words.split())
    assert json.loads(capsys.readouterr().out)["metrics"]["start"] == "taken"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"chunks": 2}, "taken"),
        ({}, "its 8 chunks are others than the model's 4 (-O chunks=2)"),
        ({"collective": "all_reduce"}, "a model with sums or hyper-edges takes none"),
        ({"solver": "highs-pdlp"}, "unsupported"),
    ],
)
def test_what_does_not_fit_is_told(options, told):
    """A start of other chunks or with sums is left out, with the reason, and the model is solved without it."""
    begin = cwb.solve("ring(4)", "pccl", collective="all_gather")
    found = cwb.solve("ring(4)", "teccl/milp", **{"collective": "all_gather", "start": begin, **options})
    assert (found.metrics.get("start") or found.status).startswith(told)


def test_a_start_that_takes_too_long_names_the_epochs():
    """A schedule beyond the last epoch says how many it takes; one on other links, that it is."""
    begin = cwb.solve("line(4)", "direct", collective="all_gather")
    found = cwb.solve("line(4)", "teccl/milp", collective="all_gather", start=begin, epochs=3)
    assert found.metrics["start"] == "taken" or "epochs" in found.metrics["start"]
    assert found.status == "optimal"
    other = cwb.solve("ring(4)", "teccl/milp", collective="all_gather", start=begin)
    assert other.metrics["start"] == "it is one on other links"


def test_a_method_takes_no_start(tmp_path):
    """Methods, and files that are no schedules, are refused in one line."""
    begin = cwb.solve("ring(4)", "ring", collective="all_gather")
    with pytest.raises(InputError, match="ring takes no start"):
        cwb.solve("ring(4)", "ring", collective="all_gather", start=begin)
    Path(tmp_path / "none.json").write_text("{}")
    with pytest.raises(InputError, match="none"):
        cwb.solve("ring(4)", "teccl/milp", collective="all_gather", start=tmp_path / "none.json")


@pytest.mark.parametrize(("more", "said"), [({"start": 3}, "no schedule"), ({"pool": 2}, "takes no start")])
def test_a_start_that_cannot_be_used_is_told_before_the_search(more, said):
    """A number is no start, and a search for several answers does not begin with one."""
    begin = cwb.solve("ring(4)", "pccl", collective="all_gather")
    with pytest.raises(InputError, match=said):
        cwb.solve("ring(4)", "teccl/milp", collective="all_gather", **{"start": begin, **more})
