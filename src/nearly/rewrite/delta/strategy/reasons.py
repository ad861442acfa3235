"""Why an operator cannot be kept up to date by its change alone, by codes that programs may rely on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an operator is not kept up to date by its change alone, and what would make it so."""

    code: str
    why: str
    instead: str


REASONS = {
    each.code: each
    for each in (
        Reason("SOURCE_HAS_NO_HISTORY", "a table was registered anew, and no log tells what changed",
               "change registered tables by insert, delete, update and merge"),
        Reason("NOT_DETERMINISTIC", "an expression gives another value every time", "compute it once, into a column of the table"),
        Reason("USER_FUNCTION", "a Python function may give another value for the same row, or needs all rows at once",
               "use SQL functions, or a function over rows that may be given them in pieces"),
        Reason("LIMIT_WITHOUT_TOTAL_ORDER", "which rows a LIMIT keeps is open when their order is not total",
               "order by a key as well, or leave the LIMIT to the queries over the view"),
        Reason("LIMIT_BELOW", "which rows are the first depends on all rows below the LIMIT",
               "leave the LIMIT to the queries over the view"),
        Reason("WINDOW_WITHOUT_PARTITION", "a window over all rows changes with every row",
               "add PARTITION BY, the same columns to all windows"),
        Reason("WINDOW_WITHOUT_TOTAL_ORDER", "which of the rows that tie is the first or last of a window is open",
               "order the window by a key as well"),
        Reason("ONE_GROUP", "an aggregate without GROUP BY below the top is computed from all rows again",
               "make it a view of its own, and select from that"),
        Reason("VALUE_IN_EVERY_ROW", "a single value is joined to every row, so that all rows change with it",
               "compare with the value in queries over the view"),
        Reason("DOUBLES", "sums of doubles are computed again for touched groups: adding and subtracting would drift",
               "sum decimals or whole numbers"),
        Reason("DOUBLES_AS_KEYS", "sums of doubles, whose last digits differ each time, decide which rows there are",
               "sum decimals or whole numbers, and group, compare and unite by these"),
        Reason("DISTINCT_VALUES", "distinct values of touched groups are looked at again", "group by the value in a view below"),
        Reason("NOT_MERGEABLE", "an aggregate needs all rows of a touched group",
               "use counts, sums, averages, least and greatest values"),
        Reason("NO_EQUALITY", "rows of a join without an equality are compared with all others", "join by an equality"),
        Reason("SPARK_ONLY", "the native kernel does not take the query, so Spark computes it again",
               "use functions of the verified set"),
        Reason("CHANGED_TOO_MUCH", "so many keys were touched that computing all is cheaper", "refresh more often"),
        Reason("NO_KEY", "the rows have no key, so no sample of them can be kept", "select the keys of the tables"),
    )
}  # fmt: skip
