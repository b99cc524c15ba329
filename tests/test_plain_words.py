"""Docstrings begin with a verb or a noun and are short in the package; names are no participles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: Folders beside those of the package.
OTHERS = [ROOT / name for name in ("benchmarks", "docs", "examples", "tests")]
PACKAGE = [path.parent for path in sorted(ROOT.glob("*/__init__.py")) if path.parent not in OTHERS]
FOLDERS = PACKAGE + OTHERS
GENERATORS = ROOT / "instances" / "generators"

#: Relative clauses in place of nouns.
BANNED = re.compile(r"(What|Whether|How|Where|That|Who|Why|Which|Whose|Whom)\b")

#: Words of a first sentence at most, and of a parameter's entry at least.
MOST_WORDS, LEAST_WORDS = 20, 5


#: Single participles that are neither verbs nor nouns; those that end in -ed need no list.
IRREGULAR_TEXT = """
begun bent bought brought broken built caught chosen done drawn driven fallen felt forgotten found frozen
given gone got grown held hidden kept known laid led left lost made meant met paid proven said seen sent
shown sold sought spent spoken stolen stood sworn taken taught thought thrown told torn undone won
worn woven written
"""
IRREGULAR = frozenset(IRREGULAR_TEXT.split())

#: Participles that no parameter, local variable or attribute has as its name: it has the noun of its content. A file's
#: field of a transformer is ``hidden``.
GONE_TEXT = "added asked listed moved named needed posed tried used wanted"
GONE = (IRREGULAR - {"hidden"}) | frozenset(GONE_TEXT.split())

#: Nouns and verbs that end like participles.
WORDS_IN_ED = ("bed", "ragged", "embed", "feed", "need", "seed", "shed", "speed")


@cache
def read_folder(folder: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]], list[tuple[str, str]]]:
    """Return every docstring, every name and every variable of a folder with its place; all tests share them."""
    texts, names, variables = [], [], []
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(ROOT)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if folder in PACKAGE:  # scripts and tests have the names of their subjects
            names.append((f"{inside}:1 {path.stem}", path.stem))
            variables += [(f"{inside}:{line} {name}", name) for line, name in variables_of(tree)]
        for node in ast.walk(tree):
            if not isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            name = getattr(node, "name", "module")
            place = f"{inside}:{getattr(node, 'lineno', 1)} {name}"
            if text := ast.get_docstring(node):
                texts.append((place, text))
            is_error = isinstance(node, ast.ClassDef) and any("Error" in ast.unparse(base) for base in node.bases)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and path.parent != GENERATORS and not is_error:
                names.append((place, name))
    return texts, names, variables


def variables_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the parameters, variables and attributes that a module binds; ``left`` only where there is no ``right``."""
    bound = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.append((node.lineno, node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            bound.append((node.lineno, node.attr))
        elif isinstance(node, ast.arg):
            bound.append((node.lineno, node.arg))
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            bound.append((node.lineno, node.name))
    sides = {name.strip("_") for _, name in bound} & {"left", "right"}
    yield from ((line, name) for line, name in bound if name.strip("_") not in sides or len(sides) == 1)


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and descriptions of documented parameters."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    for entry in re.finditer(r"^(\S.*)\n((?:[ ]+.*\n?|\n)*)", section[1] if section else "", re.MULTILINE):
        yield entry[1], entry[2]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_docstrings_are_plain(folder: Path) -> None:
    """No docstring begins with a relative clause; those of the package are short, and their entries say something."""
    wrong = []
    for place, text in read_folder(folder)[0]:
        first = text.split("\n\n")[0]
        if BANNED.match(first):
            wrong.append(f"{place}: begins with {first.split()[0]!r}")
        if folder in PACKAGE and len(first.split()) > MOST_WORDS and "``" not in first:
            wrong.append(f"{place}: {len(first.split())} words before the first blank line")
        if folder in PACKAGE:
            wrong += [f"{place}: entry {name!r}" for name, said in entries(text) if len(said.split()) < LEAST_WORDS]
    assert wrong == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_names_are_no_participles(folder: Path) -> None:
    """No function, class or module is named by a single participle; generators have the names of the format."""
    assert [place for place, name in read_folder(folder)[1] if is_participle(name)] == []


@pytest.mark.parametrize("folder", PACKAGE, ids=lambda folder: folder.name)
def test_variables_are_no_participles(folder: Path) -> None:
    """No parameter, local variable or attribute of the package is named by a participle alone."""
    assert [place for place, name in read_folder(folder)[2] if name.strip("_") in GONE] == []


@pytest.mark.parametrize(
    "text",
    ["found = 1", "_found = 1", "def run(*, found=1): ...", "lambda found: 0", "self.found = 1", "[0 for found in []]"],
)
def test_variables_are_read_wherever_they_are_bound(text: str) -> None:
    """Parameters, variables and attributes are read from assignments, signatures, loops and comprehensions."""
    assert [name.strip("_") for _, name in variables_of(ast.parse(text)) if name != "self"] == ["found"]


def test_left_is_a_side_beside_right() -> None:
    """The name ``left`` is that of a side where ``right`` stands beside it, and a participle elsewhere."""
    assert [*variables_of(ast.parse("left = right = 1"))] == []
    assert [*variables_of(ast.parse("left = 1"))] == [(1, "left")]


def is_participle(name: str) -> bool:
    """Check if a name is one word, a participle; leading underscores do not count."""
    word = name.lower().lstrip("_")
    single = re.fullmatch(r"_*[A-Z]?[a-z]+", name) is not None
    return single and (word in IRREGULAR or (word.endswith("ed") and not word.endswith(WORDS_IN_ED)))
