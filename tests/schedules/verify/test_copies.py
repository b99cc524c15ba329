"""The compiled check of data that is only copied says yes exactly where the replay has nothing to report."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from time import perf_counter

import numpy as np
import pytest
from cwb.core import kernel
from cwb.core.collective import Collective, Demand
from cwb.core.kernel import Allowance, prefer_interpreted
from cwb.core.topology import NodeKind
from cwb.harness.request import Request
from cwb.harness.run import run
from cwb.instances import load
from cwb.schedules.verify import copies, epochs, sends, verify
from families import FAMILIES
from mutations import MUTATIONS

#: Families in which data is copied among ranks.
COPIES = ["ring_all_gather", "binomial_broadcast", "group_all_gather", "timed_ring_all_gather"]

#: What a replay finds; all else is checked before it.
REPLAYED = {"not-held", "not-a-sum", "order", "missing", "twice", "multicast", "buffer"}


def verifier_findings(instance, answer, monkeypatch):
    """Return if the verifier reports anything without the compiled check, and if that check accepts everything."""
    asked = []

    def note_verdict(*args):
        asked.append(copies.is_copied_correctly(*args))
        return False

    with monkeypatch.context() as patch, prefer_interpreted(Allowance(60.0), perf_counter):
        patch.setattr(kernel, "WORTH_CODE", 1)
        patch.setattr(kernel, "WORTH_COMPILER", 1)
        for module in (epochs, sends):
            patch.setattr(module, "is_copied_correctly", note_verdict)
        report = verify(instance, answer)
    found = report.warnings or any(violation.kind in REPLAYED for violation in report.violations)
    return bool(found), bool(asked) and all(asked)


@pytest.mark.parametrize("family", [*COPIES, "ring_all_reduce", "switched_all_gather", "multicast_broadcast"])
def test_it_is_content_only_where_nothing_is_reported(family, monkeypatch):
    """Of schedules with one random change, none passes of which the replay reports something."""
    instance, answer = FAMILIES[family]()
    random = np.random.default_rng(sum(map(ord, family)))
    for mutation in MUTATIONS.values():
        for _ in range(4):
            found, content = verifier_findings(instance, mutation(instance, answer, random), monkeypatch)
            assert not (content and found)


@pytest.mark.parametrize("family", COPIES)
def test_it_is_content_with_what_is_right(family, monkeypatch):
    """Correct schedules of copies among ranks pass."""
    assert verifier_findings(*FAMILIES[family](), monkeypatch) == (False, True)


def test_it_is_content_with_copies_through_switches(monkeypatch):
    """Switches without room that data only passes do not prevent the check; sends that end in one are not accepted."""
    instance = load("dgx_h100(1)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(8)))
    answer = run(instance, Request("ring")).answer
    assert verifier_findings(instance, answer, monkeypatch) == (False, True)
    ended = answer.sends.target.copy()
    ended[-1] = next(i for i, node in enumerate(instance.topology.nodes) if node.kind is NodeKind.SWITCH)
    wrong = replace(answer, sends=replace(answer.sends, target=ended))
    assert verifier_findings(instance, wrong, monkeypatch) == (True, False)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("together", [0, 4])
def test_compiled_checks_report_the_same(family, together, monkeypatch):
    """Of schedules with one random change, checks by compiled loops, of all chunks together or one after the other,
    find as many faults of every kind as those by arrays."""
    instance, answer = FAMILIES[family]()
    random = np.random.default_rng(sum(map(ord, family)))
    monkeypatch.setattr(copies, "_CELLS", together)
    for mutation in MUTATIONS.values():
        mutant = mutation(instance, answer, random)
        expected = verify(instance, mutant)
        with monkeypatch.context() as patch, prefer_interpreted(Allowance(60.0), perf_counter):
            patch.setattr(kernel, "WORTH_CODE", 1)
            patch.setattr(kernel, "WORTH_COMPILER", 1)
            found = verify(instance, mutant)
        assert (found.ok, found.counts) == (expected.ok, expected.counts)
