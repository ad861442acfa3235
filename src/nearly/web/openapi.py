"""The API described for programs, in the form of OpenAPI."""

from __future__ import annotations

from typing import Any

from nearly.web.encoding import ARROW_TYPE, FORMATS
from nearly.web.limits import Limits

Node = dict[str, Any]


def document(limits: Limits) -> Node:
    """The description, with the limits of this server."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "nearly", "version": "1", "description": "Answers early, nearly exact, then exact."},
        "security": [{"bearer": []}, {"cookie": []}],
        "paths": _paths(limits),
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "nearly_PORT"},
            },
            "schemas": {"Wish": _wish(limits), "Answer": _ANSWER, "Error": _ERROR},
        },
    }


def _paths(limits: Limits) -> Node:
    answer, error = _json("Answer"), {"description": "what is wrong, in words", "content": _json("Error")}
    asked = {"requestBody": {"required": True, "content": _json("Wish")}}
    id_ = _parameter("id", "path", "the id that `began` told")
    exported = {media: {"schema": {"type": "string", "format": "binary"}} for media, _ in FORMATS.values()}
    arrow = {ARROW_TYPE: {"schema": {"type": "string", "format": "binary"}}}

    def post(summary: str, content: Node, **more: Any) -> Node:
        return {
            "post": {"summary": summary, "responses": {"200": {"description": "done", "content": content}, "400": error}, **more}
        }

    def get(summary: str, content: Node, *parameters: Node) -> Node:
        responses = {"200": {"description": "found", "content": content}, "400": error}
        return {"get": {"summary": summary, "responses": responses, "parameters": list(parameters)}}

    events = {"text/event-stream": {"schema": {"type": "string", "description": "events began, state, answer and over"}}}
    return {
        "/api/query": post("The last answer; an Arrow stream where that is accepted", answer | arrow, **asked),
        "/api/stream": post("Answers as they come; a client that goes away stops its query", events, **asked),
        "/api/explain": post("The plan, what is read where, and why", _any(), **asked),
        "/api/range": post("The range of an answer where rows are missing, as `missing` states by table", answer),
        "/api/execute": post("Change a table, where the server allows it", _any()),
        "/api/catalog": get("Tables, views, synopses and standing queries", _any()),
        "/api/{kind}/{name}": get(
            "One of them in full", _any(), _parameter("kind", "path", "tables, views, synopses or standing"),
            _parameter("name", "path", "its name"),
        ),
        "/api/status": get(f"How busy the server is; {limits.queries} queries run at a time", _any()),
        "/api/queries/{id}/export": get(
            "The newest answer of a query as a file", exported, id_, _parameter("format", "query", " or ".join(FORMATS)),
        ),
        "/api/queries/{id}/{verb}": post(
            "Stop, pause or resume a query, or set the `goal` at which it is good enough", _any(),
            parameters=[id_, _parameter("verb", "path", "stop, pause, resume or goal")],
        ),
    }  # fmt: skip


def _wish(limits: Limits) -> Node:
    number = {"type": "number", "exclusiveMinimum": 0}
    return {
        "type": "object",
        "required": ["sql"],
        "properties": {
            "sql": {"type": "string", "maxLength": limits.characters, "description": "a query; it may end in WITHIN 1%"},
            "error": number | {"description": "the relative error at which the answer is good enough"},
            "seconds": number | {"description": "the time after which the best answer is taken"},
            "confidence": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.95},
            "mode": {"enum": ["exact", "early"], "description": "the exact answer alone, or answers on the way"},
            "seed": {"type": "integer", "minimum": 0, "default": 0},
        },
    }


_COLUMN: Node = {
    "type": "object",
    "properties": {
        "name": {"type": "string"}, "type": {"type": "string", "description": "Spark's name of the type"},
        "uncertain": {"type": "boolean"},
        "values": {"type": "array", "description": "decimals, and whole numbers beyond 2^53, are texts"},
        "low": {"type": ["array", "null"]}, "high": {"type": ["array", "null"]},
        "surely_low": {"type": ["array", "null"]}, "surely_high": {"type": ["array", "null"]},
    },
}  # fmt: skip
_ANSWER: Node = {
    "type": "object",
    "properties": {
        "columns": {"type": "array", "items": _COLUMN}, "rows": {"type": "integer"}, "exact": {"type": "boolean"},
        "progress": {"type": "number"}, "confidence": {"type": "number"}, "error": {"type": ["number", "string"]},
        "source": {"type": "string"}, "state": {"type": "string", "description": "how good it is, in words"},
        "lacks": {"type": "string", "description": "which rows may come or go, in words"},
    },
}  # fmt: skip
_ERROR: Node = {
    "type": "object",
    "properties": {"error": {"type": "object", "properties": {"kind": {"type": "string"}, "message": {"type": "string"}}}},
}


def _json(schema: str) -> Node:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _any() -> Node:
    return {"application/json": {"schema": {"type": "object"}}}


def _parameter(name: str, place: str, description: str) -> Node:
    return {"name": name, "in": place, "required": place == "path", "description": description, "schema": {"type": "string"}}
