"""The ledger of a comparison: its records by key, and claims on runs in progress."""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import ExitStatus, InputError, locate_os_errors
from ..core.files import NO_LINK
from ..core.jsonl import is_open, lock, lock_for_append, move_broken_lines
from ..core.record import RunRecord, to_line


@dataclass(frozen=True)
class LedgerEntry:
    """Summary of a key's records in the ledger."""

    count: int = 0
    failed: bool = False  #: True for an error, or an answer that the verifier rejected.
    limited: bool = False  #: True if a limit ended the run.


class Ledger:
    """The JSONL file of records, read as it grows, also by other processes.

    Its folder is created, and lines that are no records are moved to a file beside it, unless ``to_write`` is False.
    """

    def __init__(self, path: Path, *, to_write: bool = True) -> None:
        self.path = path
        self.healed = 0  #: Lines that were moved aside.
        self._entries: dict[str, LedgerEntry] = {}
        self._offset = 0
        self._inode: int | None = None
        if to_write:
            with locate_os_errors("cannot be made", str(path.parent)):
                path.parent.mkdir(parents=True, exist_ok=True)
            self.healed = move_broken_lines(path)
        self.refresh()

    def refresh(self) -> None:
        """Read the records appended since the last reading."""
        with (
            locate_os_errors("cannot be read", str(self.path)),
            suppress(FileNotFoundError),
            self.path.open("rb") as stream,
        ):
            status = os.fstat(stream.fileno())
            if status.st_ino != self._inode or status.st_size < self._offset:
                self._inode, self._offset, self._entries = status.st_ino, 0, {}
            stream.seek(self._offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    break  # its writer has not ended it
                self._offset += len(line)
                self._take_in(line)

    def _take_in(self, line: bytes) -> None:
        with suppress(ValueError, RecursionError):
            data = json.loads(line)
            if isinstance(data, dict) and isinstance(key := data.get("key"), str) and key:
                self._entries[key] = LedgerEntry(
                    self.entry(key).count + 1,
                    data.get("status") == "error" or data.get("exit_status") == ExitStatus.VERIFICATION_FAILED,
                    data.get("status") == "limit" or data.get("stopped") in ("time", "memory"),
                )

    def entry(self, key: str) -> LedgerEntry:
        """Return a key's entry as of the last reading."""
        return self._entries.get(key) or LedgerEntry()

    def append(self, record: RunRecord, count: int = 0) -> RunRecord | None:
        """Append a record, unless another comparison has recorded its key meanwhile; return it as written.

        One that JSON cannot represent is written as the method's failure. ``count`` is the number of records of this
        key when its run began.
        """
        try:
            line = to_line(record)
        except (TypeError, ValueError) as error:
            record = record.as_failure(error)
            line = to_line(record)
        with locate_os_errors("cannot be written", str(self.path)), lock_for_append(self.path) as file:
            self.refresh()
            if self.entry(record.key).count > count:
                return None
            file.append(line)
        return record


class Claims:
    """Claims on keys in progress, so that comparisons into one folder share the work.

    A claim is a lock on a file of the key's name. It ends with the process that holds it, however that ends.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptors: dict[str, int] = {}

    def take(self, key: str) -> bool:
        """Claim a key; return False if another process has claimed it."""
        path = self._folder / key
        while True:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK, 0o666)
                is_locked = lock(descriptor, wait=False)
            except FileNotFoundError:  # the folder has just been removed by the other
                continue
            except OSError as error:
                raise InputError((error.strerror or "cannot be made").lower(), source=str(path)) from None
            if not is_locked:
                os.close(descriptor)
                return False
            if is_open(descriptor, path):
                self._descriptors[key] = descriptor
                return True
            os.close(descriptor)  # given back by the other between the two calls

    def give_back(self, key: str) -> None:
        """End a claim."""
        with suppress(OSError):
            (self._folder / key).unlink(missing_ok=True)
        os.close(self._descriptors.pop(key))

    def close(self) -> None:
        """End all claims."""
        for key in list(self._descriptors):
            self.give_back(key)
        with suppress(OSError):  # the other has some
            self._folder.rmdir()
