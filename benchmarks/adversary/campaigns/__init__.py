"""All campaigns by name; the cheap ones first."""

from __future__ import annotations

from cwb.benchmarks.adversary.campaigns import (
    answers,
    epochs,
    extremes,
    files,
    finder,
    forests,
    known,
    simulate,
    synthesis,
    training,
    verifier,
    wan,
)
from cwb.benchmarks.adversary.fault import Campaign

_MODULES = (known, verifier, training, files, simulate, answers, wan, forests, epochs, synthesis, extremes, finder)

CAMPAIGNS: dict[str, Campaign] = {campaign.name: campaign for module in _MODULES for campaign in module.CAMPAIGNS}
