"""Records as a DataFrame of pandas, for what no table of cwb shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.record import RunRecord

#: Fields that are no columns: whole documents, which :func:`~cwb.core.record.read_records` gives.
_DOCUMENTS = frozenset({"schema", "certificate", "pool", "explanation", "sensitivity", "incumbent", "environment"})


def records_frame(records: Sequence[RunRecord]) -> Any:
    """A row for every record, in their order; of several of the same key the last one.

    Returns
    -------
    pandas.DataFrame
        A column for every field, and for every name in a field of several, behind a dot.
    """
    import pandas as pd

    last = {record.key or number: record for number, record in enumerate(records)}
    rows = [{name: value for name, value in each.to_json().items() if name not in _DOCUMENTS} for each in last.values()]
    return pd.json_normalize(rows, max_level=1)
