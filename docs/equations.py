"""The variables, constraints and objective of a declared model: docstrings of its functions, and rows of golden files.

A row of the golden LP file beside the formula of a docstring shows both at once, so that neither can drift alone.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from cwb.harness import registry

#: Signs and words of docstrings, in LaTeX.
_SIGNS = {
    **{
        name: f"\\{name}"
        for name in ("sum", "alpha", "beta", "gamma", "delta", "kappa", "rho", "tau", "max", "min", "Omega")
    },
    **{"<=": "\\le", ">=": "\\ge", "!=": "\\ne", "...": "\\dots", "*": "\\cdot", " in ": " \\in ", "rbar": "\\bar r"},
    **{"{": "\\{", "}": "\\}", "|": "\\vert{}"},
}

#: Relations, indices, words between letters, words, and whatever else a formula is made of.
_TOKEN = re.compile(
    r"<=|>=|!=|\.\.\.|[_^]\{|[_^](?:[A-Z]+|[a-z]+|\d+)| in | (?:into|out of|at|with|on|new|old|over)\b ?"
    r"|[A-Za-z]+_[A-Z][a-z]\w*|[A-Za-z]+|."
)

#: A row of an LP file: constraint, index, terms, and side.
_ROW = re.compile(r"^c_(?:r_)?[elu]_(\w+?)(\([^)]*\))?_:\n((?:.+\n)+?)((?:<=|>=|=) .+)$", re.M)

#: Terms of a row that are shown.
_SHOWN = 6

#: What is a name of the code and no formula.
_NAME = re.compile(r"[a-z]{3,}(?:[-_][a-z]+)+")


def declarations(name: str) -> Iterator[tuple[str, str, str]]:
    """Functions that declare a formulation, in order, what each declares, and golden rows of it, in Markdown."""
    seen: set[FunctionType] = set()
    module, _, place = registry.formulation(name).places["build"].partition(":")
    build = getattr(import_module(module), place)
    golden, functions = _golden_rows(module.split(".")[2]), [build, *_called_functions(build, seen)]
    own = "".join(inspect.getsource(function) for function in functions if function.__name__.startswith("build"))
    for function in functions:
        if _declares(function) and not function.__name__.startswith("build"):
            text = re.sub(r":\w+:`~?([^`]+)`", r"``\1``", (inspect.getdoc(function) or "").split("\n\n")[0])
            text = text.replace("\n", " ")
            sources = (own, inspect.getsource(import_module(function.__module__)))
            shown = "; ".join(f"`{_clearest(golden[name], sources)}`" for name in _constraints(function))
            yield function.__name__, re.sub(r"``(.+?)``", lambda code: formula(code[1]), text), shown


def _constraints(function: FunctionType) -> Iterator[str]:
    """Names of the constraints that a function adds to the model."""
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if isinstance(node, ast.FunctionDef) and any("Constraint(" in d or d.startswith("rows(") for d in _texts(node)):
            yield node.name
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("pyo.Constraint("):
            yield ast.unparse(node.targets[0]).rpartition(".")[2]


def _texts(function: ast.FunctionDef) -> list[str]:
    """Decorators of a function."""
    return [ast.unparse(decorator) for decorator in function.decorator_list]


@cache
def _golden_rows(folder: str) -> dict[str, list[tuple[str, str]]]:
    """Models and rows of every constraint in the golden files of a method's folder."""
    found = defaultdict[str, list[tuple[str, str]]](list)
    for path in sorted((Path(__file__).parents[1] / "tests" / "golden" / folder).rglob("*.lp")):
        text = path.read_text(encoding="utf-8")
        model = text.partition("name=")[2].split()[0]
        for constraint, index, terms, side in _ROW.findall(text):
            found[constraint].append((model, _row_text(f"{constraint}{index}", terms.splitlines(), side)))
    return found


def _row_text(name: str, terms: list[str], side: str) -> str:
    """A row on one line, long ones in part."""
    text = " ".join([*terms[:_SHOWN], *(["..."] if len(terms) > _SHOWN else [])])
    text = re.sub(r"([+-])(?:1(?:\.0)?(?= ))?\s*", r"\1 ", text).removeprefix("+ ")
    text = re.sub(r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.4g}", f"{name}: {text} {side}")
    return re.sub(r"\(\w+\)", lambda index: index[0].replace("__", ",-").replace("_", ","), text)


def _clearest(rows: list[tuple[str, str]], sources: tuple[str, ...]) -> str:
    """The longest row that is shown whole, of the models that the first possible source builds."""
    for source in (*sources, *(f'"{model}"' for model, _ in rows)):
        if own := [row for model, row in rows if f'"{model}"' in source]:
            return max((row for row in own if "..." not in row), key=len, default=own[0])
    raise LookupError("a constraint without a row in a golden file")


def _called_functions(function: FunctionType, seen: set[FunctionType]) -> Iterator[FunctionType]:
    """Functions of methods that a function calls, each before those that it calls."""
    module = inspect.getmodule(function)
    for node in _calls(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        found = _resolve_name(node.func, module)
        if isinstance(found, FunctionType) and found not in seen and ".core." not in found.__module__:
            seen.add(found)
            yield found
            yield from _called_functions(found, seen)


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls in the order of the text."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    yield from sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def _resolve_name(called: ast.expr, module: ModuleType | None) -> Any:
    """Object of a name, or a function of a module of methods."""
    if isinstance(called, ast.Name):
        return getattr(module, called.id, None)
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        owner = getattr(module, called.value.id, None)
        if isinstance(owner, ModuleType) and owner.__name__.startswith("cwb."):
            return getattr(owner, called.attr, None)
    return None


def _declares(function: Callable[..., Any]) -> bool:
    """Check if a function adds variables, constraints or an objective to the model that is its first argument."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(definition, ast.FunctionDef) or not definition.args.args:
        return False
    model = definition.args.args[0].arg
    source = ast.unparse(definition)
    made = r"Var|Constraint|ConstraintList|Objective"
    return re.search(rf"= pyo\.({made})\(|@{model}\.({made})\(|@rows\({model}\b", source) is not None


def formula(code: str) -> str:
    """A formula of a docstring in LaTeX, between dollars; names of code stay what they are."""
    return f"`{code}`" if _NAME.fullmatch(code) else f"${_latex(code)}$"


def _latex(code: str) -> str:
    """Signs, words and indices of a formula: ``_`` and ``^`` take braces, or all letters or digits that follow."""
    made, at = "", 0
    while found := _TOKEN.match(code, at):
        at = found.end()
        part = found[0]
        if part in ("_{", "^{"):
            end = _closing(code, at)
            made += f"{part}{_latex(code[at:end])}}}"
            at = end + 1
        else:
            made += _to_latex(part)
    return made.strip()


def _closing(code: str, at: int) -> int:
    """Position at which an open brace ends."""
    depth = 1
    while True:
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if not depth:
            return at
        at += 1


def _to_latex(part: str) -> str:
    """A part in LaTeX."""
    if part in _SIGNS:
        return _SIGNS[part]
    if part[0] in "_^":
        return f"{part[0]}{{{part[1:]}}}"
    if len(part) > 2 and part.replace(" ", "").isalpha() and part[0] == " ":
        return f"\\text{{{part}}}"
    if (len(part) > 2 and part[0].isalpha()) or part == "in":
        return f"\\mathrm{{{part}}}".replace("_", "\\_")
    return part


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    for name in registry.formulation_names():
        print("##", name)
        for function, text, row in declarations(name):
            print(f"| `{function}` | {text} | {row} |")
