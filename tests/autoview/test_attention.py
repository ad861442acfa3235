"""Which questions are thought about."""

from __future__ import annotations

import pytest

from nearly.autoview import attention as module
from nearly.autoview.attention import Attention

ENOUGH = 0.01


@pytest.fixture(autouse=True)
def _usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other tests set meanwhile."""
    monkeypatch.setattr(module, "ENOUGH", ENOUGH)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.5])
def test_law_a_quick_question_is_thought_about_as_often_as_it_takes_long(share: float) -> None:
    attention = Attention()
    due = sum(attention.is_due("q", share * ENOUGH) for _ in range(1_000))
    assert due == pytest.approx(1_000 * share, rel=0.2)


def test_a_question_that_takes_long_is_thought_about_each_time() -> None:
    attention = Attention()
    assert all(attention.is_due("q", ENOUGH) for _ in range(5))


def test_questions_wait_by_themselves() -> None:
    attention = Attention()
    assert not attention.is_due("a", 0.6 * ENOUGH)
    assert not attention.is_due("b", 0.6 * ENOUGH)
    assert attention.is_due("a", 0.6 * ENOUGH)
    assert not attention.is_due("a", 0.6 * ENOUGH)
