"""The native SQL of nested calls grows with their number, not with a power of it."""

from __future__ import annotations

import pytest

from nearly.plan.dialects import native
from nearly.plan.expressions import Column, Expression, Literal, substitute, walk
from tests.plan.dialects.conformance import cases, inputs
from tests.plan.dialects.conformance.language import typed

SUITE = {
    "numbers": cases.NUMBERS,
    "extremes": cases.EXTREMES,
    "words": cases.WORDS + cases.GUARDED_WORDS,
    "moments": cases.MOMENTS + cases.INSTANTS,
}
LEVELS = 12


def nested(expression: Expression, column: Column, levels: int) -> Expression:
    """The expression with itself in the place of a column, again and again."""
    result: Expression = column
    for _ in range(levels):
        result = substitute(expression, {column.name: result})
    return result


def chains(table: str, chosen: list[object]) -> list[tuple[str, Expression, Column]]:
    """Every case that can be its own argument: a column of its type occurs in it once."""
    found = []
    for case in chosen:
        expression = typed(case, inputs.columns(table))
        columns = [each for each in walk(expression) if isinstance(each, Column)]
        fitting = [each for each in columns if each.type == expression.type and columns.count(each) == 1 and each != expression]
        found += [(str(case), expression, column) for column in fitting]
    return found


@pytest.mark.parametrize("table", SUITE)
def test_text_grows_linearly(table: str) -> None:
    """From 6 to 12 levels a chain may grow by little more than from 0 to 6: constants and the first few repeat."""
    too_long = []
    found = 0
    for name, expression, column in chains(table, SUITE[table]):
        sizes = [len(native.expression(nested(expression, column, levels)).sql(dialect="duckdb")) for levels in (0, 6, LEVELS)]
        found += 1
        if sizes[2] - sizes[1] > 2 * (sizes[1] - sizes[0]) + 2000:
            too_long.append(f"{name}: {sizes}")
    assert found
    assert not too_long, "\n".join(too_long)


def test_constants_are_not_bound() -> None:
    assert "lambda" not in native.expression(Literal(inputs.columns("numbers")["i"], 1)).sql(dialect="duckdb").lower()
