"""The problem that the TE-CCL methods pose: chunks and a grid of epochs."""

from __future__ import annotations

import cwb
import pytest
from cwb.core.errors import InputError


@pytest.mark.parametrize("name", ["teccl", "teccl-milp", "teccl-astar"])
def test_a_grid_of_the_instance_is_not_replaced(name):
    """A problem of split chunks, or of other epochs, is rejected in one line; with options that say the same it is
    solved."""
    run = cwb.solve("ring(4)", "teccl-lp", collective="all_gather", size="1 MiB")
    with pytest.raises(InputError, match=r"timing: the instance has epochs of its own \(te-ccl, .* s, split chunks\)"):
        cwb.solve(run.problem, name)
    posed = cwb.solve("ring(4)", name, collective="all_gather", size="1 MiB", epoch_multiplier=2).problem
    with pytest.raises(InputError, match="epochs of its own"):
        cwb.solve(posed, name)
    assert cwb.solve(posed, name, epoch_multiplier=2).verified
