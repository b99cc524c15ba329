"""Writing of the last model that a run passed to a solver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InputError
from ..core.files import write_whole
from ..exchange.models import FORMATS, write_model

if TYPE_CHECKING:
    from ..core.solver import ModelSize
    from ..solvers.matrix import MatrixModel


class LastModel:
    """Keeps the last model of a run (``Listener.on_model``) as solved, with all later changes."""

    def __init__(self, path: Path) -> None:
        if path.suffix not in FORMATS:
            raise InputError(f"a file that ends in {path.suffix!r}; expected {' or '.join(FORMATS)}", source=str(path))
        self.path = path
        self.size: ModelSize | None = None
        self._text: Callable[[], bytes] | None = None

    def __call__(self, model: Callable[[], MatrixModel]) -> None:
        """Replace the kept model."""
        matrix, suffix = model(), self.path.suffix
        self.size = matrix.size
        if matrix.quadratic_rows:
            # Such a model is never kept between solves, so Pyomo's is what is solved; later it may be changed.
            text = write_model(matrix.rows[0].model(), suffix)
            self._text = lambda: text
            return
        from ..solvers.highs_common import model_text

        self._text = lambda: model_text(matrix, suffix)

    def write(self) -> bool:
        """Write the file; return False, and write nothing, if no solver received a model."""
        if self._text is None:
            return False
        write_whole(self.path, self._text())
        return True
