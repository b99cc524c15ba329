"""SIGTERM and SIGHUP do what Ctrl-C does."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from cwb.cli import main
from cwb.cli.streams import stop_on_signals
from cwb.harness.interrupt import stop_on_interrupt

SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])


@pytest.fixture(autouse=True)
def as_in_a_terminal():
    """Ctrl-C raises KeyboardInterrupt, and other signals end the program, whatever started the tests."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@SIGNALS
def test_a_run_is_asked_to_stop_first(number):
    """The first signal asks a run to finish with what it has, the second raises KeyboardInterrupt."""
    stop = threading.Event()
    with stop_on_signals() as received:
        with stop_on_interrupt(stop), pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
            assert stop.is_set()
            os.kill(os.getpid(), number)
        assert received == [number, number]
    assert signal.getsignal(number) is signal.SIG_DFL


@SIGNALS
def test_the_exit_status_names_the_signal(number, monkeypatch, capsys):
    """A signal without a graceful stop ends the command in one line with 128 plus its number, after clean-up."""
    cleaned = []

    def command(*words, **options):
        try:
            os.kill(os.getpid(), number)
        finally:
            cleaned.append(number)

    monkeypatch.setattr(main.cwb, "main", command)
    with pytest.raises(SystemExit) as caught:
        main.run([])
    assert (caught.value.code, cleaned) == (128 + number, [number])
    assert capsys.readouterr().err == "cwb: error: interrupted\n"


def test_what_is_ignored_stays_ignored():
    """A program that was started by nohup does not end when its terminal does."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stop_on_signals() as received:
        os.kill(os.getpid(), signal.SIGHUP)
    assert received == []
