"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import gc
import os
import stat
import threading
from pathlib import Path

import pytest
from cwb.core.errors import InputError
from cwb.core.files import open_atomic, without_collector, write_whole


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


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    """An output that is a link is written through, also where it leads nowhere yet; one in a circle is refused."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/target")
    for content in (b"first", b"second"):
        write_whole(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder" / "target").read_bytes() == content
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(InputError, match="symbolic links"):
        write_whole(tmp_path / "circle", b"")


def test_permissions_stay(tmp_path: Path) -> None:
    """A file that only its owner may read keeps its permissions when it is replaced."""
    path = tmp_path / "x"
    path.touch(mode=0o600)
    write_whole(path, b"content")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_pipes_and_devices_are_written_through(tmp_path: Path) -> None:
    """A pipe gets the content and is a pipe afterwards; a full device is told."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"content")
    reader.join()
    assert read == [b"content"]
    assert pipe.is_fifo()
    write_whole(Path("/dev/null"), b"content")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(InputError, match="/dev/full: no space left on device"):
        write_whole(Path("/dev/full"), b"content")


def test_an_interrupted_writer_leaves_what_was_there(tmp_path: Path) -> None:
    """Whatever ends the writing, the old file stays, and nothing else is left."""
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), open_atomic(path) as stream:
        stream.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_writers_of_one_name_do_not_meet(tmp_path: Path) -> None:
    """Of many that write one file at once each has a file of its own, and one of them wins as a whole."""
    path, contents = tmp_path / "x", [bytes([65 + number]) * 200_000 for number in range(16)]
    threads = [threading.Thread(target=write_whole, args=(path, content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_is_guessed_is_of_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link under the name of the temporary file is not followed: its victim stays as it was."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"kept")
    monkeypatch.setattr("cwb.core.files.token_hex", lambda count: "0" * 2 * count)
    (tmp_path / f".cwb-{'0' * 16}.partial").symlink_to(victim)
    with pytest.raises(InputError, match="file exists"):
        write_whole(tmp_path / "x", b"content")
    assert victim.read_bytes() == b"kept"


def test_the_collector_pauses_and_is_then_as_before() -> None:
    """The collector is off within the context, and afterwards as it was before, also after an error."""
    was_enabled = gc.isenabled()
    try:
        for set_collector, enabled in ((gc.enable, True), (gc.disable, False)):
            set_collector()
            with pytest.raises(KeyError), without_collector():
                assert not gc.isenabled()
                raise KeyError
            assert gc.isenabled() == enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
