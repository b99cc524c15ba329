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
    known,
    methods,
    parallel,
    programs,
    relays,
    repairs,
    simulate,
    stragglers,
    streamed,
    studies,
    synthesis,
    training,
    translated,
    verifier,
    wan,
)
from cwb.benchmarks.adversary.fault import Campaign

_MODULES = (
    known,
    verifier,
    training,
    files,
    simulate,
    streamed,
    programs,
    answers,
    methods,
    wan,
    translated,
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
