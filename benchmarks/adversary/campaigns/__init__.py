"""All campaigns by name; the cheap ones first."""

from __future__ import annotations

from cwb.benchmarks.adversary.campaigns import (
    answers,
    digraphs,
    epochs,
    extremes,
    files,
    finder,
    forests,
    known_defects,
    methods,
    parallel,
    programs,
    relays,
    repairs,
    simulate,
    stragglers,
    streams,
    studies,
    synthesis,
    training,
    translations,
    verifier,
    wan,
)
from cwb.benchmarks.adversary.fault import Campaign

_MODULES = (
    known_defects,
    verifier,
    training,
    files,
    simulate,
    streams,
    programs,
    answers,
    methods,
    wan,
    translations,
    parallel,
    repairs,
    stragglers,
    studies,
    forests,
    epochs,
    relays,
    synthesis,
    extremes,
    finder,
    digraphs,
)

CAMPAIGNS: dict[str, Campaign] = {campaign.name: campaign for module in _MODULES for campaign in module.CAMPAIGNS}
