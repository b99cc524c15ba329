"""BibTeX entries of methods."""

from __future__ import annotations

import re
from pathlib import Path

import cwb
import pytest
from cwb.core.errors import InputError
from cwb.harness import registry


def test_every_method_is_cited():
    """All methods and formulations have an entry beside that of cwb, and no entry is of an unknown method."""
    for name in (*registry.names(), *registry.formulation_names()):
        assert cwb.cite(name).count("\n@") >= 1, name
    keywords = re.findall(r"keywords = \{(.+)\}", cwb.cite())
    assert {word for line in keywords for word in line.split(", ")} == set(registry.names())


def test_an_unknown_method_is_named():
    """A wrong name is an error with a similar one."""
    with pytest.raises(InputError, match=r"'forestcol'.*forestcoll"):
        cwb.cite("forestcol")


def test_titles_are_those_of_the_bibliography():
    """Every paper has the title that the page has."""
    page = " ".join((Path(__file__).parents[2] / "docs/bibliography.md").read_text().split())
    for title in re.findall(r"title = \{(.{25,})\}", cwb.cite())[1:]:
        assert title in page
