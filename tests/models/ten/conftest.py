"""Where the tests of the time-expanded network find the oracle."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # ten_oracle
