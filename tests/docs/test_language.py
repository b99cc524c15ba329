"""Pages use the words of the glossary, in short sentences, each on a line of its own."""

from __future__ import annotations

import re

import pytest
from prose import blocks, lay_out_page, sentences, words

#: What is not written, as a regular expression, and what is.
STYLE = {
    r"judge[sd]?": "verifier, verify",
    r"at hand": "available",
    r"tells?|told": "reports, says, shows",
    r"refus(e[sd]?|als?|ing)": "rejects, rejection",
    r"pictures?": "plot, figure",
    r"ledgers?": "results file",
    r"handed|hands? (over|on)": "passed, passes",
    r"anew|whoever": "again, any",
    r"quirks": "limitations",
    r"processor (time|seconds)|seconds of the processor": "CPU time, CPU seconds",
    r"the house|the rooms?": "package, layer",
    r"all[ -]?gathers? together": "gather",
    r"datacent(er|re)s?": "data centre",
}

#: A sentence has at most so many words.
WORDS = 30

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


def _markdown(pages):
    """Pages in Markdown but the changelog."""
    kept = (page for page in pages if page.endswith(".md") and not page.startswith("CHANGELOG"))
    return {page: pages[page] for page in kept}


def test_sentences_are_short(pages):
    """No sentence of a page is longer than thirty words, where code and formulas count as one."""
    for page, text in _markdown(pages).items():
        for sentence in (sentence for prose, lines in blocks(text) if prose for sentence in sentences(lines)):
            assert words(sentence) <= WORDS, f"{page}: {words(sentence)} words: {sentence}"


def test_every_sentence_begins_a_line(pages):
    """Prose is laid out as ``python docs/prose.py PAGE`` does it, so that a new sentence changes no other lines."""
    assert [page for page, text in _markdown(pages).items() if lay_out_page(text) != text] == []
