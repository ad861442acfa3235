"""Early answers of aggregates that users write: those that tell what they estimate have the bounds of built-in ones."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

import nearly
from nearly.answer import Answer
from nearly.progressive.frame import Frame


def total(estimates: str | None) -> nearly.Aggregate:
    return nearly.Aggregate(
        zero=0.0, step=lambda s, t: s + (pc.sum(t["x"]).as_py() or 0.0), merge=lambda a, b: a + b, finish=lambda s: s,
        estimates=estimates,
    )  # fmt: skip


def mean() -> nearly.Aggregate:
    return nearly.Aggregate(
        zero=(0.0, 0), step=lambda s, t: (s[0] + (pc.sum(t["x"]).as_py() or 0.0), s[1] + pc.count(t["x"]).as_py()),
        merge=lambda a, b: (a[0] + b[0], a[1] + b[1]), finish=lambda s: s[0] / s[1] if s[1] else None, estimates="mean",
    )  # fmt: skip


def first(frame: Frame) -> Answer:
    """The first answer of a run that goes on."""
    answer = frame.get()
    frame.stop()
    assert not answer.exact
    return answer


@pytest.mark.parametrize("by", [(), ("grp",)])
def test_law_means_and_totals_are_estimated_as_built_in_ones(db: nearly.Session, by: tuple[str, ...]) -> None:
    events = db.table("events").filter("x > 5")
    mine = first(events.agg(mean=mean()("x"), total=total("total")("x"), by=by).sort(*by or ("mean",)))
    builtin = first(events.agg(mean=nearly.avg("x"), total=nearly.sum("x"), by=by).sort(*by or ("mean",)))
    for found, wanted in ((mine.table, builtin.table), (mine.low, builtin.low), (mine.high, builtin.high)):
        assert found.num_rows == wanted.num_rows
        for name in ("mean", "total"):
            assert found[name].to_pylist() == pytest.approx(wanted[name].to_pylist(), rel=1e-9)
    if by:  # nothing tells how many groups a user's aggregate has not met
        assert mine.error == float("inf")
    else:
        assert mine.error == pytest.approx(builtin.error)
        assert 0 < mine.error < 0.5


def test_what_tells_nothing_is_as_it_is_and_open(db: nearly.Session) -> None:
    """Beside a mean that has an interval."""
    frame = db.table("events").agg(plain=total(None)("x"), mean=mean()("x"))
    answer = first(frame)
    whole = db.table("events").agg(plain=nearly.sum("x"), mean=nearly.avg("x")).get_final().table
    assert answer.table["plain"][0].as_py() < 0.9 * whole["plain"][0].as_py()
    assert answer.low["plain"][0].as_py() is None
    assert answer.high["plain"][0].as_py() is None
    assert answer.low["mean"][0].as_py() < answer.high["mean"][0].as_py()
    assert answer.error == float("inf")


def test_the_last_answer_is_the_aggregate(db: nearly.Session) -> None:
    frame = db.table("events").agg(mean=mean()("x"), total=total("total")("x"), n=nearly.count(), by="grp").sort("grp")
    whole = db.table("events").agg(mean=nearly.avg("x"), total=nearly.sum("x"), n=nearly.count(), by="grp").sort("grp")
    for name in ("mean", "total", "n"):
        assert frame.get_final().table[name].to_pylist() == pytest.approx(whole.get_final().table[name].to_pylist(), rel=1e-9)


@pytest.mark.parametrize(
    ("estimates", "returns", "message"), [("median", "double", "'mean' or 'total'"), ("mean", "string", "for numbers")]
)
def test_bad_estimates(estimates: str, returns: str, message: str) -> None:
    with pytest.raises(nearly.SchemaError, match=message):
        nearly.Aggregate(0, len, max, abs, returns=returns, estimates=estimates)
