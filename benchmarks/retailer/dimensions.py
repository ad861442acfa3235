"""The small tables: calendar, clock, products, shoppers and where they live, shops and whatever else sales refer to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from math import sqrt

import numpy as np
import pyarrow as pa

from benchmarks.retailer.columns import Integers, integers, money, nulls, skewed, texts

FIRST_DAY = date(1900, 1, 1)
DAYS = 73_049
FIRST_SALE, LAST_SALE = date(2019, 1, 1), date(2023, 12, 31)
SHOPS, DEPOTS, CAMPAIGNS, SITES, PAGES, CENTRES, CARRIERS, REASONS, BANDS = 12, 5, 300, 30, 60, 6, 20, 35, 20
HOUSEHOLDS = 7_200
DEMOGRAPHICS = 1_920_800

CATEGORIES = ("Books", "Children", "Electronics", "Garden", "Jewelry", "Men", "Music", "Shoes", "Sports", "Women")
CLASSES = ("basic", "classic", "daily", "festive", "gift", "luxury", "outdoor", "premium", "spare", "travel")
MAKERS = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine")
COLORS = ("amber", "azure", "beige", "coral", "indigo", "ivory", "khaki", "lilac", "maroon", "olive", "orchid", "peach", "plum",
          "ruby", "sienna", "slate", "tan", "teal", "violet", "wheat")  # fmt: skip
SIZES = ("petite", "small", "medium", "large", "extra large", "any")
PACKINGS = ("bag", "box", "bunch", "carton", "crate", "dozen", "each", "pair", "pallet", "set")
CITIES = ("Ashby", "Brook", "Clifton", "Dale", "Easton", "Fairport", "Glen", "Harbour", "Ivydale", "Jarrow", "Kingsley", "Lakeside",
          "Midway", "Newtown", "Oakham", "Pleasant Hill", "Quarry", "Riverside", "Stonebridge", "Thornton")  # fmt: skip
STATES = ("AL", "CA", "CO", "FL", "GA", "IA", "IL", "IN", "KS", "KY", "LA", "MI", "MN", "MO", "MS", "NC", "ND", "NE", "NY", "OH",
          "OK", "OR", "PA", "SD", "TN", "TX", "VA", "WA", "WI", "WV")  # fmt: skip
FIRST_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ida", "Jon", "Kai", "Lea", "Max", "Nora", "Otto", "Pia")
LAST_NAMES = ("Abel", "Berg", "Cruz", "Diaz", "Egan", "Ford", "Gray", "Hart", "Iyer", "Jung", "Khan", "Lund", "Moss", "Nash",
              "Ortiz", "Park", "Quinn", "Reyes", "Shaw", "Toth")  # fmt: skip
COUNTRIES = ("Austria", "Brazil", "Canada", "Denmark", "Egypt", "France", "Ghana", "India", "Japan", "Kenya", "Mexico", "Norway")
EDUCATIONS = ("primary", "secondary", "college", "two years", "four years", "advanced", "unknown")
POTENTIALS = ("0-500", "501-1000", "1001-5000", "5001-10000", ">10000", "unknown")
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows there are of what grows with the scale."""

    scale: float

    @property
    def products(self) -> int:
        return max(200, round(18_000 * sqrt(self.scale)))

    @property
    def shoppers(self) -> int:
        return max(500, round(100_000 * self.scale))

    @property
    def addresses(self) -> int:
        return max(250, round(50_000 * self.scale))

    @property
    def demographics(self) -> int:
        """All combinations at scale 1 and above; below, those of the first few values of the last attributes."""
        return round(DEMOGRAPHICS * min(1.0, max(self.scale, 0.01)))


def day_number(day: date) -> int:
    """The `day_id` of a date.

    >>> day_number(date(1900, 1, 1)), day_number(date(1900, 2, 1))
    (1, 32)
    """
    return (day - FIRST_DAY).days + 1


def dimensions(size: Size, seed: int) -> dict[str, pa.Table]:
    """All small tables by name."""
    random = np.random.default_rng(seed)
    return {
        "days": days(), "clock": clock(), "products": products(size, random), "shoppers": shoppers(size, random),
        "addresses": addresses(size.addresses, random), "demographics": demographics(size.demographics), "households": households(),
        "income_bands": income_bands(), "shops": shops(random), "depots": depots(random), "campaigns": campaigns(random),
        "sites": sites(random), "pages": pages(random), "centres": centres(random), "carriers": carriers(), "reasons": reasons(),
    }  # fmt: skip


def days() -> pa.Table:
    dates = [FIRST_DAY + timedelta(days=number) for number in range(DAYS)]
    year = np.array([day.year for day in dates])
    month = np.array([day.month for day in dates])
    of_month = np.array([day.day for day in dates])
    weekday = (np.arange(DAYS) + 1) % 7
    holiday = ((month == 12) & (of_month >= 24)) | ((month == 7) & (of_month == 4)) | ((month == 1) & (of_month == 1))
    quarter = (month - 1) // 3 + 1
    return pa.table({
        "day_id": integers(np.arange(1, DAYS + 1)), "day": pa.array(dates, pa.date32()), "year": integers(year),
        "quarter": integers(quarter), "month": integers(month), "of_month": integers(of_month), "weekday": integers(weekday),
        "month_seq": integers((year - 1900) * 12 + month - 1), "week_seq": integers((np.arange(DAYS) + 1) // 7 + 1),
        "quarter_name": pa.array([f"{y}Q{q}" for y, q in zip(year, quarter, strict=True)]),
        "weekday_name": texts(weekday, WEEKDAYS), "holiday": texts(holiday.astype(np.int64), ("N", "Y")),
        "weekend": texts(np.isin(weekday, (0, 6)).astype(np.int64), ("N", "Y")),
    })  # fmt: skip


def clock() -> pa.Table:
    second = np.arange(86_400)
    hour = second // 3600
    meal = np.select([(hour >= 6) & (hour < 9), (hour >= 11) & (hour < 14), (hour >= 17) & (hour < 21)], [0, 1, 2], 3)
    return pa.table({
        "time_id": integers(second), "hour": integers(hour), "minute": integers(second // 60 % 60), "second": integers(second % 60),
        "half": texts(hour // 12, ("AM", "PM")), "shift": texts((hour + 24 - 6) % 24 // 8, ("first", "second", "third")),
        "meal": texts(meal, ("breakfast", "lunch", "dinner", None)),
    })  # fmt: skip


def products(size: Size, random: np.random.Generator) -> pa.Table:
    """Two of three products have a predecessor or successor with the same code, as a history of changes leaves them."""
    rows = size.products
    number = np.arange(rows)
    category = random.integers(0, 10, rows)
    class_ = random.integers(0, 10, rows)
    brand = random.integers(0, 10, rows)
    maker = skewed(random, rows, 1000, 1.2)
    began = np.array(["2015-01-01", "2018-01-01", "2021-01-01"], "datetime64[D]")[number % 3]
    ended = np.array(["2017-12-31", "2020-12-31", "NaT"], "datetime64[D]")[number % 3]
    price = np.minimum(9_999, (99 + 4_000 * random.gamma(0.7, 1.0, rows)).astype(np.int64))
    brands = [f"{CATEGORIES[c].lower()}{CLASSES[k]} #{b + 1}" for c, k, b in zip(category, class_, brand, strict=True)]
    some = nulls(random, rows, 0.003)
    return pa.table({
        "product_id": integers(number + 1), "code": pa.array([f"PRODUCT{each // 3 * 2 + each % 3 // 2:09}" for each in number]),
        "valid_from": pa.array(began), "valid_to": pa.array(ended),
        "title": pa.array([f"{COLORS[c % 20]} {CLASSES[k]} {n % 977}" for n, c, k in zip(number, maker, class_, strict=True)]),
        "current_price": money(price, some), "unit_cost": money(price * random.integers(40, 90, rows) // 100, some),
        "brand_id": integers((category + 1) * 10_000 + (class_ + 1) * 100 + brand + 1), "brand": pa.array(brands, mask=some),
        "class_id": integers(class_ + 1), "class": texts(class_, CLASSES, some),
        "category_id": integers(category + 1), "category": texts(category, CATEGORIES, some),
        "maker_id": integers(maker + 1), "maker": pa.array([f"{MAKERS[each % 10]}{each // 10}" for each in maker]),
        "size": texts(random.integers(0, len(SIZES), rows), SIZES, some),
        "color": texts(skewed(random, rows, len(COLORS), 1.3), COLORS, some),
        "packing": texts(random.integers(0, len(PACKINGS), rows), PACKINGS, some),
        "manager_id": integers(random.integers(1, 101, rows)),
    })  # fmt: skip


def shoppers(size: Size, random: np.random.Generator) -> pa.Table:
    rows = size.shoppers
    number = np.arange(rows)

    def some() -> np.ndarray | None:
        return nulls(random, rows, 0.035)

    first, last = random.integers(0, len(FIRST_NAMES), rows), random.integers(0, len(LAST_NAMES), rows)
    return pa.table({
        "shopper_id": integers(number + 1), "code": pa.array([f"SHOPPER{each:09}" for each in number]),
        "demo_id": integers(random.integers(1, size.demographics + 1, rows), some()),
        "household_id": integers(random.integers(1, HOUSEHOLDS + 1, rows), some()),
        "address_id": integers(random.integers(1, size.addresses + 1, rows)),
        "first_sale_day": integers(day_number(FIRST_SALE) - random.integers(0, 3000, rows), some()),
        "salutation": texts(random.integers(0, 4, rows), ("Dr.", "Mr.", "Mrs.", "Ms."), some()),
        "first_name": texts(first, FIRST_NAMES, some()), "last_name": texts(last, LAST_NAMES, some()),
        "preferred": texts(random.integers(0, 2, rows), ("N", "Y"), some()),
        "birth_day": integers(random.integers(1, 29, rows), some()), "birth_month": integers(random.integers(1, 13, rows), some()),
        "birth_year": integers(random.integers(1930, 2003, rows), some()),
        "birth_country": texts(random.integers(0, len(COUNTRIES), rows), COUNTRIES, some()),
        "email": pa.array([f"{FIRST_NAMES[f].lower()}.{n}@example.com" for n, f in zip(number, first, strict=True)]),
    })  # fmt: skip


def places(rows: int, random: np.random.Generator) -> dict[str, pa.Array]:
    """Where somebody or something is; the first digit of a zip code goes with the state."""
    state = skewed(random, rows, len(STATES), 1.3)
    zips = [f"{state_ // 3}{rest:04}" for state_, rest in zip(state, random.integers(0, 2000, rows) * 5, strict=True)]
    return {
        "city": texts(skewed(random, rows, len(CITIES), 1.5), CITIES),
        "county": pa.array([f"{STATES[s]} county {c}" for s, c in zip(state, random.integers(1, 9, rows), strict=True)]),
        "state": texts(state, STATES), "zip": pa.array(zips), "country": texts(np.zeros(rows, np.int64), ("United States",)),
        "gmt_offset": integers(-5 - state % 4),
    }  # fmt: skip


def addresses(rows: int, random: np.random.Generator) -> pa.Table:
    some = nulls(random, rows, 0.03)
    street = texts(random.integers(0, len(LAST_NAMES), rows), LAST_NAMES, some)
    where = places(rows, random)
    where["state"] = pa.array(where["state"].to_pylist(), mask=some)
    where["zip"] = pa.array(where["zip"].to_pylist(), mask=nulls(random, rows, 0.03))
    return pa.table({
        "address_id": integers(np.arange(1, rows + 1)), "street_number": integers(random.integers(1, 1000, rows)), "street": street,
        "kind": texts(random.integers(0, 3, rows), ("apartment", "house", "suite")), **where,
    })  # fmt: skip


def demographics(rows: int) -> pa.Table:
    """Every combination of some attributes, the last of which changes most slowly."""
    rest = np.arange(rows)
    digits: list[Integers] = []
    for base in (2, 5, 7, 20, 4, 7, 7, 7):
        digits.append(rest % base)
        rest = rest // base
    return pa.table({
        "demo_id": integers(np.arange(1, rows + 1)), "gender": texts(digits[0], ("F", "M")),
        "marital": texts(digits[1], ("D", "M", "S", "U", "W")), "education": texts(digits[2], EDUCATIONS),
        "spending": integers(500 * (digits[3] + 1)), "credit": texts(digits[4], ("Good", "High Risk", "Low Risk", "Unknown")),
        "dependents": integers(digits[5]), "dependents_employed": integers(digits[6]), "dependents_studying": integers(digits[7]),
    })  # fmt: skip


def households() -> pa.Table:
    number = np.arange(HOUSEHOLDS)
    return pa.table({
        "household_id": integers(number + 1), "band_id": integers(number % 20 + 1),
        "potential": texts(number // 20 % 6, POTENTIALS), "dependents": integers(number // 120 % 10),
        "vehicles": integers(number // 1200 % 6 - 1),
    })  # fmt: skip


def income_bands() -> pa.Table:
    number = np.arange(BANDS)
    return pa.table({
        "band_id": integers(number + 1), "lowest": integers(10_000 * number + (number > 0)),
        "highest": integers(10_000 * (number + 1)),
    })  # fmt: skip


def shops(random: np.random.Generator) -> pa.Table:
    number = np.arange(SHOPS)
    return pa.table({
        "shop_id": integers(number + 1), "code": pa.array([f"SHOP{each // 2:04}" for each in number]),
        "name": texts(number % 6, ("north", "south", "east", "west", "centre", "airport")),
        "employees": integers(random.integers(200, 301, SHOPS)), "floor_space": integers(random.integers(5, 10, SHOPS) * 1_000_000),
        "manager": texts(random.integers(0, len(FIRST_NAMES), SHOPS), FIRST_NAMES), "market_id": integers(number % 5 + 1),
        **places(SHOPS, random), "tax_percent": integers(random.integers(0, 12, SHOPS)),
    })  # fmt: skip


def depots(random: np.random.Generator) -> pa.Table:
    return pa.table({
        "depot_id": integers(np.arange(1, DEPOTS + 1)), "name": pa.array([f"Depot {each} of the retailer" for each in "ABCDE"]),
        "floor_space": integers(random.integers(50_000, 1_000_000, DEPOTS)), **places(DEPOTS, random),
    })  # fmt: skip


def campaigns(random: np.random.Generator) -> pa.Table:
    number = np.arange(CAMPAIGNS)

    def channel(share: float) -> pa.Array:
        return texts((random.random(CAMPAIGNS) < share).astype(np.int64), ("N", "Y"), nulls(random, CAMPAIGNS, 0.01))

    return pa.table({
        "campaign_id": integers(number + 1), "name": pa.array([f"campaign {each % 50}" for each in number]),
        "by_mail": channel(0.5), "by_email": channel(0.1), "by_event": channel(0.1), "by_television": channel(0.1),
        "cost": money(np.full(CAMPAIGNS, 100_000)),
    })  # fmt: skip


def sites(random: np.random.Generator) -> pa.Table:
    number = np.arange(SITES)
    return pa.table({
        "site_id": integers(number + 1), "code": pa.array([f"SITE{each // 2:04}" for each in number]),
        "name": pa.array([f"site_{each // 6}" for each in number]), "company": texts(number % 6, MAKERS), **places(SITES, random),
    })  # fmt: skip


def pages(random: np.random.Generator) -> pa.Table:
    return pa.table({
        "page_id": integers(np.arange(1, PAGES + 1)), "letters": integers(random.integers(1_000, 9_000, PAGES)),
        "kind": texts(random.integers(0, 4, PAGES), ("order", "review", "welcome", "feedback")),
    })  # fmt: skip


def centres(random: np.random.Generator) -> pa.Table:
    number = np.arange(CENTRES)
    return pa.table({
        "centre_id": integers(number + 1), "code": pa.array([f"CENTRE{each // 2:04}" for each in number]),
        "name": texts(number % 3, ("Mid Atlantic", "Pacific", "Lakes")),
        "manager": texts(random.integers(0, len(FIRST_NAMES), CENTRES), FIRST_NAMES), **places(CENTRES, random),
    })  # fmt: skip


def carriers() -> pa.Table:
    number = np.arange(CARRIERS)
    return pa.table({
        "carrier_id": integers(number + 1), "speed": texts(number % 5, ("next day", "express", "two days", "regular", "library")),
        "way": texts(number // 5, ("air", "sea", "surface", "rail")), "firm": pa.array([f"carrier {each // 2}" for each in number]),
    })  # fmt: skip


def reasons() -> pa.Table:
    number = np.arange(REASONS)
    return pa.table({"reason_id": integers(number + 1), "reason": pa.array([f"reason {each + 1}" for each in number])})
