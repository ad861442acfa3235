"""What a frame knows of itself: columns that may change, keys, clustering, growth."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearly
from nearly.estimate.cardinality import Observation, fit_monomial


def test_a_table_is_constant_and_keeps_its_keys(frames: nearly.Session) -> None:
    orders = frames.table("orders")
    assert orders.mutable == frozenset()
    assert orders.constant == {"order_id", "customer", "status"}
    assert (orders.key, orders.clustering_key) == (("order_id",), ("order_id",))
    assert orders.filter("status = 'open'").map("*", twice="order_id * 2").key == ("order_id",)
    assert orders.drop("order_id").key is None
    assert orders.rename(order_id="number").clustering_key == ("number",)
    assert frames.table("lines").key is None


def test_grouping_by_the_clustering_key_is_local(frames: nearly.Session) -> None:
    """Rows of an order are read together, so their sum is final at once; by any other column it is an estimate."""
    by_order = frames.table("lines").agg(qty=nearly.sum("quantity"), by="order_id")
    assert (by_order.mutable, by_order.key, by_order.clustering_key) == (frozenset(), ("order_id",), ("order_id",))
    by_size = frames.table("lines").agg(qty=nearly.sum("quantity"), by="größe")
    assert (by_size.mutable, by_size.constant) == ({"qty"}, {"größe"})
    assert (by_size.key, by_size.clustering_key) == (("größe",), ())


def test_mutable_columns_spread(frames: nearly.Session) -> None:
    totals = frames.table("lines").agg(qty=nearly.sum("quantity"), n=nearly.count(), by="größe")
    derived = totals.map("größe", "n", mean="qty / n", label="upper('x')")
    assert derived.mutable == {"n", "mean"}
    assert totals.agg(best=nearly.max("qty")).mutable == {"best"}
    assert totals.agg(best=nearly.max("qty")).key == ()


def test_joins_keep_keys(frames: nearly.Session) -> None:
    lines, orders, customers = (frames.table(name) for name in ("lines", "orders", "customers"))
    assert orders.join(customers, on="customer").key == ("order_id",)
    assert orders.join(customers, on="customer").clustering_key == ("order_id",)
    assert orders.join(lines, on="order_id", how="semi").key == ("order_id",)
    assert lines.join(orders, on="order_id").key is None


@pytest.mark.parametrize(("by", "low", "high"), [("order_id", 0.9, 1.1), ("größe", -0.1, 0.1)])
def test_growth(frames: nearly.Session, by: str, low: float, high: float) -> None:
    """Orders appear as they are read (w = 1); the four sizes are all there at once (w = 0)."""
    frame = frames.table("lines").agg(n=nearly.count(), by=by)
    frame.get_final()
    assert frame.growth is not None
    assert low <= frame.growth <= high
    assert frame.progress == 1.0


@settings(deadline=None)
@given(st.floats(0.1, 1e6), st.floats(0, 2), st.lists(st.floats(0.01, 1), min_size=2, max_size=8, unique=True))
def test_law_of_a_monomial(coefficient: float, exponent: float, shares: list[float]) -> None:
    """A relation that grows as c * t^w is fitted by c and w."""
    if max(shares) / min(shares) < 1.01:
        return
    found = fit_monomial(Observation(t, coefficient * t**exponent) for t in shares)
    assert found is not None
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    assert found.at(1.0) == pytest.approx(coefficient, rel=1e-4)


def test_growth_needs_two_shares() -> None:
    assert fit_monomial([]) is None
    assert fit_monomial([Observation(0.5, 10), Observation(0.5, 12)]) is None
    assert fit_monomial([Observation(0.5, 0), Observation(1.0, 12)]) is None
