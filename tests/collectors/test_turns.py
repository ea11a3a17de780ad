"""Those that start nsys on one host take turns."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from collectors.errors import CollectError
from collectors.nsys import turns


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(turns, "SHARED", tmp_path)
    return tmp_path


def is_free() -> bool:
    """Whether another one would get the turn at once."""
    with turns.turn(0.2) as other:
        return other.lock is not None


def test_one_at_a_time_until_the_turn_is_ended() -> None:
    with turns.turn() as own:
        assert not is_free()
        own.end()
        assert is_free()
        own.end()
    assert is_free()


def test_the_end_of_the_block_and_an_error_end_it() -> None:
    with turns.turn():
        assert not is_free()
    assert is_free()
    with pytest.raises(KeyError), turns.turn():
        raise KeyError
    assert is_free()


def test_it_leaves_nothing_behind(shared: Path) -> None:
    with turns.turn():
        pass
    assert list(shared.iterdir()) == []


def test_without_shared_memory_there_are_no_turns(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SHARED", shared / "none")
    with turns.turn() as own:
        own.end()
        assert own.lock is None


def test_a_signal_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: os.kill(os.getpid(), signal.SIGTERM))
    with (
        turns.turn(),
        pytest.raises(CollectError, match="nsys: was not started: signal 15 came while"),
        turns.turn(),
    ):
        pass
