"""Commands and code on the pages do what they say."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import fields
from pathlib import Path

import click
import cwb
import pytest
from command_line import parse_command
from cwb.api.plots import names_network
from cwb.core import collective
from cwb.core.errors import ExitStatus, InputError, Unsupported, locate_errors
from cwb.core.fields import run_validation
from cwb.core.network_views import supported_view
from cwb.harness import registry
from cwb.harness.plan import cells
from cwb.harness.registry import PLUGINS
from cwb.harness.suite_file import load_suite
from cwb.instances import generators, load
from cwb.instances.build import build_instance
from cwb.instances.demand import with_demand
from cwb.instances.loader import find_workload, network_from_text
from cwb.instances.schema import InstanceFile
from cwb.reports.plots import PLOTS
from cwb.reports.tables import TABLES
from cwb.studies.grid import GridOptions, suite_of

README_COMMANDS = (
    "python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/cwb solve --model libra instances/4d.json",
    'python3 -m venv .venv && .venv/bin/pip install -e ".[test]" && .venv/bin/pytest',
)

#: The commands of these pages are about files that they make: tests/docs/test_console.py runs them in order.
IN_ORDER = {"docs/exchange/round-trip.md", "docs/questions.md"}


@pytest.fixture(autouse=True)
def in_the_root(root, monkeypatch):
    """Pages name files as seen from the root of a checkout; what they plug in is forgotten afterwards."""
    monkeypatch.chdir(root)
    monkeypatch.setenv(PLUGINS, "")
    monkeypatch.setattr(collective, "_registry", dict(collective._registry))


@pytest.fixture(scope="module")
def commands(blocks) -> list[tuple[str, list[str]]]:
    """Every ``cwb`` command of a console block, as a page and its arguments."""
    found: list[tuple[str, list[str]]] = []
    for page, text in blocks("console", "bash", "sh", "shell"):
        if page in IN_ORDER:
            continue
        for line in text.replace("\\\n", " ").splitlines():
            for part in line.removeprefix("$ ").split(" && "):
                words = part.strip().removeprefix(".venv/bin/")
                if words.startswith("cwb "):
                    found.append((page, shlex.split(words)[1:]))
    return found


@pytest.fixture(scope="module")
def mentions(pages) -> list[tuple[str, list[str]]]:
    """Every ``cwb`` command in running text, which may leave arguments out."""
    found: list[tuple[str, list[str]]] = []
    for page, text in pages.items():
        prose = re.sub(r"^(`{3,}|:{3,}).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
        for words in re.findall(r"(?<!`)`(?:\.venv/bin/)?cwb ([^`\n]+)`(?!`)", prose):
            found.append((page, shlex.split(words.split(">")[0].replace("...", ""))))
    return found


def check_solve(params: dict[str, object]) -> None:
    """The method and the instance exist, with two boxes in place of thousands and sides of four in place of hundreds;
    the options are the method's and fit."""
    method = registry.get(str(params["model"] or params["formulation"]))
    with locate_errors(source="-O"):
        options = run_validation(lambda: method.options.model_validate(params["options"]))
    asked = (params["collective"], params["size"], params["chunks"])
    few = re.sub(r"\bboxes=\d{4,}", "boxes=2", str(params["instance"]))
    if few.startswith(("torus(", "mesh(", "fat_tree(", "switch(")):
        few = re.sub(r"(?<=[(,])\d{3,}(?=[,)])", "4", few)
    instance = with_demand(load(few), *asked)
    seen, refusal = supported_view(method, instance)
    if refusal is not None:
        raise Unsupported(refusal.text)
    method.pose(seen, options)


def check_show(params: dict[str, object]) -> None:
    """There is something of that name."""
    what = str(params["what"])
    if what not in {*registry.names(), *registry.formulation_names(), *generators.names()}:
        load(what)


#: How names of schedule files end.
SCHEDULE_SUFFIXES = (".json", ".json.gz", ".npz")


def check_formulate(params: dict[str, object]) -> None:
    """The formulation and the instance exist, and the options are the formulation's."""
    instance = with_demand(load(str(params["instance"])), params["collective"], params["data"], params["chunks"])
    registry.formulation(str(params["formulation"])).validate_and_pose(instance, params["options"])


def check_compare(params: dict[str, object]) -> None:
    """The suite, or the methods and instances in its place, exist."""
    asked = GridOptions(**{each.name: params[each.name] for each in fields(GridOptions)})
    cells(suite_of(None, asked) if params["suite"] is None else load_suite(str(params["suite"])))


CHECKS = {
    "solve": check_solve,
    "formulate": check_formulate,
    "show": check_show,
    "compare": check_compare,
    "table": lambda params: TABLES[params["name"]],
    "plot": lambda params: (
        str(params["name"]).endswith(SCHEDULE_SUFFIXES) or names_network(params["name"]) or PLOTS[params["name"]]
    ),
}


def test_the_readme_begins_with_the_two_commands(blocks):
    """The README's first two blocks are the two commands that a fresh machine needs, to the letter."""
    console = [text.strip() for page, text in blocks("console") if page == "README.md"]
    assert tuple(console[:2]) == README_COMMANDS


@pytest.mark.slow
def test_every_command_in_a_block_can_be_run(commands):
    """Each ``cwb`` line parses with its command's own parser, and names a method, options, instance, suite, table or
    plot that exist."""
    assert len(commands) > 20
    for page, arguments in commands:
        line = f"{page}: cwb {shlex.join(arguments)}"
        try:
            context = parse_command(list(arguments))
            if context is not None and context.command.name in CHECKS:
                CHECKS[context.command.name](context.params)
        except InputError as error:
            # A page may show what is wrong with an input: then the next line is the error.
            assert f"cwb: error: {error}" in Path(page).read_text(), f"{line}: {error}"
        except Unsupported as error:
            shown = [text for text in Path(page).read_text().splitlines() if text.startswith("cwb: unsupported: ")]
            assert any(text.endswith(str(error)) for text in shown), f"{line}: {error}"
        except Exception as error:
            raise AssertionError(f"{line}: {error!r}") from error


def test_every_command_in_the_text_exists(mentions):
    """Each ``cwb`` command that running text mentions exists, with the options that it is mentioned with."""
    assert len(mentions) > 10
    for page, arguments in mentions:
        try:
            parse_command(list(arguments), partial=True)
        except click.ClickException as error:
            raise AssertionError(f"{page}: cwb {shlex.join(arguments)}: {error.message}") from error


def test_the_readme_shows_what_the_first_command_prints(blocks):
    """The numbers in the README's output are those of a fresh solve; bandwidths and cost within half a percent, since
    optima are flat."""
    ((_, text),) = [block for block in blocks("text") if block[0] == "README.md"]
    record = cwb.solve("4d", "libra")
    metrics = record.metrics
    rows = re.findall(r"│ (\d) +│ \S+ +│ \S+ +│ +([\d.]+) │", text)
    assert [int(row) for row, _ in rows] == [1, 2, 3, 4]
    for (_, bandwidth), expected in zip(rows, metrics["bandwidth_GBps"], strict=True):
        assert float(bandwidth) == pytest.approx(expected, rel=5e-3)
    shown = {
        name: float(value.replace(",", ""))
        for name, value in re.findall(r"│ ([a-zA-Z -]+?) +│ +([\d.,e-]+)(?: [^│]*)? │", text)
    }
    assert shown["iteration time"] == pytest.approx(1000 * metrics["iteration_time_s"], rel=1e-7)
    assert shown["network cost"] == pytest.approx(metrics["network_cost_usd"], rel=5e-3)
    assert shown["speedup over EqualBW"] == pytest.approx(metrics["speedup"], abs=1e-4)
    assert shown["perf-per-cost over EqualBW"] == pytest.approx(metrics["perf_per_cost_gain"], rel=5e-3)
    assert shown["proved bound"] == pytest.approx(1000 * record.bound, rel=1e-7)
    assert shown["gap"] < 1e-7
    assert re.search(rf"│ status +│ +{record.status} \({record.metrics['question']}\) │", text)


@pytest.mark.parametrize("page", ["README.md", "docs/cli.md"])
def test_exit_statuses_are_all_listed(pages, page):
    """The tables of exit statuses list every status of the program, and 130 for an interrupt."""
    _, _, section = pages[page].partition("## Exit statuses")
    numbers = [int(n) for n in re.findall(r"^\| (\d+) \|", section.partition("\n## ")[0], flags=re.MULTILINE)]
    assert numbers == [*map(int, ExitStatus), 130]


def test_json_examples_are_instances(blocks):
    """Every JSON example of the instance format is accepted by the loader, alone or in the place that it is an example
    of."""
    examples = [text for page, text in blocks("json") if page.startswith("docs/instances/")]
    assert len(examples) > 5
    for text in examples:
        data = json.loads(text if text.lstrip().startswith("{") else f"{{{text}}}")
        if "groups" in data:
            data = {"workloads": [{"use": "gpt-3", **data}]}
        if "constraints" in data:
            data = {"design": data}
        data.setdefault("network", "RI(4)_FC(8)_RI(4)_SW(32)")
        if "workloads" in data and "layers" in data["workloads"][0]:
            data["network"] = "RI(4)_SW(8)"
        build_instance(InstanceFile.model_validate(data), "example", find_workload, network_from_text)


def test_python_examples_run(blocks):
    """The Python examples of README and documentation run as they stand."""
    examples = blocks("python")
    assert len(examples) >= 3
    for page, text in examples:
        exec(compile(text, page, "exec"), {})  # noqa: S102 (the text is ours)
