"""The verb ``report``: one page of records, with players of the schedules that a comparison kept."""

import re
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import CwbError, InputError
from ..core.files import write_whole
from ..core.option_names import verb
from ..core.record import RunRecord
from ..reports.records import load_records
from ..studies.record_files import RECORDS

MAX_SCHEDULE_BYTES, MAX_PLAYER_BYTES, MAX_PLAYERS_BYTES = 2**23, 2**22, 2**25  #: Of a file, its player, all players.
_KEY = re.compile("[0-9a-f]{64}")


@verb
def report(*records: str | Path, output: str | Path = "report.html", title: str = "cwb report") -> Path:
    """Make a page of records with plots, tables and failures, as ``cwb report`` does; return its path.

    Schedules that ``compare`` kept, in the folder ``schedules`` beside the records, are played in the page.

    Parameters
    ----------
    output, title : optional
        File for the page, .html, and its heading.
    """
    from ..reports.report import report as report_page

    target = Path(output)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError("a report is an HTML page; expected a name that ends in .html", source=str(target))
    sources = list(map(Path, records)) or RECORDS
    write_whole(target, report_page(load_records(sources), title, _KeptSchedules(sources).play).encode())
    return target


class _KeptSchedules:
    """Schedules in the folders beside records, by the key of the record."""

    def __init__(self, sources: Sequence[Path]) -> None:
        self._folders = [(source if source.is_dir() else source.parent) / "schedules" for source in sources]
        self._spare_bytes = MAX_PLAYERS_BYTES

    def play(self, record: RunRecord) -> bytes | str | None:
        """Return the page that plays a record's answer, the reason why there is none, or None without a file."""
        from ..schedules.files import read_schedule
        from .plots import draw_schedule

        paths = [folder / f"{record.key}.npz" for folder in self._folders] if _KEY.fullmatch(record.key) else []
        file = next((path for path in paths if path.is_file()), None)
        if file is None:
            return None
        if file.stat().st_size <= MAX_SCHEDULE_BYTES:
            try:
                schedule = read_schedule(file)
                if schedule.answer.instance_sha256 != record.instance_sha256:
                    return f"{file} is for another instance."
                if schedule.extra.get("key") != record.key:
                    return f"{file} is of another run."
                page = draw_schedule(schedule, "gantt", None, "html")
            except CwbError as error:
                return f"Not played: {error}"
            if len(page) <= min(MAX_PLAYER_BYTES, self._spare_bytes):
                self._spare_bytes -= len(page)
                return page
        return f"Too large for this page: cwb view {file} -o view.html plays it."
