"""Numbers of drawn examples: some in every run, all of them in the nightly one."""

from __future__ import annotations

import os

NIGHTLY = os.environ.get("CWB_NIGHTLY") == "1"


def draws(number: int) -> int:
    """Return the number of examples that a test draws: a fifth, at least four, except in the nightly run."""
    return number if NIGHTLY else min(number, max(4, number // 5))
