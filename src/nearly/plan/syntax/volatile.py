"""Whether a query means something else each time it is asked, over the same rows."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from nearly.plan.syntax.parse import parse_query

_NAMES = frozenset({
    "curdate", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "now", "unix_timestamp",
    "rand", "randn", "random", "randstr", "uniform", "shuffle", "uuid", "monotonically_increasing_id", "spark_partition_id",
    "current_user", "session_user", "user",
})  # fmt: skip
_WORDS = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentUser, exp.Localtime, exp.Localtimestamp)


@lru_cache(maxsize=256)
def is_volatile(text: str) -> bool:
    """Whether a text asks for the time, for chance, or for who asks.

    A column of such a name counts as well: to compute once too often is only slower.

    >>> is_volatile("select a from t where day > current_date - 7"), is_volatile("select a from t")
    (True, False)
    """
    for node in parse_query(text).walk():
        if isinstance(node, _WORDS):
            return True
        if isinstance(node, exp.Anonymous | exp.Column) and node.name.lower() in _NAMES:
            return True
    return False
