"""Functions over arguments of every type: where nearly types a call, Spark gives it the same type."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nearly
from nearly.errors import NearlyError
from nearly.plan.functions.table import ALIASES, FUNCTIONS

VALUES = (
    "'1970-01-10'", "'5'", "5", "5L", "2.5", "2.5D", "date '2024-01-02'", "timestamp '2024-01-02 03:04:05'", "true", "null",
    "X'41'",
)  # fmt: skip
SYNTAX = {"case", "cast", "not", "and", "or", "in", "is", "like", "neg", "interval"}
NAMES = sorted(name for name in {*FUNCTIONS, *ALIASES} - SYNTAX if name.isidentifier())


def calls(name: str) -> Iterator[str]:
    """The function over every choice of up to two values, and over some of three."""
    function = FUNCTIONS[ALIASES.get(name, name)]
    for count in range(function.least, min(3, function.most or 3) + 1):
        for values in itertools.product(VALUES if count < 3 else (*VALUES[:4], VALUES[6]), repeat=count):
            yield f"select {name}({', '.join(values)}) as v"


def type_in_spark(spark: Any, text: str) -> str:
    try:
        return str(spark.sql(text).schema[0].dataType.simpleString())
    except Exception as refusal:  # noqa: BLE001  whatever Spark raises is its answer
        return str(refusal)[:120]


@pytest.mark.long
def test_calls_have_the_types_of_spark(spark: Any, tmp_path: Path) -> None:
    wrong, typed = [], 0
    with nearly.connect(spark, path=tmp_path) as db:
        for text in itertools.chain.from_iterable(calls(name) for name in NAMES):
            try:
                query = db._engine.prepare(text).query
            except NearlyError:
                continue
            if query is not None:
                typed += 1
                expected = type_in_spark(spark, text)
                if expected != str(query.types[0]):
                    wrong.append(f"{text} is {query.types[0]}, in Spark {expected}")
    assert typed > 3000
    assert not wrong, "\n".join(wrong[:40])
