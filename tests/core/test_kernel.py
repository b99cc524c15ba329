"""Compiled loops: the same results interpreted, kept on disk by their source, and never a failure for want of a
disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cwb.core import kernel as module
from cwb.core.kernel import Allowance, cache_folder, compilation_observed, interpreted_form, kernel, prefer_interpreted

SOURCE = """
STEP = {step}

def inner(x):
    return x {operator} STEP

def outer(items):
    total = items[0]
    for item in items[1:]:
        total += inner(item)
    return total
"""


def pair(operator: str = "+", step: int = 1) -> dict[str, Any]:
    """A kernel that calls another one, as a module has them."""
    space: dict[str, Any] = {"__name__": "example"}
    exec(compile(SOURCE.format(operator=operator, step=step), "example.py", "exec"), space)  # noqa: S102
    for name in ("inner", "outer"):
        space[name] = kernel(space[name])
    return space


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of this test."""
    monkeypatch.setenv(module.CACHE_VARIABLE, str(tmp_path))
    cache_folder.cache_clear()
    yield tmp_path / "kernels"
    cache_folder.cache_clear()


@contextmanager
def count_entries(entered: list[int]) -> Iterator[None]:
    """Count how often a context is entered."""
    entered.append(1)
    yield


def test_both_ways_give_the_same_and_compiled_code_is_kept(folder: Path) -> None:
    """A kernel and the kernels that it calls give the same compiled and interpreted; what is compiled is on disk, and
    is loaded, not compiled, by the next process's kernel."""
    items, entered = np.arange(5), list[int]()
    with compilation_observed(lambda: count_entries(entered)):
        assert pair()["outer"](items) == interpreted_form(pair()["outer"])(items) == 14
        assert len(entered) == 1
        assert pair()["outer"](items) == 14
    assert len(entered) == 1
    assert {path.name.rsplit("-", 1)[0] for path in folder.iterdir()} == {"example.inner", "example.outer"}


@pytest.mark.parametrize("changes", [{"operator": "*"}, {"step": 2}], ids=["code", "constant"])
def test_a_change_of_what_is_called_is_noticed(folder: Path, changes: dict[str, Any]) -> None:
    """A kernel is compiled anew where a function or a number that it uses has changed, though not its own source."""
    items = np.arange(5)
    assert pair()["outer"](items) == 14
    assert pair(**changes)["outer"](items) == {"operator": 10, "step": 18}[next(iter(changes))]


def test_an_allowance_is_used_up_before_anything_is_compiled(folder: Path) -> None:
    """Interpreted first, a kernel is compiled as soon as its seconds are used up, and loaded where it is on disk."""
    ticks = iter(range(100))
    outer, items, entered = pair()["outer"], np.arange(5), list[int]()
    with (
        compilation_observed(lambda: count_entries(entered)),
        prefer_interpreted(Allowance(2), lambda: float(next(ticks))),
    ):
        assert [outer(items) for _ in range(2)] == [14, 14]
        assert entered == []
        assert outer(items) == 14
        assert entered == [1]
    with prefer_interpreted(Allowance(1e9), lambda: 1 / 0):
        assert pair()["outer"](items) == 14


def test_unsigned_sums_wrap_around_in_silence(folder: Path) -> None:
    """Numbers that wrap around in 64 bits when compiled do so when interpreted, without a warning."""

    @kernel
    def double(x: Any) -> Any:
        return x * np.uint64(2)

    with prefer_interpreted(Allowance(1e9), lambda: 0.0):
        assert double(np.uint64(2**63 + 1)) == 2


def _nowhere(path: Path) -> str:
    return "/proc/none"


def _open_to_all(path: Path) -> str:
    (path / "kernels").mkdir()
    (path / "kernels").chmod(0o777)
    return str(path)


def _a_file(path: Path) -> str:
    (path / "kernels").write_text("")
    return str(path)


@pytest.mark.parametrize("where", [_nowhere, _open_to_all, _a_file, lambda _: ""])
def test_without_a_folder_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Callable[[Path], str]
) -> None:
    """A folder that cannot be made, that others can write to, or that is not wanted, is no reason to fail."""
    monkeypatch.setenv(module.CACHE_VARIABLE, where(tmp_path))
    cache_folder.cache_clear()
    try:
        assert cache_folder() is None
        assert pair()["outer"](np.arange(5)) == 14
    finally:
        cache_folder.cache_clear()


def test_a_folder_that_vanishes_is_no_reason_to_fail(folder: Path) -> None:
    """A cache folder that can no longer be written to when something is compiled leaves it uncached."""
    assert cache_folder() == folder
    folder.rmdir()
    folder.write_text("")
    assert pair()["outer"](np.arange(5)) == 14


def test_a_full_disk_is_no_reason_to_fail(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code that cannot be stored is used nonetheless."""
    from numba.core.caching import IndexDataCacheFile

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    assert pair()["outer"](np.arange(5)) == 14


def test_the_folder_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name, the folder is in the user's cache folder, for his eyes only; without a home in a temporary
    one."""
    monkeypatch.delenv(module.CACHE_VARIABLE, raising=False)
    monkeypatch.setattr(module, "_user_cache", lambda: tmp_path)
    cache_folder.cache_clear()
    try:
        assert cache_folder() == tmp_path / "cwb" / "kernels"
        assert stat.S_IMODE((tmp_path / "cwb" / "kernels").stat().st_mode) == 0o700
        monkeypatch.setattr(module, "_user_cache", lambda: Path("/proc/none"))
        monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path))
        cache_folder.cache_clear()
        assert cache_folder() == tmp_path / f"cwb-kernels-{os.getuid()}"
    finally:
        cache_folder.cache_clear()
