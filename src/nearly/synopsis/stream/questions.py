"""Questions that arrive as records, and their answers.

{"id": "q1", "aggregate": "sum", "where": {"pickup": [10, 20], "city": "Paris"}, "by": null, "confidence": 0.95}
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nearly.errors import NearlyError

if TYPE_CHECKING:
    from nearly.synopsis.synopsis import Synopsis

_KNOWN = {"id", "aggregate", "where", "by", "confidence"}


def answered(synopsis: Synopsis, value: bytes | None, fallback_id: str) -> Mapping[str, Any]:
    """The answer to one record; a question that cannot be answered says why."""
    try:
        question = json.loads(value or b"")
    except ValueError as trouble:
        return {"id": fallback_id, "error": str(trouble)}
    if not isinstance(question, dict) or "aggregate" not in question or set(question) - _KNOWN:
        return {"id": fallback_id, "error": f"a question is an object with {', '.join(sorted(_KNOWN))}; 'aggregate' is needed"}
    name = str(question.get("id", fallback_id))
    try:
        found = synopsis.query(
            question["aggregate"],
            by=question.get("by"),
            confidence=question.get("confidence", 0.95),
            **(question.get("where") or {}),
        )
    except (NearlyError, TypeError) as trouble:
        return {"id": name, "error": str(trouble)}
    bounds = {"low": found.low, "high": found.high, "hard_low": found.hard_low, "hard_high": found.hard_high}
    reply: dict[str, Any] = {"id": name, "exact": found.exact, "confidence": found.confidence, "source": found.source}
    reply["rows"] = found.table.to_pylist()
    for bound, table in bounds.items():
        reply[bound] = [[_finite(cell) for cell in row.values()] for row in table.to_pylist()]
    return reply


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def encoded(reply: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """A reply as key and value of a record."""
    return str(reply["id"]).encode(), json.dumps(reply, default=str, ensure_ascii=False).encode()
