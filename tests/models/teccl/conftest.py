"""Makes the helpers of these tests importable; no test module has such a name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
