"""Words that are nearly right are suggested."""

from __future__ import annotations

import pytest
from cwb.core.errors import did_you_mean


@pytest.mark.parametrize(
    ("word", "meant"),
    [("allreduce", "all_reduce"), ("All-Reduce", "all_reduce"), ("al_gather", "all_gather"), ("xyz", None), ("", None)],
)
def test_the_nearest_known_word_is_suggested(word: str, meant: str | None) -> None:
    """Misspelt words, other cases and hyphens lead to the word that was meant; what is like none leads nowhere."""
    assert did_you_mean(word, ["all_reduce", "all_gather"]) == (f"; did you mean {meant!r}?" if meant else "")
