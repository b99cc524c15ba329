"""The pages are complete and name nothing that is not there."""

from __future__ import annotations

import ast
import json
import re
import runpy
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import get_args

import cwb
import numpy as np
import pytest
import yaml
from cwb import solvers
from cwb.core import bounds
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.formulation import Formulation
from cwb.core.record import RunRecord
from cwb.core.schedule import Schedule
from cwb.core.solver import Capability
from cwb.core.trace import SimulationMode
from cwb.core.trees import TreeKind, TreePacking
from cwb.harness import registry
from cwb.harness.suite_file import GridFile, SuiteFile
from cwb.instances import schema
from cwb.instances.generators import GENERATORS
from cwb.schedules import verify as verifier
from cwb.schedules.files import write_schedule
from cwb.schedules.simulate import simulate
from cwb.studies.simulate import measure_simulation
from pydantic import BaseModel

#: An address without a user, a port or an end of a sentence.
_ADDRESS = re.compile(r"https://[a-z0-9-]+(\.[a-z0-9-]+)+(/[\w./~+-]*[\w/])?")
#: Absolute paths of somebody's machine.
_MACHINE_PATH = re.compile(r"(?<![\w.)\]}/:-])/(?:work|tmp|root|home|Users|mnt|opt|var|srv|usr|data)(?:/|\b)")
_LINK = re.compile(r"\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"")


def links(text: str) -> Iterator[str]:
    """Targets of the links and pictures of a page that lead into the repository."""
    prose = re.sub(r"^(`{3,})[^{\n]*\n.*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    for link, picture in _LINK.findall(prose):
        target = link or picture
        if not re.match(r"[a-z]+:", target):
            yield target


def slugs(text: str) -> set[str]:
    """Anchors of a page's headings that GitHub and MyST make alike, so that a link with one works on both."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = [re.sub(r"[`*]", "", h).lower() for h in re.findall(r"^#+ +(.+)$", prose, re.MULTILINE)]
    on_github = {re.sub(r"[^\w\- ]", "", h).replace(" ", "-") for h in headings}
    return on_github & {re.sub(r"[^a-z0-9]+", "-", h).strip("-") for h in headings}


def test_internal_links_lead_somewhere(pages, root):
    """Every relative link or picture of a page is a file of the repository, and every anchor a heading in it."""
    for page, text in pages.items():
        folder = (root / page).parent
        for target in links(text):
            file, _, anchor = target.partition("#")
            path = (folder / file).resolve() if file else root / page
            assert path.is_file(), f"{page}: {target}"
            assert path.is_relative_to(root), f"{page}: {target}"
            if anchor:
                assert anchor in slugs(path.read_text(encoding="utf-8")), f"{page}: {target}"


def test_external_links_are_listed_once_more(pages):
    """Every external link is a clean https address that the bibliography has, so that one page has all that can
    break; threads of questions are on the page of the questions alone."""
    listed = external(pages["docs/bibliography.md"]) | external(pages["docs/questions.md"])
    assert len(listed) > 20
    for page in pages:
        if page.endswith(".md"):
            for link in external(pages[page]):
                assert _ADDRESS.fullmatch(link), f"{page}: {link}"
                assert link in listed, f"{page}: {link} is not in docs/bibliography.md"


def external(text: str) -> set[str]:
    """External links of a page, outside of code."""
    prose = re.sub(r"^(`{3,}).*?^\1|`[^`\n]+`", "", text, flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"\w+://[^\s)>\"]+", prose))


def test_papers_are_cited_once(pages, root):
    """The bibliography has the title of every paper of CITATION.cff, and no other page repeats a title."""
    spaced = {page: " ".join(text.split()) for page, text in pages.items() if page.startswith("docs/")}
    titles = re.findall(r"\*([^*\[\]]{25,})\*", spaced["docs/bibliography.md"])
    assert len(titles) > 20
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    assert {reference["title"] for reference in citation["references"]} <= set(titles)
    for title in titles:
        assert [page for page, text in spaced.items() if title in text] == ["docs/bibliography.md"], title


def test_no_page_names_a_path_of_a_machine(pages, root):
    """No page, notebook or configuration of the documentation names an absolute path of the machine that it was written
    on."""
    texts = dict(pages)
    for name in ("CITATION.cff", "docs/conf.py", *(str(p.relative_to(root)) for p in (root / "docs").rglob("*.toml"))):
        texts[name] = (root / name).read_text(encoding="utf-8")
    for name, text in texts.items():
        found = _MACHINE_PATH.search(text)
        assert found is None, f"{name}: {text[max(0, found.start() - 40) : found.end() + 20]!r}"


def test_notebooks_are_shipped_with_output(root):
    """Every notebook holds the outputs of one execution from top to bottom, none of them an error or bold text."""
    for path in (root / "docs" / "tutorials").glob("*.ipynb"):
        cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), path.name
        outputs = [output for cell in cells for output in cell["outputs"]]
        assert outputs, path.name
        assert all(output["output_type"] != "error" and "\x1b" not in json.dumps(output) for output in outputs)


@pytest.mark.parametrize("name", registry.names())
def test_every_method_and_option_is_documented(name, pages):
    """Every method has a row in the list of methods, and each of its options one on a page that names it."""
    page = "\n".join(text for file, text in pages.items() if file.startswith("docs/methods/") and name in text)
    assert re.search(rf"^\| \[`{name}`\]\(", pages["docs/methods/index.md"], flags=re.MULTILINE)
    for option in registry.get(name).options.model_fields:
        assert re.search(rf"^\| `{option}` \|", page, flags=re.MULTILINE), option


def test_the_page_on_formulations_is_true(pages):
    """Its table has a row for every formulation, with its equations and options; the code of the family cites them."""
    table = re.findall(
        r"^\| `([\w-]+/[\w-]+)` \| (.*?) \| (.*?) \| (.+) \|$", pages["docs/formulations.md"], re.MULTILINE
    )
    assert [name for name, *_ in table] == list(registry.FORMULATIONS)
    for name, equations, options, worth in table:
        declared = registry.formulation(name)
        assert equations == declared.equations, name
        assert re.findall(r"`(\w+)`", options) == list(declared.options.model_fields), name
        assert declared.bounds or "no bound" in worth or worth.startswith("the same"), name
        code = code_of(declared)
        for cited in citations(equations):
            assert cited in citations(code), f"{name}: {cited}"


def resolves(name: str) -> bool:
    """Tell whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_every_dotted_name_is_there(pages):
    """Every ``cwb.name`` of a page, in prose or in code, is a module or something in one."""
    dotted = re.compile(r"(?<![\w.@/-])cwb(?:\.[A-Za-z_]\w*)+")
    wrong = [(page, name) for page, text in pages.items() for name in {*dotted.findall(text)} if not resolves(name)]
    assert wrong == []


def code_of(declared: Formulation) -> str:
    """Source of the family of a formulation, without the declarations."""
    module = import_module(declared.places["build"].partition(":")[0])
    folder = Path(module.__file__).parent
    files = folder.rglob("*.py") if folder.parent.name in ("models", "heuristics") else folder.parent.rglob("*.py")
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.name != "method.py")


def citations(text: str) -> set[str]:
    """Numbers of equations, sections and appendices that a text names."""
    appendices = " ".join(re.findall(r"[Aa]ppendi(?:x|ces) ((?:[A-Z]\b(?:, | and )?)+)", text))
    return {*re.findall(r"\(\d+[a-z]?\)|\b\d+(?:\.\d+)+", text), *re.findall(r"[A-Z]\b", appendices)}


def test_every_finding_of_the_verifier_is_documented(pages):
    """Every kind of violation that the verifier's code makes has a row on its page."""
    kinds: set[str] = set()
    for path in Path(verifier.__file__).parent.glob("*.py"):
        made = r"(?:Violation|at|add|add_each|warn_each|at_edge)\(\s*\"([a-z-]+)\","
        kinds |= set(re.findall(made, path.read_text(encoding="utf-8")))
    assert len(kinds) > 10
    for kind in kinds:
        assert f"| `{kind}` |" in pages["docs/schedules/verifier.md"], kind


def test_every_certificate_is_documented(pages):
    """Every certificate of the vocabulary is described by its name in records, those of schedules on the page of
    bounds."""
    text = pages["docs/schedules/bounds.md"] + pages["docs/methods/libra.md"] + pages["docs/methods/mcf.md"]
    for name in ("late-cut", "late-lengths", *(certificate.name for certificate in get_args(bounds.Certificate))):
        assert f'"certificate": "{name}"' in text or f"`{name}`" in text, name


def test_every_mode_and_measure_of_a_simulation_is_documented(pages):
    """The page on simulators has every mode, and a row for every field that ``cwb simulate --json`` prints."""
    page = pages["docs/schedules/simulators.md"]
    for mode in SimulationMode:
        assert f"| `{mode.value}` |" in page
    asked = cwb.load("line(2)").with_changes(demand=Demand(Collective.BROADCAST, Fraction(2**20)))
    direct = registry.get("direct")
    trace = simulate(asked, direct.run(asked, None, Budget(), direct.options()).answer)
    documented = {
        w for cell in re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE) for w in re.findall(r"`([^`]+)`", cell)
    }
    told = measure_simulation(asked, trace.mode, len(trace.start_s), trace.completion_s, trace.link_busy_s)
    assert set(told) | {"model", "no_completion_time"} <= documented


def test_every_field_of_a_schedule_file_is_documented(pages, tmp_path):
    """Every key that is written to a schedule file stands on the page on the representation."""
    asked = cwb.load("line(2)").with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(2**20)))
    direct = registry.get("direct")
    steps = direct.run(asked, None, Budget(), direct.options()).answer
    times = np.arange(len(steps.sends), dtype=np.float64)
    timed = Schedule(asked.sha256, steps.chunks, steps.sends, times, times + 1)
    one, two = np.zeros(1, dtype=np.int64), np.arange(2)
    shared = (one, one + 1, Fraction(2**20), two, one, one + 1, two)
    there = TreePacking(asked.sha256, TreeKind.IN, *shared, one + 1)
    tree = TreePacking(asked.sha256, TreeKind.BOTH, *shared, one, there)
    for answer in (steps, timed, tree):
        write_schedule(tmp_path / "s.json", asked, answer)
        for key in keys(json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))):
            assert re.search(rf"`(\w+\.)?{key}(\.\w+)?`", pages["docs/schedules/representation.md"]), key


def keys(data: object) -> Iterator[str]:
    """Keys of an object and of those in it."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield key
            yield from keys(value)


def test_the_table_of_solvers_is_made_of_what_they_offer(pages, root):
    """The table on the page on solvers has every solver and every capability, as the adapters declare them."""
    script = runpy.run_path(str(root / "docs" / "solver_table.py"))
    assert set(script["WORDS"]) == set(Capability)
    assert script["table"]() in pages["docs/solvers.md"]
    for name in solvers.names():
        assert f"| {solvers.get(name).title} |" in pages["docs/solvers.md"]


def formats() -> list[type[BaseModel]]:
    """Every class of the instance format."""
    return [
        c
        for c in vars(schema).values()
        if isinstance(c, type) and issubclass(c, BaseModel) and c.__name__.endswith("File")
    ]


@pytest.mark.parametrize("model", formats(), ids=lambda model: model.__name__)
def test_every_field_of_the_format_is_documented(model, pages):
    """Every field of the instance format has a row in a table of the pages on instances."""
    rows = [
        cell
        for name, text in pages.items()
        if name.startswith("docs/instances/")
        for cell in re.findall(r"^\| (`[^|]+) \|", text, flags=re.MULTILINE)
    ]
    documented = {word for cell in rows for word in re.findall(r"`([^`]+)`", cell)}
    for name, field in model.model_fields.items():
        assert (field.alias or name) in documented, f"{model.__name__}.{name}"


def test_every_generator_is_documented(pages):
    """The pages on generators include the module of each."""
    listed = pages["docs/instances/generators.md"] + pages["docs/instances/machines.md"]
    for entry in GENERATORS.values():
        module = entry.split(":")[0]
        assert f"automodule:: cwb.instances.generators.{module}\n" in listed


def test_every_field_of_a_suite_is_documented(pages):
    """The two tables on suites have every field of a suite and of a grid, and no others."""
    tables = pages["docs/comparing.md"].partition("| field of a grid |")
    for table, model in ((tables[0], SuiteFile), (tables[2].partition("\n## ")[0], GridFile)):
        named = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)]
        assert {name for names in named for name in names} == set(model.model_fields)


def test_every_field_of_the_record_is_documented(pages):
    """The page on the command line has a row for every field of the record."""
    cells = re.findall(r"^\| (`[^|]+) \|", pages["docs/cli.md"], flags=re.MULTILINE)
    documented = {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}
    assert {field.name for field in fields(RunRecord)} <= documented


def test_tests_that_pages_name_exist(pages, root):
    """Every test that the checklists name is there, so that a reader can run it."""
    named = {
        (page, path, test)
        for page, text in pages.items()
        for path, test in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    }
    assert len(named) > 20
    for page, path, test in named:
        file: Path = root / path
        assert file.is_file(), f"{page}: {path}"
        if test:
            functions = {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}
            assert test in functions, f"{page}: {path}::{test}"


def test_changelog_and_citation_have_the_version(root, pages):
    """The version of the package has a section in the changelog, and is the one to cite and to archive."""
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    assert f"\n## {version}" in pages["CHANGELOG.md"]
    assert citation["version"] == version
    assert citation["license"] == "MIT"
    archive = json.loads((root / ".zenodo.json").read_text())
    assert [archive[key] for key in ("title", "version", "license", "creators", "keywords")] == [
        citation[key] for key in ("title", "version", "license", "authors", "keywords")
    ]
    assert all(reference["authors"] and reference["title"] for reference in citation["references"])


def test_the_paper_is_one_that_its_journal_takes(root, pages):
    """The paper has title, keywords and authors of the citation, the sections and length that JOSS asks for, the
    references that it cites and no others, and the numbers of the pages."""
    _, head, paper = pages["paper.md"].split("---\n", 2)
    metadata, citation = yaml.safe_load(head), yaml.safe_load((root / "CITATION.cff").read_text())
    assert (metadata["title"], metadata["authors"]) == (citation["title"], citation["authors"])
    assert {"date", "bibliography"} <= set(metadata) and set(citation["keywords"]) <= set(metadata["tags"])
    assert re.findall(r"^# (.*)$", paper, re.MULTILINE) == [
        *("Summary", "Statement of need", "State of the field", "Software design", "Research impact statement"),
        *("AI usage disclosure", "Acknowledgements", "References"),
    ]
    assert 750 <= len(paper.split()) <= 1750
    entries = re.findall(r"^@\w+\{([\w-]+),", (root / metadata["bibliography"]).read_text(), re.MULTILINE)
    assert sorted(entries) == sorted(set(re.findall(r"\[@([\w-]+)\]", paper)))
    names = "dissertation|mtree|forestcoll|direct-connect|te-ccl"
    rows = re.findall(rf"^\| `(?:{names})` \|(.*)\|$", pages["docs/reproducing.md"], re.MULTILINE)
    sums = [sum(column) for column in zip(*([int(cell) for cell in row.split("|")] for row in rows), strict=True)]
    counted = paper[paper.index("printed numbers, ") - 10 : paper.index("A page of errata")]
    assert [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\d", counted)] == sums
    assert len(registry.FORMULATIONS) == 30
    assert "Thirty formulations" in paper


def test_every_page_stands_in_one_list_of_contents(root):
    """The sidebar has each page once: every page but the first is in one table of contents, and the first page's own
    table has the kinds of pages alone."""
    docs = root / "docs"
    sources = [path for path in docs.rglob("*") if path.suffix in (".md", ".ipynb") and "_build" not in path.parts]
    found: dict[str, list[str]] = {}
    for path in sources:
        for body in re.findall(
            r"^```\{toctree\}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            for line in filter(None, body.splitlines()):
                if not line.startswith(":"):
                    name = (path.parent / line).resolve().relative_to(docs).as_posix()
                    found.setdefault(name, []).append(path.relative_to(docs).as_posix())
    names = {
        path.relative_to(docs).with_suffix("").as_posix() for path in sources if "jupyter_execute" not in path.parts
    }
    assert {name: len(pages) for name, pages in found.items()} == dict.fromkeys(names - {"index"}, 1)
    kinds = {name for name, pages in found.items() if pages == ["index.md"]}
    assert kinds == {
        *("tutorials/index", "how-to", "methods/index", "explanation", "reference", "validation", "development"),
    }
