"""The reference of the Python API: each public function stands on a page, with an example that prints what it shows."""

from __future__ import annotations

import doctest
import inspect
import re
import runpy
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import cwb
import pytest
from cwb.core import collective
from cwb.harness import registry
from cwb.harness.registry import PLUGINS

#: A public name on a page, with what follows it up to the next one.
ENTRY = re.compile(r"^\.\. auto(?:function|class):: cwb\.(\w+)\n(.*?)(?=^\.\. auto|^```|\Z)", re.MULTILINE | re.DOTALL)


def reference_pages(pages: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Text below every public name, by page."""
    found = {name: dict(ENTRY.findall(text)) for name, text in pages.items() if name.startswith("docs/")}
    return {name: entries for name, entries in found.items() if entries}


def test_every_public_function_has_an_example(pages):
    """Every public function is on one page, and an example that calls it stands below."""
    listed = [entry for entries in reference_pages(pages).values() for entry in entries.items()]
    assert len(listed) == len(dict(listed))
    functions = {name for name in cwb.__all__ if callable(getattr(cwb, name)) and name[0].islower()}
    assert functions <= set(dict(listed))
    assert not [name for name, text in listed if name in functions and f"cwb.{name}(" not in text]


def test_every_public_function_has_all_sections(root):
    """Each public function documents its parameters, what it returns and what it raises; the class of a result stands
    on a page, from which the section "Returns" is made where the docstring has none."""
    reference = runpy.run_path(str(root / "docs" / "returns.py"))
    for name in cwb.__all__:
        if callable(found := getattr(cwb, name)) and name[0].islower():
            lines = inspect.getdoc(found).splitlines()
            reference["complete"](None, "function", f"cwb.{name}", found, None, lines)
            sections = [above for above, line in pairwise(lines) if re.fullmatch("-{4,}", line)]
            expected = ["Parameters", "Returns", "Raises"]
            assert sections == [word for word in expected if (name, word) != ("register", "Returns")], name


@pytest.mark.slow
def test_examples_print_what_pages_show(
    pages: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The examples of a page run in order, in an empty folder, and print what is shown."""
    monkeypatch.setenv(PLUGINS, "")
    monkeypatch.setattr(collective, "_registry", dict(collective._registry))
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    for page in reference_pages(pages):
        monkeypatch.chdir(tmp_path_factory.mktemp(Path(page).stem))
        text = re.sub(r"^```$", "", pages[page], flags=re.MULTILINE)
        examples = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
        printed: list[str] = []
        failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples, out=printed.append)
        assert not failed, "".join(printed)


def test_links_to_other_libraries_are_made_on_request(root, monkeypatch):
    """A build asks other sites for their names only if a variable of the environment is set."""
    configuration = str(root / "docs" / "conf.py")
    monkeypatch.delenv("CWB_INTERSPHINX", raising=False)
    assert "sphinx.ext.intersphinx" not in runpy.run_path(configuration)["extensions"]
    monkeypatch.setenv("CWB_INTERSPHINX", "1")
    requested = runpy.run_path(configuration)
    assert "sphinx.ext.intersphinx" in requested["extensions"]
    assert set(requested["intersphinx_mapping"]) == {"python", "numpy", "pandas", "networkx", "pyomo"}
