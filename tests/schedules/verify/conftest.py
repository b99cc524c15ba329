"""Makes the slow verifier, the families and the mutations importable; no test module has such a name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
