"""Schedules of methods."""

from __future__ import annotations

import pytest
from cwb.harness import Request
from cwb.harness.cell import run_loading
from cwb.harness.plan import Cell


@pytest.fixture
def solved():
    """Instance and answer of a method."""

    def of(spec, model, collective, size="1 MiB"):
        done = run_loading(Cell(spec, Request(model), collective, size, 1))
        assert done.record.verified, done.record.message
        return done.instance, done.answer

    return of
