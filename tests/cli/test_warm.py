"""``cwb warm`` compiles ahead, and says where it keeps what it compiled, or that it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from cwb.cli.doctor import warm
from cwb.core import kernel
from cwb.core.errors import CwbError
from cwb.core.kernel import CACHE_VARIABLE, cache_folder
from cwb.exchange.msccl import interpreter
from cwb.harness import warm as ahead
from cwb.harness.clock import ALLOWANCE


@pytest.fixture(autouse=True)
def fresh():
    """The folder is looked for anew, before and after."""
    cache_folder.cache_clear()
    yield
    cache_folder.cache_clear()


@pytest.mark.slow  # a process that compiles
@pytest.mark.parametrize("method", ["straggler", "no-such-method"])
def test_it_compiles_and_tells_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Loops are compiled into the folder named by the variable; a failing run is named and sets the status."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(ahead, "RUNS", ((method, "switch(4)", "late_all_reduce", {}),))
    result = CliRunner().invoke(warm, ["--jobs", "1"], standalone_mode=False)
    works = method == "straggler"
    assert result.return_value == (0 if works else 1)
    assert any((tmp_path / "kernels").iterdir()) == works
    assert str(tmp_path) in result.stdout
    assert ("no-such-method switch(4): " in result.stderr) != works


@pytest.mark.slow  # solves, with compiled loops
def test_one_of_its_runs_checks_an_msccl_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop that runs MSCCL files is called in its compiled form."""

    def play(*arguments: object) -> None:
        raise CwbError("is run")

    monkeypatch.setattr(interpreter, "_play", play)
    for where, name in ((kernel, "WORTH_CODE"), (kernel, "WORTH_COMPILER"), (ALLOWANCE, "left_s")):
        monkeypatch.setattr(where, name, getattr(where, name))  # it changes them, in a process of its own
    (run,) = (run for run in ahead.RUNS if run[0] == "multitree")
    assert ahead._compile(*run) == (0.0, "is run")


def test_without_a_folder_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder that keeps files, nothing is compiled, and the message names the variable."""
    monkeypatch.setenv(CACHE_VARIABLE, "/proc/none")
    result = CliRunner().invoke(warm, standalone_mode=False)
    assert result.return_value == 1
    assert CACHE_VARIABLE in result.stderr


def test_its_runs_are_of_methods_that_there_are() -> None:
    """Every run names a method and an instance that can be loaded."""
    from cwb.harness import registry
    from cwb.instances.loader import load

    for model, network, _, options in ahead.RUNS:
        registry.get(model).options.model_validate(options)
        load(network)
