"""The first Ctrl-C or SIGTERM sets a flag; a signal that was ignored before stays ignored."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from jumok.system.signals import stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def _restore_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_sets_the_flag_and_the_second_reaches_the_earlier_handler(
    number: signal.Signals,
) -> None:
    received_signals: list[int] = []
    signal.signal(number, lambda received_number, _: received_signals.append(received_number))
    with stop_on_signals() as should_stop:
        assert not should_stop()
        signal.raise_signal(number)
        assert should_stop()
        assert received_signals == []
        signal.raise_signal(number)
        assert received_signals == [number]
    signal.raise_signal(number)
    assert received_signals == [number, number]


@pytest.mark.parametrize(("ignored", "other"), [SIGNALS, SIGNALS[::-1]])
def test_an_ignored_signal_stays_ignored(ignored: signal.Signals, other: signal.Signals) -> None:
    """A signal is ignored under `nohup`, or in the background of a shell script."""
    signal.signal(ignored, signal.SIG_IGN)
    signal.signal(other, signal.default_int_handler)
    with stop_on_signals() as should_stop:
        signal.raise_signal(ignored)
        assert not should_stop()
        signal.raise_signal(other)
        assert should_stop()
    assert signal.getsignal(ignored) is signal.SIG_IGN
