"""Let the tests of this folder import the exam, which is also a script of its own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
