"""The little language of the cases: nested tuples that give both a typed expression and the SQL a user would write.

A string is a column, `Text` a string constant, a tuple a call, any other Python value a constant.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from nearly.plan import functions
from nearly.plan.expressions import Column, Expression, Literal
from nearly.plan.types import BOOLEAN, DATE, DOUBLE, NULL, STRING, DataType, from_name

INFIX = {"+", "-", "*", "/", "div", "%", "=", "<=>", "<", ">", "<=", ">=", "<>", "and", "or", "||"}


@dataclass(frozen=True)
class Text:
    value: str


@dataclass(frozen=True)
class Number:
    """A number as it is written."""

    text: str


def literal(value: Any) -> Literal:
    """A constant with the type that Spark gives it."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return functions.number(f"{value:f}" if isinstance(value, Decimal) else str(value))
    types = {type(None): NULL, bool: BOOLEAN, float: DOUBLE, str: STRING, dt.date: DATE}
    return Literal(types[type(value)], value)


def typed(case: Any, columns: dict[str, DataType]) -> Expression:
    """The case through nearly's function table."""
    match case:
        case str():
            return Column(columns[case], case)
        case Text(value):
            return literal(value)
        case Number(text):
            return functions.number(text)
        case ("cast", operand, type_):
            return functions.cast(typed(operand, columns), from_name(type_))
        case ("try_cast", operand, type_):
            return functions.cast(typed(operand, columns), from_name(type_), safe=True)
        case ("interval", amount, unit):
            return functions.interval(amount, unit)
        case ("date", text):
            return functions.date(text)
        case (name, *arguments):
            return functions.call(name, [typed(each, columns) for each in arguments])
    return literal(case)


def written(case: Any) -> str:
    """The case as a user writes it, without any cast nearly inserts."""
    match case:
        case str():
            return f"`{case}`"
        case Text(value):
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case Number(text):
            return text
        case ("cast" | "try_cast" as word, operand, type_):
            return f"{word}({written(operand)} AS {type_})"
        case ("interval", amount, unit):
            return f"INTERVAL '{amount}' {unit}"
        case ("date", text):
            return f"DATE '{text}'"
        case None:
            return "NULL"
        case bool() | int() | Decimal():
            return str(case)
    return _written_call(case[0], [written(each) for each in case[1:]])


def _written_call(name: str, arguments: list[str]) -> str:
    if name in INFIX:
        return f"({arguments[0]} {name} {arguments[1]})"
    match name:
        case "neg":
            return f"(- {arguments[0]})"
        case "not":
            return f"(NOT {arguments[0]})"
        case "isnull" | "isnotnull":
            return f"({arguments[0]} IS {'NOT ' if name == 'isnotnull' else ''}NULL)"
        case "in":
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
        case "between":
            return f"({arguments[0]} BETWEEN {arguments[1]} AND {arguments[2]})"
        case "like" | "ilike":
            escape = f" ESCAPE {arguments[2]}" if len(arguments) > 2 else ""
            return f"({arguments[0]} {name} {arguments[1]}{escape})"
        case "case":
            return _written_case(arguments)
        case "extract":
            return f"extract({arguments[0].strip(chr(39))} FROM {arguments[1]})"
    return f"{name}({', '.join(arguments)})"


def _written_case(arguments: list[str]) -> str:
    pairs = zip(arguments[:-1:2], arguments[1::2], strict=False)
    branches = " ".join(f"WHEN {test} THEN {result}" for test, result in pairs)
    otherwise = f" ELSE {arguments[-1]}" if len(arguments) % 2 else ""
    return f"(CASE {branches}{otherwise} END)"
