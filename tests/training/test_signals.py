"""Ctrl-C and SIGTERM raise a flag; what was ignored before stays ignored."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from jumok.training.signals import watch_signals

if TYPE_CHECKING:
    from collections.abc import Iterator

BOTH = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in BOTH}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", BOTH)
def test_the_first_raises_the_flag_and_the_second_acts_as_before(number: signal.Signals) -> None:
    seen: list[int] = []
    signal.signal(number, lambda found, _: seen.append(found))
    with watch_signals() as interrupted:
        assert not interrupted()
        signal.raise_signal(number)
        assert interrupted()
        assert seen == []
        signal.raise_signal(number)
        assert seen == [number]
    signal.raise_signal(number)
    assert seen == [number, number]


@pytest.mark.parametrize(("ignored", "other"), [BOTH, BOTH[::-1]])
def test_what_was_ignored_stays_ignored(ignored: signal.Signals, other: signal.Signals) -> None:
    """As under `nohup`, or in the background of a shell script."""
    signal.signal(ignored, signal.SIG_IGN)
    signal.signal(other, signal.default_int_handler)
    with watch_signals() as interrupted:
        signal.raise_signal(ignored)
        assert not interrupted()
        signal.raise_signal(other)
        assert interrupted()
    assert signal.getsignal(ignored) is signal.SIG_IGN
