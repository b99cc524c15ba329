"""The section "Returns" of the reference, for functions that have none of their own: their class, and what it is.

A class is documented once, on a page of the reference, and so are its fields and methods; the functions that return it
link there. ``conf.py`` calls :func:`complete` for every docstring.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from cwb.core.record import RunRecord

DOCS = Path(__file__).parent
_CLASS = re.compile(r"^\.\. autoclass:: ((?:\w+\.)+)(\w+)$", re.MULTILINE)
_TYPE = re.compile(r"(?<![\w.~`])[A-Z]\w+")
#: A line of a section with names of parameters and their type, or with a type that is returned.
_ENTRY = re.compile(r"([\w*, ]+ : |(?=[A-Z]))(.+)")

#: Results that are no class of cwb, by the annotation: each is what the command of the same name prints or writes.
PLAIN = {
    "str": "The text that the command prints.",
    "Path": "The file that was written.",
    "dict[str, Any]": "Plain data, as the command's ``--json`` prints it.",
    "list[dict[str, Any]]": "Plain data, as the command's ``--json`` prints it.",
}


@cache
def documented_classes() -> dict[str, str]:
    """Return the dotted name of every class of the pages by its own name."""
    pages = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
    found = (_CLASS.findall(path.read_text(encoding="utf-8")) for path in pages)
    return {name: f"{module}{name}" for classes in found for module, name in classes}


def function_behind(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function whose docstring is shown; ``cwb.models`` is a package that can be called."""
    return import_module("cwb.api.tables").models if name == "cwb.models" else function


def returns(function: Callable[..., Any]) -> list[str]:
    """Return the lines of the section; none if the docstring has one, or the function returns nothing."""
    annotation = inspect.signature(function).return_annotation
    if isinstance(annotation, type) and annotation is not inspect.Signature.empty:  # of a module without text for types
        annotation = annotation.__name__
    if "\nReturns\n---" in (inspect.getdoc(function) or "") or annotation in ("None", None, inspect.Signature.empty):
        return []
    return ["", "Returns", "-------", with_links(annotation), *(f"    {line}" for line in first_sentences(annotation))]


def with_links(annotation: str) -> str:
    """Return an annotation whose classes are links."""
    known = documented_classes()
    if set(_TYPE.findall(annotation)) <= set(known):
        annotation = annotation.replace(" | ", " or ").replace("list[", "list of ").removesuffix("]")
    return _TYPE.sub(lambda found: f":class:`~{known[found[0]]}`" if found[0] in known else found[0], annotation)


def first_sentences(annotation: str) -> Iterator[str]:
    """Return the first sentence of each class, or what stands for a type of Python."""
    if annotation in PLAIN:
        yield PLAIN[annotation]
        return
    for name in _TYPE.findall(annotation):
        module, _, member = documented_classes()[name].rpartition(".")
        yield (inspect.getdoc(getattr(import_module(module), member)) or "").partition("\n")[0]


def complete(_app: object, what: str, name: str, function: Any, _options: object, lines: list[str]) -> None:
    """Add the section to the docstring of a function of ``cwb``, before "Raises"; classes in types become links."""
    if what in ("attribute", "property") and lines:  # napoleon takes words before a colon in the first line for a type
        lines[:1] = lines[0].replace(": ", ":\n", 1).splitlines()
    if what != "function" or name.count(".") > 1:
        return
    shown = function_behind(name, function)
    if shown is not function:
        lines[:] = [*(inspect.getdoc(shown) or "").splitlines(), ""]
    place = lines.index("Raises") - 1 if "Raises" in lines else len(lines)
    lines[place:place] = returns(shown)
    if "Parameters" in lines:
        for number in range(lines.index("Parameters") + 2, lines.index("Raises") if "Raises" in lines else len(lines)):
            if found := _ENTRY.fullmatch(lines[number]):
                lines[number] = found[1] + with_links(found[2])


def hide_fields(
    _app: object, what: str, _name: str, found: Any, _options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Leave out the signature of a record, whose forty fields have a table."""
    return ("", None) if what == "class" and issubclass(found, RunRecord) else (signature, returned)
