"""The command line in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from cwb.cli.main import run


def cwb(*arguments: str | Path) -> int:
    """Run the command line in this process and give its exit status."""
    with pytest.raises(SystemExit) as caught:
        run([str(argument) for argument in arguments])
    return int(str(caught.value.code))
