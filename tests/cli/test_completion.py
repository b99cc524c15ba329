"""Completion at the tab key: what a shell is offered of names, options and values."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete
from cwb.cli.main import cwb


def offered_words(*words: str) -> list[str]:
    """Return the words offered to complete the last one."""
    complete = ShellComplete(cwb, {}, "cwb", "_CWB_COMPLETE")
    found = complete.get_completions(list(words[:-1]), words[-1])
    return [item.value for item in found if item.type == "plain"]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("so",), ["solve"]),
        (("solve", "--model", "teccl-a"), ["teccl-astar", "teccl-all-to-all"]),
        (("solve", "--formulation", "bfb/l"), ["bfb/lp"]),
        (("solve", "--model", "ring", "gpt-3-4d"), ["gpt-3-4d", "gpt-3-4d-multiple"]),
        (("solve", "hyper"), ["hypercube"]),
        (("solve", "--solver", "hi"), ["highs", "highs-pdlp"]),
        (("solve", "--collective", "all_r"), ["all_reduce"]),
        (("solve", "--model", "libra", "4d", "-O", "total"), ["total_bandwidth="]),
        (("solve", "--model", "libra", "4d", "-O", "objective="), ["objective=perf", "objective=perf-per-cost"]),
        (("solve", "4d", "-O", "total"), []),
        (
            (
                "solve",
                "--time-l",
            ),
            ["--time-limit"],
        ),
        (("formulate", "bfb/ch"), ["bfb/chunked"]),
        (("compare", "paper-a"), ["paper-astra"]),
        (("compare", "--models", "ring,tac"), ["ring,taccl", "ring,tacos"]),
        (("table", "exact"), ["exact-heuristic"]),
        (("plot", "perf"), ["performance-profile"]),
        (("show", "nvl"), ["nvl72"]),
        (("list", "su"), ["suites"]),
    ],
)
def test_names_are_offered(words: tuple[str, ...], names: list[str]) -> None:
    """The names that begin with the word so far are offered, and nothing else."""
    assert sorted(offered_words(*words)) == sorted(names)


def test_files_are_left_to_the_shell() -> None:
    """In the place of a file, the shell is told to complete file names too."""
    complete = ShellComplete(cwb, {}, "cwb", "_CWB_COMPLETE")
    assert "file" in {item.type for item in complete.get_completions(["solve"], "my")}
