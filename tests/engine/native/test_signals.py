"""Ctrl-C while the native engine runs is Ctrl-C."""

from __future__ import annotations

import signal
import threading

import pytest

from nearly.engine.native.engine import Native

LONG = "SELECT count(*) FROM range(1000000000) AS a, range(1000000000) AS b WHERE a.range + b.range = -1"


def test_ctrl_c_is_a_keyboard_interrupt() -> None:
    """DuckDB says that its query was interrupted, which nobody takes for the wish of a user."""
    engine = Native()
    pressed = threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT))
    pressed.start()
    with pytest.raises(KeyboardInterrupt):
        engine.run(LONG, (), {})
    pressed.join()
    assert engine.run("SELECT 1 AS x", (), {}).to_pylist() == [{"x": 1}]
    engine.close()
