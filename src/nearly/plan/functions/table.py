"""The table of scalar functions and operators, by Spark's names."""

from __future__ import annotations

from collections.abc import Sequence

from nearly.errors import Unsupported
from nearly.plan.expressions import Expression
from nearly.plan.functions import arithmetic, conditional, datetimes, logic, mathematics, strings
from nearly.plan.functions.aggregates import is_aggregate
from nearly.plan.functions.signatures import check_arity
from nearly.plan.functions.spark_names import SPARK_FUNCTIONS
from nearly.plan.functions.windows import is_window

FUNCTIONS = (
    arithmetic.FUNCTIONS | logic.FUNCTIONS | conditional.FUNCTIONS | strings.FUNCTIONS | mathematics.FUNCTIONS | datetimes.FUNCTIONS
)

ALIASES = {
    "add": "+", "mod": "%", "negative": "neg", "==": "=", "!=": "<>", "!": "not", "||": "concat",
    "nvl": "coalesce", "ifnull": "coalesce", "iff": "if", "position": "locate", "char_length": "length",
    "character_length": "length", "len": "length", "substr": "substring", "lcase": "lower", "ucase": "upper",
    "char": "chr", "regexp": "rlike", "regexp_like": "rlike",
    "pow": "power", "ceiling": "ceil", "signum": "sign",
    "day": "dayofmonth", "dateadd": "date_add", "date_diff": "datediff", "date_part": "extract", "datepart": "extract",
}  # fmt: skip

_PAIRS = ("nvl", "ifnull")
"""Other names of functions of any number of arguments, which take two."""


def is_function(name: str) -> bool:
    """Whether there is a scalar function of this name."""
    return name.lower() in FUNCTIONS or name.lower() in ALIASES


def is_known(name: str) -> bool:
    """Whether nearly or Spark has a function of this name."""
    return is_function(name) or is_aggregate(name) or is_window(name) or is_spelled(name)


def is_spelled(name: str) -> bool:
    """Whether Spark has a function of this name that queries can call; operators have names here, too, which they cannot."""
    return name.lower() in SPARK_FUNCTIONS


def known_names() -> frozenset[str]:
    """Names to offer for a misspelt one."""
    return SPARK_FUNCTIONS | {name for name in (*FUNCTIONS, *ALIASES) if name.isidentifier()}


def call(name: str, arguments: Sequence[Expression]) -> Expression:
    """The typed call of a scalar function or operator, implicit casts inserted by Spark's ANSI rules."""
    lowered = name.lower()
    function = ALIASES.get(lowered, lowered)
    if lowered in _PAIRS:
        check_arity(name, len(arguments), 2, 2)
    if function not in FUNCTIONS:
        raise Unsupported(f"function {name!r} is not in nearly's verified set")
    return FUNCTIONS[function].resolve(function, tuple(arguments))
