"""XML of other programs is bounded in depth and number, has no entities, and is looked at once."""

from __future__ import annotations

import pytest
from cwb.core.errors import InputError
from cwb.exchange.xml import MAX_DEPTH, local_name, outermost_elements, parse_xml, texts

NESTED = "<a><b i='1'><b i='2'/><c>x</c></b><d><b i='3'/></d></a>"


def test_elements_are_found_once():
    """Elements inside a found element are not found again, and texts are found at any depth."""
    root = parse_xml(NESTED, "a")
    assert [element.get("i") for element in outermost_elements(root, "b")] == ["1", "3"]
    assert texts(next(outermost_elements(root, "b"))) == {"b": None, "c": "x"}


def test_names_have_their_namespace():
    """Names are written as ElementTree does, and are known without their namespace."""
    root = parse_xml('<n:a xmlns:n="urn:x" n:y="1" z="2"/>', "a")
    assert (root.tag, root.attrib, local_name(root)) == ("{urn:x}a", {"{urn:x}y": "1", "z": "2"}, "a")


def test_a_document_type_that_only_names_a_file_is_read_over():
    """The document types that hwloc and nvidia-smi write declare nothing and are not loaded."""
    assert parse_xml('<!DOCTYPE t SYSTEM "file:///etc/passwd"><t/>').tag == "t"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<a>" * (MAX_DEPTH + 1), "'a' is nested deeper than 64 elements"),
        ("<a>" + "<b/>" * 10 + "</a>", "more than 10 elements"),
        ("<a>", "not XML: no element found"),
        ("", "not XML: no element found"),
        ("<a>&e;</a>", "not XML: undefined entity"),
        ('<!DOCTYPE a SYSTEM "x.dtd"><a>&e;</a>', "names the entity 'e', which the file does not define"),
        ('<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', "declares entities or more in its document type 'a'"),
        ('<!DOCTYPE a [<!ATTLIST a b CDATA "x">]><a/>', "declares entities or more in its document type 'a'"),
        ("<a>\x00</a>", "not XML"),
        ("<a>\ud800</a>", "not XML"),
        ("<b/>", "its root is 'b'; expected a"),
    ],
)
def test_what_is_refused(text, message):
    """XML that is too deep, too large or malformed, or declares anything, is refused with the reason."""
    with pytest.raises(InputError, match=message):
        parse_xml(text, "a", max_elements=10 if "<b/>" * 10 in text else 1000)
