"""Answers as they travel: JSON with bounds and texts for a page, and files for other programs."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from nearly.answer import Answer
from nearly.errors import NearlyError
from nearly.plan.types import from_arrow
from nearly.printing import export
from nearly.printing.cells import is_numeric, some_uncertain
from nearly.printing.frame import TextTable

EXACT_IN_JSON = 2**53
"""Whole numbers up to here are numbers in JSON; larger ones, and decimals, are texts, so that no reader rounds them."""


def answer_json(answer: Answer, rows: int, texts: bool = False) -> dict[str, Any]:
    """An answer by columns, its first rows; bounds only of columns in which something is uncertain.

    With `texts`, each cell also comes as people read it: the value with no more digits than are known, and its interval.
    """
    shown = [side.slice(0, rows) for side in (answer.table, answer.low, answer.high, answer.hard_low, answer.hard_high)]
    columns = [_column(answer, shown, place) for place in range(answer.table.num_columns)]
    if texts:
        for column, told in zip(columns, TextTable.of(shown[0], shown[1], shown[2], rows).columns, strict=True):
            column["texts"] = [cell.value for cell in told.cells]
            column["intervals"] = [cell.interval for cell in told.cells]
    return {
        "columns": columns,
        "rows": answer.table.num_rows,
        "shown": shown[0].num_rows,
        "tentative": None if answer.tentative is None else answer.tentative.slice(0, rows).to_pylist(),
        **facts(answer),
    }


def facts(answer: Answer) -> dict[str, Any]:
    """How good an answer is and where it comes from."""
    unseen = answer.unseen
    return {
        "exact": answer.exact,
        "progress": answer.progress,
        "confidence": answer.confidence,
        "error": plain(answer.error),
        "source": answer.source,
        "complete": answer.complete,
        "unseen": None if unseen is None else {"estimate": plain(unseen.estimate), "most": plain(unseen.most)},
        "state": answer.state,
        "lacks": answer.lacks,
    }


def _column(answer: Answer, shown: list[pa.Table], place: int) -> dict[str, Any]:
    field = answer.table.schema.field(place)
    values, low, high, hard_low, hard_high = (side.column(place).to_pylist() for side in shown)
    uncertain = not answer.exact and some_uncertain(values, low, high)
    ranged = answer.proof is not None or (uncertain and any(each is not None for each in (*hard_low, *hard_high)))
    return {
        "name": field.name,
        "type": type_name(field.type),
        "numeric": is_numeric(field.type),
        "uncertain": uncertain,
        "values": [plain(each) for each in values],
        "low": [plain(each) for each in low] if uncertain else None,
        "high": [plain(each) for each in high] if uncertain else None,
        "surely_low": [plain(each) for each in hard_low] if ranged else None,
        "surely_high": [plain(each) for each in hard_high] if ranged else None,
    }


def type_name(type_: pa.DataType) -> str:
    """Spark's name of a type, as in `describe`; Arrow's where Spark has none.

    >>> type_name(pa.int64()), type_name(pa.date32())
    ('bigint', 'date')
    """
    try:
        return str(from_arrow(type_))
    except NearlyError:
        return str(type_)


def plain(value: Any) -> Any:
    """A value as JSON can hold it without loss: what is no number there is text.

    >>> plain(Decimal("1.50")), plain(float("nan")), plain(2**60), plain(dt.date(2024, 2, 29)), plain(b"a")
    ('1.50', 'NaN', '1152921504606846976', '2024-02-29', 'YQ==')
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= EXACT_IN_JSON else str(value)
        case float():
            return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Decimal():
            return f"{value:f}"
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return value.total_seconds()
        case list() | tuple():
            return [plain(each) for each in value]
        case dict():
            return {str(key): plain(each) for key, each in value.items()}
    return str(value)


def with_bounds(answer: Answer) -> pa.Table:
    """The values with bounds, and the facts about them in the schema."""
    told = {"nearly": json.dumps(facts(answer))}
    return export.with_bounds(answer.table, answer.low, answer.high).replace_schema_metadata(told)


def _csv(answer: Answer) -> bytes:
    sink = io.BytesIO()
    export.write_csv(with_bounds(answer), sink)
    return sink.getvalue()


def _parquet(answer: Answer) -> bytes:
    sink = io.BytesIO()
    pq.write_table(with_bounds(answer), sink)
    return sink.getvalue()


def _arrow(answer: Answer) -> bytes:
    table = with_bounds(answer)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


ARROW_TYPE = "application/vnd.apache.arrow.stream"
FORMATS: dict[str, tuple[str, Callable[[Answer], bytes]]] = {
    "csv": ("text/csv; charset=utf-8", _csv),
    "parquet": ("application/vnd.apache.parquet", _parquet),
    "arrow": (ARROW_TYPE, _arrow),
}
"""The files that an answer can be exported to: their media type, and how they are made."""
