"""XML of other programs: parsed in one pass, without entities, no deeper and no larger than it may be.

A document type may name a file, which is not loaded; one that declares anything itself is rejected where it begins, and
with it entities that expand to gigabytes or name other files. Every element is counted as it opens, so that what is
too deep or too much is rejected before it is in memory. The parser is the standard library's expat.
"""

from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from ..core.errors import InputError, show_value

__all__ = ["MAX_DEPTH", "MAX_ELEMENTS", "Element", "feed_xml", "local_name", "outermost_elements", "parse_xml", "texts"]
#: Elements inside one another; graphs, schedules and machines of the formats that are read need a dozen.
MAX_DEPTH = 64
MAX_ELEMENTS = 2**20  #: Elements of a file.


def parse_xml(text: str, root: str | None = None, max_elements: int = MAX_ELEMENTS) -> Element:
    """Parse a text to its outermost element, of a name if one is given; ``{namespace}name`` is one in a namespace."""
    tree = TreeBuilder()
    _Reader(max_elements, tree, namespaces=True).read(text)
    element = tree.close()
    if root is not None and local_name(element) != root:
        raise InputError(f"its root is {show_value(local_name(element))}; expected {root}")
    return element


def feed_xml(text: str | bytes, target: Any, max_elements: int = MAX_ELEMENTS) -> None:
    """Tell a target of the elements of a text, as ElementTree's parser does; errors get the line."""
    _Reader(max_elements, target, namespaces=False).read(text)


class _Reader:
    """Tells of the elements, and rejects those that are too deep or too many."""

    def __init__(self, max_elements: int, target: Any, *, namespaces: bool) -> None:
        self._most, self._count, self._depth = max_elements, 0, 0
        self._target, self._namespaces = target, namespaces

    def read(self, text: str | bytes) -> None:
        parser = expat.ParserCreate(namespace_separator="}" if self._namespaces else None)
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = getattr(self._target, "data", None)
        parser.StartDoctypeDeclHandler, parser.SkippedEntityHandler = _doctype, _reject_entity
        self._parser = parser
        try:
            parser.Parse(text, True)
        except (expat.ExpatError, ValueError) as error:
            raise InputError(f"not XML: {str(error)[:80]}") from None
        finally:
            del self._parser  # which holds this: without it both go at once, with all that was read

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        self._depth += 1
        if self._count > self._most:
            raise InputError(f"more than {self._most:,} elements")
        if self._depth > MAX_DEPTH:
            raise InputError(f"{show_value(tag)} is nested deeper than {MAX_DEPTH} elements")
        if self._namespaces:
            tag, attributes = _qualified_name(tag), {_qualified_name(name): value for name, value in attributes.items()}
        try:
            self._target.start(tag, attributes)
        except InputError as error:
            raise error.at(place=f"line {self._parser.CurrentLineNumber}") from None

    def _end(self, tag: str) -> None:
        self._depth -= 1
        try:
            self._target.end(_qualified_name(tag) if self._namespaces else tag)
        except InputError as error:
            raise error.at(place=f"line {self._parser.CurrentLineNumber}") from None


def _qualified_name(name: str) -> str:
    return f"{{{name}" if "}" in name else name


def _doctype(name: str, system: str | None, public: str | None, declares: Any) -> None:
    if declares:
        raise InputError(f"declares entities or more in its document type {show_value(name)}; expected plain XML")


def _reject_entity(name: str, parameter: Any) -> None:
    raise InputError(f"names the entity {show_value(name)}, which the file does not define; expected plain XML")


def local_name(element: Element) -> str:
    """Name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def outermost_elements(element: Element, *names: str) -> Iterator[Element]:
    """Elements of these names below one, in order, without those inside of others; none is looked at twice."""
    waiting = [iter(element)]
    while waiting:
        child = next(waiting[-1], None)
        if child is None:
            waiting.pop()
        elif local_name(child) in names:
            yield child
        else:
            waiting.append(iter(child))


def texts(element: Element) -> dict[str, str | None]:
    """Text of the first element of every name below one, by the name."""
    _, *below = element.iter()
    return {local_name(part): part.text for part in reversed(below)}
