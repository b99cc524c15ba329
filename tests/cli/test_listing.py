"""The commands that tell what there is: list, show, doctor."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cwb import solvers
from cwb.cli import listing
from cwb.cli.main import run
from cwb.core.collective import collectives
from cwb.core.errors import SolverUnavailable
from cwb.core.solver import Availability, SolverResult, Termination
from cwb.harness import registry
from cwb.harness.suite_file import shipped_suites
from cwb.instances import generators
from cwb.instances.loader import shipped_instances, shipped_workloads
from cwb.reports.plots import PLOTS
from cwb.reports.tables import TABLES

Cwb = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cwb(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cwb:
    """Run a command in this process on a terminal of 200 columns; give exit status, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "200")

    def command(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            run(list(words))
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return command


def by_family() -> tuple[str, ...]:
    """Names of the methods, families one after the other."""
    families = list(dict.fromkeys(map(registry.family, registry.names())))
    return tuple(sorted(registry.names(), key=lambda name: families.index(registry.family(name))))


NAMES: dict[str, Callable[[], tuple[str, ...]]] = {
    "models": by_family,
    "formulations": registry.formulation_names,
    "instances": shipped_instances,
    "solvers": lambda: (*solvers.names(), "pyomo:NAME"),
    "topologies": generators.names,
    "workloads": shipped_workloads,
    "suites": shipped_suites,
    "collectives": lambda: tuple(kind.name for kind in collectives()),
    "tables": lambda: tuple(TABLES),
    "plots": lambda: tuple(PLOTS),
}


def test_experts_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """An instance with experts is shown with their loads and slots in one line."""
    with pytest.raises(SystemExit):
        run(["show", "experts(gpus=4, slots=2, groups=2, nodes=2, loads=[[4,2,1,1],[1,1,3,3]])"])
    line = (
        "experts: 4 in each of 2 layers, loads from 1 to 4; 2 slots on each of 4 GPUs; 2 groups, each on one of 2 nodes"
    )
    assert line in " ".join(capsys.readouterr().out.split())


def test_everything_that_has_names_is_listed() -> None:
    """There is a listing of everything that a command takes by name, and help names each."""
    assert set(listing.KINDS) == set(NAMES)
    assert all(what in (listing.listing.help or "") for what in NAMES)


@pytest.mark.parametrize("what", NAMES)
def test_a_listing_has_a_line_for_each_name(cwb: Cwb, what: str) -> None:
    """Every name begins a line, and every line says more than the name; the first line has the headings."""
    status, out, err = cwb("list", what)
    assert (status, err) == (0, "")
    heading, *lines = out.splitlines()
    assert heading.startswith("name")
    assert tuple(line.split()[0] for line in lines) == NAMES[what]()
    assert all(len(line.split()) > 1 for line in lines)


@pytest.mark.parametrize("what", NAMES)
def test_a_listing_is_json_too(cwb: Cwb, what: str) -> None:
    """With --json there is one JSON list on stdout, of objects whose values are short texts in one line."""
    status, out, err = cwb("list", what, "--json")
    assert (status, err) == (0, "")
    rows: list[dict[str, str]] = json.loads(out)
    assert tuple(row["name"] for row in rows) == NAMES[what]()
    for row in rows:
        assert all(value and "\n" not in value for value in row.values())


def test_methods_are_another_word_for_models(cwb: Cwb) -> None:
    """``list methods`` prints what ``list models`` prints, and ``--method`` names what ``--model`` names."""
    assert cwb("list", "methods") == cwb("list", "models")
    given = ("ring(4)", "--collective", "all_gather", "--quiet", "--json")
    by_either = [json.loads(cwb("solve", option, "ring", *given)[1]) for option in ("--model", "--method")]
    assert by_either[0]["objective"] == by_either[1]["objective"]
    assert all("--methods" in cwb(command, "--help")[1] for command in ("compare", "advise", "select"))


def test_models_are_listed_as_they_declare_themselves() -> None:
    """Family, kind and summary are those of the method; what it takes is what it says when it is asked."""
    rows = {row["name"]: row for row in listing.rows_of("models")}
    for name, row in rows.items():
        method = registry.get(name)
        assert (row["family"], row["kind"], row["summary"]) == (
            registry.family(name),
            method.kind.value,
            method.summary,
        )
    assert (rows["bfb"]["network"], rows["bfb"]["collectives"]) == ("links", "all_gather, reduce_scatter, all_reduce")
    assert (rows["direct"]["network"], rows["direct"]["collectives"]) == (
        "links, switches",
        "all but late_all_reduce and point_to_point, also all_gather_v",
    )
    assert (rows["libra"]["network"], rows["libra"]["collectives"]) == ("training", "those of its workload")
    assert "none" not in {row["network"] for row in rows.values()}


def test_models_for_an_instance(cwb: Cwb) -> None:
    """Methods that take an instance come first; every other one is listed with the reason that a run would give."""
    status, out, err = cwb("list", "models", "--for", "torus(3,3)", "--collective", "all_reduce", "--json")
    assert (status, err) == (0, "")
    rows = json.loads(out)
    taken = [row["takes it"] for row in rows]
    assert taken == sorted(taken, reverse=True)
    found = {row["name"]: row for row in rows}
    assert set(found) == set(registry.names())
    assert found["ring"]["takes it"] == "yes"
    assert found["rhd"]["why not"] == "9 ranks are not a power of two"
    _, out, _ = cwb("list", "models", "--for", "torus(3,3)", "--collective", "all_reduce")
    assert out.splitlines()[0].split(maxsplit=4) == ["name", "family", "kind", "takes", "it  summary / why not"]


def test_a_network_alone_is_told(cwb: Cwb) -> None:
    """For an instance without a collective, which no method supports, stderr says how to name one."""
    status, out, err = cwb("list", "models", "--for", "torus(3,3)")
    assert (status, err) == (0, "cwb: torus(3,3) asks for no collective; name one with --collective\n")
    assert "no collective to schedule" in out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("solvers", "--for", "4d"), "--for: only for models, not for solvers"),
        (("models", "--collective", "all_reduce"), "--collective: expected together with --for INSTANCE"),
        (("models", "--for", "torus(3,3)", "--collective", "allreduce"), "did you mean 'all_reduce'?"),
        (("models", "--for", "torsu(3,3)"), "did you mean 'torus'?"),
    ],
)
def test_listings_that_there_are_not(cwb: Cwb, words: tuple[str, ...], problem: str) -> None:
    """A listing that does not exist is refused in one line with the reason."""
    status, out, err = cwb("list", *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert problem in err


def test_solvers_tell_their_version_and_capabilities() -> None:
    """The default solver is installed with a version and solves linear programs; what is missing is said to be."""
    rows = {row["name"]: row for row in listing.solvers()}
    assert rows[solvers.DEFAULT]["version"][0].isdigit()
    assert "lp" in rows[solvers.DEFAULT]["capabilities"].split(", ")
    assert rows.pop("pyomo:NAME")["capabilities"] == "lp, mip, interrupt, resolve, pool"
    for name, row in rows.items():
        assert (row["version"] == "not installed") is not solvers.get(name).installation().ok


#: Libraries that take longer to import than a listing may take.
HEAVY = ("pyomo", "highspy", "gurobipy", "pyscipopt", "matplotlib", "pandas", "scipy", "numba", "networkx")


def test_listing_and_help_are_light() -> None:
    """The listings and --help, one after the other in a process of their own, import no heavy library."""
    program = (
        "import sys\n"
        "from cwb.cli.main import run\n"
        f"for words in {[['--help'], *(['list', what] for what in NAMES)]!r}:\n"
        "    try:\n"
        "        run(words)\n"
        "    except SystemExit as ended:\n"
        f"        heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "        if ended.code or heavy:\n"
        "            print(words, ended.code, heavy, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert "ring" in done.stdout
    assert done.stderr == ""


def test_an_instance_is_shown_with_everything_that_defines_it(cwb: Cwb) -> None:
    """Network, prices, groups, computation and bytes of every phase, and the design of gpt-3-4d-multiple are shown."""
    status, out, err = cwb("show", "gpt-3-4d-multiple")
    assert (status, err) == (0, "")
    lines = [" ".join(line.replace("│", " ").split()) for line in out.splitlines()]
    for line in (
        "network: RI(4)_FC(8)_RI(4)_SW(32), 4,096 NPUs",
        "4 SW(32) inter-pod no 57.40012",
        "tp 4 4 1 1",
        "dp 1 2 4 32",
        "forward 228.149 ms all_reduce tp 4 3 GiB",
        "input gradient 228.149 ms all_reduce tp 4 3 GiB",
        "all_gather tp 2 1.5 GiB",
        "weight gradient 228.149 ms all_reduce dp 1 432 MiB",
        "inter-package 4.00002 none 13.00002",
        "objective perf",
        "total bandwidth per NPU = 1000 GB/s",
        "constraint B1 >= B2 >= B3",
    ):
        assert line in lines


@pytest.mark.parametrize("name", shipped_instances())
def test_every_shipped_instance_can_be_shown(cwb: Cwb, name: str) -> None:
    """No shipped instance breaks the tables."""
    status, out, err = cwb("show", name)
    assert (status, err) == (0, "")
    assert out.startswith(f"{name}: ")


def test_a_described_transformer_is_shown_with_what_follows_from_it(cwb: Cwb) -> None:
    """The description is shown, and the computation and bytes that are derived from it."""
    _, out, _ = cwb("show", "msft-1t-hp-4d")
    assert "transformer of 128 layers, hidden size 25,600" in out
    assert "HP-(128, 32)" in out
    assert "reduce_scatter" in out


def test_a_graph_is_shown_by_its_links(cwb: Cwb) -> None:
    """A 4 x 4 torus has 16 NPUs and 64 directed links of one kind."""
    _, out, _ = cwb("show", "torus(4,4)")
    assert "network: 16 NPUs, 0 switches, 64 directed links\n" in out
    assert "50 GB/s" in out
    assert "500 ns" in out


def test_a_machine_is_shown_with_both_rates(cwb: Cwb) -> None:
    """Of a machine the effective rates are printed before the nominal ones; at effective rates there is one column."""
    flat = " ".join(cwb("show", "dgx_h100()")[1].split())
    assert "┃ number ┃ effective ┃ nominal ┃ latency ┃" in flat
    assert "│ 16 │ 370.8 GB/s │ 450 GB/s │ 500 ns │" in flat
    for words in (["dgx_h100(rates=effective)"], ["dgx_h100()", "--rates", "effective"]):
        assert "│ 16 │ 370.8 GB/s │ 500 ns │" in " ".join(cwb("show", *words)[1].split())


@pytest.mark.parametrize("name", registry.names())
def test_a_model_is_shown_with_its_options(cwb: Cwb, name: str) -> None:
    """Every option of a method is shown with its description, beside the paper that the method is from."""
    status, out, _ = cwb("show", name)
    method = registry.get(name)
    flat = " ".join(out.replace("│", " ").split())
    assert status == 0
    assert f"paper: {method.paper}" in out
    for option, field in method.options.model_fields.items():
        assert field.description
        assert f"{option} " in flat
        assert field.description in flat


@pytest.mark.parametrize("name", registry.formulation_names())
def test_a_formulation_is_shown_with_what_it_is(cwb: Cwb, name: str) -> None:
    """Class, paper, equations, options and the places of its functions are shown."""
    status, out, _ = cwb("show", name)
    declared = registry.formulation(name)
    flat = " ".join(out.replace("│", " ").split())
    assert status == 0
    said = (declared.model_class, declared.paper, declared.equations, f"build: {declared.places['build']}")
    for part in (*said, *(field.description for field in declared.options.model_fields.values())):
        assert part in flat


def test_a_generator_is_shown_with_its_arguments(cwb: Cwb) -> None:
    """The name of a generator without arguments shows how it is called."""
    status, out, _ = cwb("show", "torus")
    assert status == 0
    assert out.startswith("torus(sizes")


def test_the_doctor_finds_the_default_solver_well(cwb: Cwb) -> None:
    """Versions are shown, the default solver solves the test model, and the exit status is 0."""
    status, out, err = cwb("doctor")
    assert (status, err) == (0, "")
    for name in ("cwb", "Python", "Pyomo", *solvers.names()):
        assert name in out
    (line,) = [line for line in out.splitlines() if f"{solvers.DEFAULT} (default)" in line]
    assert "solved" in line


def test_the_doctor_speaks_json(cwb: Cwb) -> None:
    """The same findings are one JSON object."""
    status, out, err = cwb("doctor", "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert (told["default_solver"], told["works"]) == (solvers.DEFAULT, True)
    assert {"cwb", "Python", "Pyomo"} == set(told["versions"])
    (found,) = [one for one in told["solvers"] if one["name"] == solvers.DEFAULT]
    assert found["test_model"] == "solved"


class Patient:
    """A solver that is ill in one way."""

    name = "highs"

    def __init__(self, **answers: Any) -> None:
        self.answers = {
            "installation": Availability(True, "", "9.9"),
            "licence": Availability(True, "free"),
            "solve": SolverResult("highs", "9.9", Termination.OPTIMAL, True, 9.0),
        } | answers

    def _give(self, question: str) -> Any:
        answer = self.answers[question]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def installation(self) -> Availability:
        """Say whether it is installed."""
        return self._give("installation")

    def licence(self) -> Availability:
        """Say whether it has a licence."""
        return self._give("licence")

    def solve(self, *arguments: object) -> SolverResult:
        """Solve."""
        return self._give("solve")


GOOD = SolverResult("highs", "9.9", Termination.OPTIMAL, True, 9.0)
ILL = [
    (Patient(installation=Availability(False, "pip install highspy")), "pip install highspy"),
    (Patient(installation=ImportError("libfoo.so is missing")), "ImportError: libfoo.so is missing"),
    (Patient(licence=Availability(False, "the licence has expired")), "the licence has expired"),
    (Patient(solve=SolverUnavailable("model too large for the licence")), "model too large for the licence"),
    (Patient(solve=RuntimeError("out of order")), "RuntimeError: out of order"),
    (Patient(solve=replace(GOOD, objective=8.0)), "wrong: optimal"),
    (Patient(solve=replace(GOOD, objective=None, termination=Termination.ERROR)), "wrong: error"),
]


@pytest.mark.parametrize(("patient", "finding"), ILL, ids=[finding for _, finding in ILL])
def test_the_doctor_says_what_is_wrong(
    cwb: Cwb, monkeypatch: pytest.MonkeyPatch, patient: Patient, finding: str
) -> None:
    """A default solver that is missing, broken, without licence or wrong is told with the reason, and the exit status
    is 6."""
    monkeypatch.setattr(solvers, "get", lambda name: patient)
    status, out, err = cwb("doctor")
    assert status == 6
    assert finding in out
    assert err == "cwb: the default solver, highs, does not work\n"


def test_the_doctor_accepts_a_well_patient(cwb: Cwb, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above fail for the illness and not for the stand-in: a well one passes."""
    monkeypatch.setattr(solvers, "get", lambda name: Patient())
    assert cwb("doctor")[0] == 0


def test_show_measures_a_network(cwb: Cwb) -> None:
    """The network of an instance is shown with its measures and the methods that take it."""
    lines = " ".join(cwb("show", "torus(4,4)", "--without-link", "0:1")[1].split())
    for text in (
        "diameter │ 4 links",
        "bisection │ 350 GB/s, exact",
        "3 (2 ranks), 4 (14 ranks) links out",
        "such as 0",
    ):
        assert text in lines
    assert "methods for all_gather" in lines
    assert "RI(4)_RI(4), per NPU 100 GB/s, 100 GB/s" in cwb("show", "torus(4,4)")[1]
    assert "bisection" not in cwb("show", "4d")[1]
