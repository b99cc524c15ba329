"""The pages, and the fenced blocks in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pages import ROOT, fenced_blocks, page_texts


@pytest.fixture(scope="session")
def root() -> Path:
    """Root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def pages() -> dict[str, str]:
    """Every page by its path from the root."""
    return page_texts()


@pytest.fixture(scope="session")
def blocks(pages: dict[str, str]) -> Callable[..., list[tuple[str, str]]]:
    """(page, text) of the fenced blocks in a language."""
    return lambda *languages: [(name, body) for name, text in pages.items() for body in fenced_blocks(text, *languages)]
