"""Records as a pandas DataFrame, for anything that no table of cwb shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.record import RunRecord
from .runs import sizes_bytes

#: Fields that are no columns: whole documents, which :func:`~cwb.core.record.read_records` gives.
_DOCUMENTS = frozenset({"schema", "certificate", "pool", "explanation", "sensitivity", "incumbent", "environment"})


def records_frame(records: Sequence[RunRecord]) -> Any:
    """Return a DataFrame with a row for every record, in order; the last one of several with the same key.

    Returns
    -------
    pandas.DataFrame
        A column for every field, nested names joined by dots, and ``size_bytes``, the size of the collective, if known.
    """
    import pandas as pd

    last = {record.key or number: record for number, record in enumerate(records)}
    sizes = sizes_bytes(list(last.values()))
    rows = [
        {name: value for name, value in each.to_json().items() if name not in _DOCUMENTS} | {"size_bytes": size}
        for each, size in zip(last.values(), sizes, strict=True)
    ]
    return pd.json_normalize(rows, max_level=1).astype({"size_bytes": "Int64"})
