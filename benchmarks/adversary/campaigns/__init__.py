"""All campaigns by name; the cheap ones first."""

from __future__ import annotations

from ..fault import Campaign
from . import epochs, forests, judge, known, simulate, training, wan

_MODULES = (known, judge, training, simulate, wan, forests, epochs)

CAMPAIGNS: dict[str, Campaign] = {campaign.name: campaign for module in _MODULES for campaign in module.CAMPAIGNS}
