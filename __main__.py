"""``python -m cwb`` is ``cwb``."""

from .cli.main import run

run()
