"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from cwb.core.errors import InputError
from cwb.core.files import write_whole


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    """The content is that of the last call, nothing else is in the folder, and others may read the file as the umask
    says."""
    path = tmp_path / "x.json"
    for content in (b"first", b"second"):
        write_whole(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_failure_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the finished file cannot take its place, the old one stays and no temporary file is left."""

    def fail(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "x.json"
    path.write_bytes(b"old")
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError, match="no space left on device"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["missing/x.json", "file/x.json", "folder", "x" * 300])
def test_places_that_cannot_be_written_are_refused(tmp_path: Path, name: str) -> None:
    """A missing folder, a file taken for a folder, a folder and an impossible name are told with the path, and change
    nothing."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as caught:
        write_whole(tmp_path / name, b"content")
    assert caught.value.source == str(tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == before
