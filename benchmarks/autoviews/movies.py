"""A JOB-shaped workload: tables like those of the Join Order Benchmark, generated here with skew, and joins of three to five.

It is not the benchmark itself, whose data is not there: the shapes of the queries and the foreign keys are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SEED = 17
TITLES = 60_000
"""At scale 1."""
KINDS = ("movie", "tv series", "tv movie", "video movie", "tv mini series", "video game", "episode")
COUNTRIES = ("[us]", "[de]", "[fr]", "[gb]", "[jp]", "[in]", "[it]", "[ca]")
ROLES = ("actor", "actress", "producer", "writer", "director", "composer", "editor")
INFOS = ("rating", "votes", "budget", "genres", "languages", "countries", "release dates", "runtimes")
GENRES = ("Drama", "Comedy", "Horror", "Action", "Thriller", "Documentary")


def tables(scale: float) -> Iterator[tuple[str, pa.Table]]:
    """The tables, large ones with popular titles, companies and people."""
    random = np.random.default_rng(SEED)
    titles, companies, people, keywords = (max(20, int(part * scale)) for part in (TITLES, 6_000, 80_000, 8_000))
    year = 2015 - np.minimum(random.exponential(15, titles).astype(int), 100)
    yield "title", pa.table({
        "id": np.arange(titles), "kind_id": _skewed(random, len(KINDS), titles), "production_year": year,
        "title": [f"title {number}" for number in range(titles)],
    })  # fmt: skip
    yield "kind_type", _names(KINDS, "kind")
    yield "company_name", pa.table({
        "id": np.arange(companies), "country_code": np.array(COUNTRIES)[_skewed(random, len(COUNTRIES), companies)],
        "name": [f"company {number}" for number in range(companies)],
    })  # fmt: skip
    yield "company_type", _names(("production", "distributor", "effects"), "kind")
    yield "movie_companies", pa.table({
        "movie_id": _skewed(random, titles, titles * 3), "company_id": _skewed(random, companies, titles * 3),
        "company_type_id": random.integers(0, 3, titles * 3),
    })  # fmt: skip
    yield "keyword", pa.table({"id": np.arange(keywords), "keyword": [f"keyword {number}" for number in range(keywords)]})
    yield "movie_keyword", pa.table({
        "movie_id": _skewed(random, titles, titles * 5), "keyword_id": _skewed(random, keywords, titles * 5),
    })  # fmt: skip
    yield "info_type", _names(INFOS, "info")
    kinds = _skewed(random, len(INFOS), titles * 6)
    yield "movie_info", pa.table({
        "movie_id": _skewed(random, titles, titles * 6), "info_type_id": kinds,
        "info": np.array(GENRES)[(kinds + _skewed(random, len(GENRES), titles * 6)) % len(GENRES)],
    })  # fmt: skip
    yield "name", pa.table({
        "id": np.arange(people), "gender": np.array(["m", "f"])[random.integers(0, 2, people)],
        "name": [f"person {number}" for number in range(people)],
    })  # fmt: skip
    yield "role_type", _names(ROLES, "role")
    yield "cast_info", pa.table({
        "movie_id": _skewed(random, titles, titles * 10), "person_id": _skewed(random, people, titles * 10),
        "role_id": _skewed(random, len(ROLES), titles * 10),
    })  # fmt: skip


def _names(values: tuple[str, ...], name: str) -> pa.Table:
    return pa.table({"id": list(range(len(values))), name: list(values)})


def _skewed(random: np.random.Generator, values: int, rows: int) -> npt.NDArray[np.int64]:
    """Numbers below `values`, small ones more often."""
    found: npt.NDArray[np.int64] = (values * random.random(rows) ** 2.2).astype(np.int64)
    return found


_COMPANIES = (
    "from title t, movie_companies mc, company_name cn, company_type ct where mc.movie_id = t.id and mc.company_id = cn.id "
    "and mc.company_type_id = ct.id"
)
_KEYWORDS = "from title t, movie_keyword mk, keyword k where mk.movie_id = t.id and mk.keyword_id = k.id"
_CAST = "from title t, cast_info ci, name n, role_type rt where ci.movie_id = t.id and ci.person_id = n.id and ci.role_id = rt.id"
_INFO = (
    "from title t, movie_info mi, info_type it, kind_type kt where mi.movie_id = t.id and mi.info_type_id = it.id "
    "and t.kind_id = kt.id"
)
_WIDE = (
    "from title t, movie_companies mc, company_name cn, movie_keyword mk, keyword k where mc.movie_id = t.id "
    "and mc.company_id = cn.id and mk.movie_id = t.id and mk.keyword_id = k.id and mk.movie_id = mc.movie_id"
)
_PEOPLE = (
    "from title t, cast_info ci, name n, movie_companies mc, company_name cn where ci.movie_id = t.id and ci.person_id = n.id "
    "and mc.movie_id = t.id and mc.company_id = cn.id and ci.movie_id = mc.movie_id"
)


def queries() -> list[str]:
    """Families of joins, each with several constants, as the benchmark has them: 1a, 1b, 1c, ..."""
    found: list[str] = []
    for country, kind in zip(COUNTRIES[:5], ("production", "distributor", "effects", "production", "distributor"), strict=True):
        test = f"cn.country_code = '{country}' and ct.kind = '{kind}'"
        found.append(f"select min(t.title) as a, min(t.production_year) as b {_COMPANIES} and {test}")
        found.append(f"select t.production_year, count(*) as n {_COMPANIES} and {test} group by t.production_year order by 1")
    for year in (1980, 1995, 2005, 2010):
        late = f"and t.production_year > {year}"
        found.append(f"select min(t.title) as a, count(*) as n {_KEYWORDS} and k.id < 40 {late}")
        found.append(f"select k.keyword, count(*) as n {_KEYWORDS} {late} group by k.keyword order by n desc, 1 limit 10")
        found.append(f"select cn.country_code, count(*) as n {_WIDE} {late} and k.id < 200 group by 1 order by 1")
    for role in ROLES[:5]:
        found.append(f"select min(n.name) as a, min(t.title) as b {_CAST} and rt.role = '{role}' and n.gender = 'f'")
        found.append(
            f"select t.production_year, count(*) as n {_CAST} and rt.role = '{role}' group by t.production_year order by 1"
        )
    for info in INFOS[:5]:
        found.append(f"select min(t.title) as a {_INFO} and it.info = '{info}' and kt.kind = 'movie' and mi.info = 'Drama'")
        found.append(f"select mi.info, kt.kind, count(*) as n {_INFO} and it.info = '{info}' group by 1, 2 order by 1, 2")
    people = f"select n.gender, count(*) as n {_PEOPLE} and t.production_year > 2000"
    found += [f"{people} and cn.country_code = '{country}' group by 1 order by 1" for country in COUNTRIES[:4]]
    return found
