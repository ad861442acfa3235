"""The house stays in order: one name for one thing, and rooms in which one finds one's way."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src" / "nearly"
MOST_MODULES = 20
NAMED_BY_SQLGLOT = {"Parser", "Tokenizer"}
"""Dialects of SQL must call their parts so."""


def test_no_two_classes_have_one_name() -> None:
    found = defaultdict(list)
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name not in NAMED_BY_SQLGLOT:
                found[node.name].append(str(path.relative_to(SOURCES)))
    assert found
    assert not {name: paths for name, paths in found.items() if len(paths) > 1}


def test_no_room_has_too_many_modules() -> None:
    rooms = defaultdict(list)
    for path in SOURCES.rglob("*.py"):
        if path.name != "__init__.py":
            rooms[path.parent].append(path.name)
    assert not {room.name: len(names) for room, names in rooms.items() if len(names) > MOST_MODULES}
