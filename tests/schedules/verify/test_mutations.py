"""The verifier is tried on correct schedules with one random change."""

from __future__ import annotations

import numpy as np
import pytest
from cwb.schedules.verify import verify
from families import FAMILIES
from mutations import MUTATIONS
from slow_replay import is_valid


@pytest.mark.parametrize("family", FAMILIES)
def test_correct_schedules_are_accepted(family):
    """No correct schedule of any family is refused, by the verifier or by the slow one, and none has a useless send."""
    instance, answer = FAMILIES[family]()
    report = verify(instance, answer)
    assert report.ok, report.violations
    assert not report.warnings
    assert is_valid(instance, answer)


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_mutation_is_caught_exactly_if_it_changes_the_meaning(family, mutation):
    """Of twelve single random changes, the verifier refuses those, and only those, that the slow replay finds wrong."""
    instance, answer = FAMILIES[family]()
    random = np.random.default_rng([sum(map(ord, family)), sum(map(ord, mutation))])
    for _ in range(12):
        mutant = MUTATIONS[mutation](instance, answer, random)
        report = verify(instance, mutant)
        assert report.ok == is_valid(instance, mutant), [str(v) for v in report.violations]
