"""Schedules of methods."""

from __future__ import annotations

import pytest
from cwb.harness import Request
from cwb.harness.plan import Cell
from cwb.harness.task import load_and_run


@pytest.fixture
def solve_method():
    """Instance and answer of a method."""

    def of(spec, model, collective, size="1 MiB"):
        done = load_and_run(Cell(spec, Request(model), collective, size, 1))
        assert done.record.verified, done.record.message
        return done.instance, done.answer

    return of
