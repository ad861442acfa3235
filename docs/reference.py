"""Writes docs/api.md, the reference of all public names, from their docstrings: `python docs/reference.py`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("api.md")
HEAD = """\
# Reference

All public names, from their docstrings. This page is made by `python docs/reference.py`.
"""
ROOMS = {
    "Sessions and queries": ("connect", "Session", "Query", "Answer"),
    "Frames": (
        "Frame", "Aggregate", "sum", "count", "avg", "min", "max", "median", "quantile", "stddev", "var", "corr", "cov",
        "count_distinct", "weighted_avg",
    ),
    "Tables": ("Table", "Commit", "Changed", "Following"),
    "Views, standing queries and synopses": ("View", "Standing", "AutoView", "Synopsis"),
    "Missing rows": ("Constraint", "ConstraintSet", "constraints_from", "MissingRows"),
    "Errors": (
        "NearlyError", "ParseError", "UnknownName", "Unsupported", "SchemaError", "ConstraintError", "EngineError", "Conflict",
    ),
}  # fmt: skip
"""Names by what they are about. Those of the package are all here; others are what its methods give."""
ELSEWHERE = {
    "AutoView": "nearly.autoview.autoview", "Commit": "nearly.engine.storage.versions", "View": "nearly.views.view",
    "Following": "nearly.engine.spark.stream_follow", "MissingRows": "nearly.missing.contingency",
    "Standing": "nearly.standing.standing", "Synopsis": "nearly.synopsis.synopsis", "Table": "nearly.engine.storage.layouts",
}  # fmt: skip
"""Where a name lives that is not one of the package itself."""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for room, names in ROOMS.items():
        parts.append(f"## {room}\n")
        parts += [entry(name) for name in names]
    return "\n".join(parts)


def found(name: str) -> Any:
    """The thing that a name stands for."""
    return getattr(import_module(ELSEWHERE.get(name, "nearly")), name)


def entry(name: str) -> str:
    """What the page says of one name: its signature, its docstring, and its public methods."""
    thing = found(name)
    if inspect.isclass(thing):
        lines = [f"### {name}\n", described(thing)]
        for own, member in members(thing):
            lines.append(f"#### {name}.{own}\n")
            lines.append(f"```python\n{own}{signature(member)}\n```\n" if callable(member) else "")
            lines.append(described(member))
        return "\n".join(line for line in lines if line)
    return f"### {name}\n\n```python\n{name}{signature(thing)}\n```\n\n{described(thing)}"


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class with docstrings of their own, in the order in which they are written."""
    for each in reversed(kind.__mro__):
        if not each.__module__.startswith("nearly"):
            continue
        for name, member in vars(each).items():
            plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if name.startswith("_") or getattr(kind, name, None) is None or not inspect.getdoc(plain):
                continue
            if inspect.isfunction(plain) or isinstance(plain, property):
                yield name, plain


def signature(thing: Any) -> str:
    """The parameters as they are written, one a line where they are many."""
    given = inspect.signature(thing)
    shown = [each for each in given.parameters.values() if each.name != "self"]
    returns = "" if given.return_annotation is inspect.Signature.empty else f" -> {_type(given.return_annotation)}"
    texts = list(_parameters(shown))
    line = f"({', '.join(texts)}){returns}"
    return line if len(line) < 90 else "(\n    " + ",\n    ".join(texts) + f",\n){returns}"


def _parameters(shown: list[inspect.Parameter]) -> Iterator[str]:
    starred = False
    for each in shown:
        if each.kind is each.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or each.kind is each.VAR_POSITIONAL
        mark = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        typed = "" if each.annotation is each.empty else f": {_type(each.annotation)}"
        default = "" if each.default is each.empty else f"{' = ' if typed else '='}{_value(each.default)}"
        yield f"{mark}{each.name}{typed}{default}"


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _value(value: Any) -> str:
    """A default as it is written; one that has no such spelling is left open."""
    text = repr(value)
    return "..." if text.startswith("<") else text


def described(thing: Any) -> str:
    """A docstring as Markdown: examples in fences, formulas that are set off as they are."""
    parts = re.split(r"\n\s*\n", inspect.getdoc(thing) or "")
    return "\n\n".join(_paragraph(part) for part in parts) + "\n"


def _paragraph(text: str) -> str:
    if text.startswith(">>>"):
        return f"```python\n{text}\n```"
    return text.replace("<", "&lt;") if "`" not in text and not text.startswith("    ") else text


def main(arguments: list[str]) -> int:
    """Write the page; with `--check`, only tell whether it is as it should be."""
    if "--check" in arguments:
        return int(PAGE.read_text() != page())
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
