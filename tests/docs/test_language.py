"""Pages use the words of the glossary."""

from __future__ import annotations

import re

import pytest

#: What is not written, as a regular expression, and what is.
STYLE = {
    r"judge[sd]?": "verifier, verify",
    r"at hand": "available",
    r"tells|is told|are told": "reports, says, shows",
    r"quirks": "limitations",
    r"processor (time|seconds)|seconds of the processor": "CPU time, CPU seconds",
    r"the house|the rooms?": "package, layer",
    r"all[ -]?gathers? together": "gather",
    r"datacent(er|re)s?": "data centre",
}

#: Code, and a title that is quoted.
_CODE = re.compile(r"^(`{3,}).*?^\1|`[^`\n]+`|Inter-Datacenter", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("avoided", STYLE)
def test_pages_avoid_words_that_the_glossary_replaces(avoided, pages):
    """No page uses a word for which the glossary has another one."""
    pattern = re.compile(rf"\b({avoided})\b", re.IGNORECASE)
    for page, text in pages.items():
        for found in pattern.finditer(_CODE.sub("", text)):
            line = text.count("\n", 0, text.find(found.group())) + 1
            raise AssertionError(f"{page}, line {line} or later: {found.group()!r}; expected {STYLE[avoided]!r}")
