"""The large tables: sales of three channels, their returns, and the stock of the depots, all in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.retailer.columns import Integers, integers, longs, money, nulls, skewed
from benchmarks.retailer.dimensions import (
    CAMPAIGNS,
    CARRIERS,
    CENTRES,
    DEPOTS,
    FIRST_SALE,
    HOUSEHOLDS,
    LAST_SALE,
    PAGES,
    REASONS,
    SHOPS,
    SITES,
    Size,
    day_number,
)

SHOP_SALES, MAIL_SALES, ONLINE_SALES = 2_880_000, 1_440_000, 720_000
"""Rows at scale 1."""
STOCKED = 9_000
"""Products of which the depots count their stock every week, at scale 1."""
MISSING = 0.03
"""The share of nulls in each foreign key and number, keys of lines apart."""
RETURNED = 0.1
BOUGHT_AGAIN = 0.04
"""The share of lines by mail in which somebody orders what they took back to a shop."""
MONTHS = np.array([70, 70, 75, 75, 80, 80, 85, 110, 110, 110, 180, 200])
"""How much is sold in each month, beside others."""
HOURS = np.array([1, 1, 0, 0, 0, 0, 1, 3, 8, 12, 13, 13, 12, 12, 11, 11, 12, 14, 15, 14, 12, 8, 4, 2])


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of sales in the order of time: which order each belongs to, what is the same in it, and what was sold."""

    order: Integers
    day: Integers
    time: Integers
    shopper: Integers
    product: Integers


@dataclass(frozen=True, slots=True)
class Prices:
    """Whole-number quantities and cents of the lines."""

    quantity: Integers
    cost: Integers
    listed: Integers
    price: Integers
    coupon: Integers
    tax: Integers

    @classmethod
    def of(cls, lines: Lines, random: np.random.Generator) -> Prices:
        rows = len(lines.order)
        quantity = random.integers(1, 101, rows)
        cost = 100 + random.integers(0, 9_900, rows) * (1 + lines.product % 7) // 7
        listed = cost * random.integers(100, 300, rows) // 100
        price = listed * random.integers(0, 101, rows) // 100
        coupon = np.where(random.random(rows) < 0.2, quantity * price * random.integers(0, 80, rows) // 100, 0)
        tax = (quantity * price - coupon) * random.integers(0, 10, rows) // 100
        return cls(quantity, cost, listed, price, coupon, tax)

    @property
    def paid(self) -> Integers:
        return self.quantity * self.price - self.coupon

    def columns(self, random: np.random.Generator) -> dict[str, pa.Array]:
        """The numbers of a sale, some of them unknown."""
        found = {
            "unit_cost": self.cost, "list_price": self.listed, "sales_price": self.price,
            "discount": self.quantity * (self.listed - self.price), "sales_total": self.quantity * self.price,
            "cost_total": self.quantity * self.cost, "list_total": self.quantity * self.listed, "coupon": self.coupon,
            "tax": self.tax, "paid": self.paid, "profit": self.paid - self.quantity * self.cost,
        }  # fmt: skip
        rows = len(self.quantity)
        quantity = integers(self.quantity, nulls(random, rows, MISSING))
        return {"quantity": quantity} | {name: money(cents, nulls(random, rows, MISSING)) for name, cents in found.items()}


@dataclass(frozen=True, slots=True)
class Facts:
    """Makes the large tables of a scale, one after another; the same seed gives the same rows."""

    size: Size
    seed: int

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        shop = self._lines(np.random.default_rng([self.seed, 1]), SHOP_SALES, 16)
        sold, returned, again = self._shop(shop, np.random.default_rng([self.seed, 2]))
        yield "shop_sales", sold
        yield "shop_returns", returned
        del sold, returned
        mail = _merged(self._lines(np.random.default_rng([self.seed, 3]), round(MAIL_SALES * (1 - BOUGHT_AGAIN)), 18), again)
        yield from self._sent("mail", mail, np.random.default_rng([self.seed, 4]))
        online = self._lines(np.random.default_rng([self.seed, 5]), ONLINE_SALES, 20)
        yield from self._sent("online", online, np.random.default_rng([self.seed, 6]))
        yield "stock", self._stock(np.random.default_rng([self.seed, 7]))

    def _lines(self, random: np.random.Generator, at_scale_1: int, most: int) -> Lines:
        """Orders of one to `most` lines, as many in each month as its weight says."""
        rows = max(1, round(at_scale_1 * self.size.scale))
        sizes = random.integers(1, most + 1, 2 * rows // most + most)
        order = np.repeat(np.arange(len(sizes)), sizes)[:rows]
        orders = int(order[-1]) + 1
        first, last = day_number(FIRST_SALE), day_number(LAST_SALE)
        calendar = np.arange(np.datetime64(FIRST_SALE), np.datetime64(LAST_SALE) + 1)
        weight = MONTHS[calendar.astype("datetime64[M]").astype(int) % 12] * np.linspace(1.0, 1.3, last - first + 1)
        day = first + np.sort(random.choice(last - first + 1, orders, p=weight / weight.sum()))
        time = random.choice(24, orders, p=HOURS / HOURS.sum()) * 3600 + random.integers(0, 3600, orders)
        shopper = skewed(random, orders, self.size.shoppers, 1.3) + 1
        product = skewed(random, rows, self.size.products) + 1
        return Lines(order + 1, day[order], time[order], shopper[order], product)

    def _shop(self, lines: Lines, random: np.random.Generator) -> tuple[pa.Table, pa.Table, Lines]:
        prices = Prices.of(lines, random)
        shop = self._by_order(lines, skewed(random, int(lines.order[-1]), SHOPS, 1.3) + 1)
        who = self._who(lines, random)
        sold = pa.table({
            "sold_day": _key(lines.day, random), "sold_time": _key(lines.time, random), "product_id": integers(lines.product),
            "shopper_id": _key(lines.shopper, random), **who, "shop_id": _key(shop, random),
            "campaign_id": _key(random.integers(1, CAMPAIGNS + 1, len(shop)), random), "ticket_id": longs(lines.order),
            **prices.columns(random),
        })  # fmt: skip
        chosen = np.flatnonzero(random.random(len(shop)) < RETURNED)
        same = random.random(len(chosen)) < 0.9
        shopper = np.where(same, lines.shopper[chosen], random.integers(1, self.size.shoppers + 1, len(chosen)))
        late = lines.day[chosen] + random.integers(1, 91, len(chosen))
        returned = pa.table({
            "returned_day": _key(late, random), "product_id": integers(lines.product[chosen]), "shopper_id": _key(shopper, random),
            "shop_id": _key(shop[chosen], random), "reason_id": _key(random.integers(1, REASONS + 1, len(chosen)), random),
            "ticket_id": longs(lines.order[chosen]), **_returned(prices, chosen, random),
        })  # fmt: skip
        many = min(round(MAIL_SALES * BOUGHT_AGAIN * self.size.scale), len(chosen))
        place = random.choice(len(chosen), many, replace=False)
        day = np.minimum(late[place] + random.integers(0, 120, many), day_number(LAST_SALE))
        return (
            sold,
            returned,
            Lines(np.arange(many), day, random.integers(0, 86_400, many), shopper[place], lines.product[chosen[place]]),
        )

    def _sent(self, channel: str, lines: Lines, random: np.random.Generator) -> Iterator[tuple[str, pa.Table]]:
        """Sales by mail or online, and their returns: they are paid for by one shopper and sent to perhaps another."""
        rows, orders = len(lines.order), int(lines.order[-1])
        prices = Prices.of(lines, random)
        others = random.integers(1, self.size.shoppers + 1, orders)
        receiver = np.where(random.random(rows) < 0.85, lines.shopper, self._by_order(lines, others))
        depot = random.integers(1, DEPOTS + 1, rows)
        carrier = random.integers(1, CARRIERS + 1, rows)
        if channel == "mail":
            place = {"centre_id": self._by_order(lines, random.integers(1, CENTRES + 1, orders))}
        else:
            site = self._by_order(lines, skewed(random, orders, SITES, 1.3) + 1)
            place = {"site_id": site, "page_id": random.integers(1, PAGES + 1, rows)}
        yield f"{channel}_sales", pa.table({
            "sold_day": _key(lines.day, random), "sold_time": _key(lines.time, random),
            "shipped_day": _key(lines.day + random.integers(1, 131, rows), random), "product_id": integers(lines.product),
            "shopper_id": _key(lines.shopper, random), **self._who(lines, random), "receiver_id": _key(receiver, random),
            "receiver_address_id": _key(self._by_order(lines, random.integers(1, self.size.addresses + 1, orders)), random),
            **{name: _key(values, random) for name, values in place.items()}, "carrier_id": _key(carrier, random),
            "depot_id": _key(depot, random), "campaign_id": _key(random.integers(1, CAMPAIGNS + 1, rows), random),
            "order_id": longs(lines.order), **prices.columns(random),
            "shipping": money(prices.quantity * prices.listed * random.integers(0, 50, rows) // 100, nulls(random, rows, MISSING)),
        })  # fmt: skip
        chosen = np.flatnonzero(random.random(rows) < RETURNED)
        yield f"{channel}_returns", pa.table({
            "returned_day": _key(lines.day[chosen] + random.integers(2, 120, len(chosen)), random),
            "product_id": integers(lines.product[chosen]), "shopper_id": _key(lines.shopper[chosen], random),
            "returner_id": _key(receiver[chosen], random),
            "address_id": _key(random.integers(1, self.size.addresses + 1, len(chosen)), random),
            **{name: _key(values[chosen], random) for name, values in place.items()},
            "reason_id": _key(random.integers(1, REASONS + 1, len(chosen)), random), "order_id": longs(lines.order[chosen]),
            **_returned(prices, chosen, random),
        })  # fmt: skip

    def _stock(self, random: np.random.Generator) -> pa.Table:
        """What each depot has of every product that it counts, each week."""
        products = min(self.size.products // 2, max(40, round(STOCKED * self.size.scale)))
        weeks = np.arange(day_number(FIRST_SALE), day_number(LAST_SALE), 7)
        step = self.size.products // products
        counted = np.meshgrid(weeks, np.arange(products) * step + 1, np.arange(1, DEPOTS + 1), indexing="ij")
        day, product, depot = (each.ravel() for each in counted)
        usual = 50 + product * 7919 % 400
        spread = 0.2 + 0.15 * (product % 11)
        on_hand = np.maximum(0, usual * (1 + spread * random.standard_normal(len(day), dtype=np.float32))).astype(np.int64)
        return pa.table({
            "day_id": integers(day), "product_id": integers(product), "depot_id": integers(depot),
            "on_hand": integers(on_hand, nulls(random, len(day), 0.05)),
        })  # fmt: skip

    def _by_order(self, lines: Lines, values: Integers) -> Integers:
        return values[lines.order - 1]

    def _who(self, lines: Lines, random: np.random.Generator) -> dict[str, pa.Array]:
        """What a sale says about the shopper as they were then."""
        orders = int(lines.order[-1])
        most = {"demo_id": self.size.demographics, "household_id": HOUSEHOLDS, "address_id": self.size.addresses}
        return {name: _key(self._by_order(lines, random.integers(1, rows + 1, orders)), random) for name, rows in most.items()}


def _key(values: Integers, random: np.random.Generator) -> pa.Array:
    """A foreign key, now and then null."""
    return integers(values, nulls(random, len(values), MISSING))


def _returned(prices: Prices, chosen: Integers, random: np.random.Generator) -> dict[str, pa.Array]:
    """The numbers of returns: of what was bought all or some comes back."""
    bought = prices.quantity[chosen]
    quantity = np.maximum(1, bought * random.integers(1, 101, len(chosen)) // 100)
    amount = quantity * prices.price[chosen]
    fee = random.integers(50, 10_000, len(chosen))
    cash = amount * random.integers(0, 101, len(chosen)) // 100
    found = {
        "amount": amount,
        "tax": amount * 8 // 100,
        "fee": fee,
        "cash": cash,
        "credit": amount - cash,
        "loss": fee + amount // 2,
    }
    numbers = {name: money(cents, nulls(random, len(chosen), MISSING)) for name, cents in found.items()}
    return {"quantity": integers(quantity, nulls(random, len(chosen), MISSING)), **numbers}


def _merged(lines: Lines, others: Lines) -> Lines:
    """Both in the order of time; each of the other lines is an order of its own."""
    day = np.concatenate([lines.day, others.day])
    order = np.concatenate([lines.order, int(lines.order[-1]) + 1 + others.order])
    place = np.lexsort((order, day))
    changes = np.concatenate([[True], np.diff(order[place]) != 0])

    def both(left: Integers, right: Integers) -> Integers:
        return np.concatenate([left, right])[place]

    return Lines(
        np.cumsum(changes), day[place], both(lines.time, others.time), both(lines.shopper, others.shopper),
        both(lines.product, others.product),
    )  # fmt: skip
