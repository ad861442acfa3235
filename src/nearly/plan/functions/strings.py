"""Functions over text."""

from __future__ import annotations

from nearly.errors import Unsupported
from nearly.plan.expressions import Call, Expression, Literal
from nearly.plan.functions.coercion import implicit
from nearly.plan.functions.signatures import Arguments, Function, fixed
from nearly.plan.types import BOOLEAN, INT, LONG, STRING

DEFAULT_ESCAPE = "\\"


def _concatenate(name: str, arguments: Arguments) -> Expression:
    if not arguments:
        return Literal(STRING, "")
    texts = tuple(implicit(name, each, STRING) for each in arguments)
    return texts[0] if len(texts) == 1 else Call(STRING, "concat", texts)


def _concatenate_separated(name: str, arguments: Arguments) -> Expression:
    return Call(STRING, name, tuple(implicit(name, each, STRING) for each in arguments))


def _match(name: str, arguments: Arguments) -> Expression:
    """(text, pattern, escape): the escape is a literal of one character."""
    text, pattern = (implicit(name, each, STRING) for each in arguments[:2])
    escape = arguments[2] if len(arguments) > 2 else Literal(STRING, DEFAULT_ESCAPE)
    if not isinstance(escape, Literal) or not isinstance(escape.value, str) or len(escape.value) != 1:
        raise Unsupported(f"the escape of {name.upper()} must be one character")
    return Call(BOOLEAN, name, (text, pattern, escape))


def _locate(name: str, arguments: Arguments) -> Expression:
    """(part, text, start): the place of `part` in `text`, counted from 1; 0 when it is not there."""
    part, text = (implicit(name, each, STRING) for each in arguments[:2])
    start = implicit(name, arguments[2], INT) if len(arguments) > 2 else Literal(INT, 1)
    return Call(INT, "locate", (part, text, start))


def _find(name: str, arguments: Arguments) -> Expression:
    """`instr(text, part)` is `locate(part, text)`."""
    return _locate(name, (arguments[1], arguments[0]))


def _trim(name: str, arguments: Arguments) -> Expression:
    """(text, characters) once resolved; Spark's `ltrim` and `rtrim` put the characters first, `btrim` last."""
    characters_first = name in ("ltrim", "rtrim")
    ordered = arguments[::-1] if characters_first else arguments
    function = "trim" if name == "btrim" else name
    return Call(STRING, function, tuple(implicit(name, each, STRING) for each in ordered))


def _pad(name: str, arguments: Arguments) -> Expression:
    padding = arguments[2] if len(arguments) > 2 else Literal(STRING, " ")
    text, length = implicit(name, arguments[0], STRING), implicit(name, arguments[1], INT)
    return Call(STRING, name, (text, length, implicit(name, padding, STRING)))


def _replace(name: str, arguments: Arguments) -> Expression:
    complete = arguments if len(arguments) > 2 else (*arguments, Literal(STRING, ""))
    return Call(STRING, name, tuple(implicit(name, each, STRING) for each in complete))


FUNCTIONS = {
    "concat": Function(0, None, _concatenate),
    "concat_ws": Function(1, None, _concatenate_separated),
    "like": Function(2, 3, _match),
    "ilike": Function(2, 3, _match),
    "rlike": fixed(BOOLEAN, STRING, STRING),
    "upper": fixed(STRING, STRING),
    "lower": fixed(STRING, STRING),
    "trim": Function(1, 1, _trim),
    "btrim": Function(1, 2, _trim),
    "ltrim": Function(1, 2, _trim),
    "rtrim": Function(1, 2, _trim),
    "length": fixed(INT, STRING),
    "octet_length": fixed(INT, STRING),
    "substring": fixed(STRING, STRING, INT, INT, least=2),
    "left": fixed(STRING, STRING, INT),
    "right": fixed(STRING, STRING, INT),
    "replace": Function(2, 3, _replace),
    "instr": Function(2, 2, _find),
    "locate": Function(2, 3, _locate),
    "lpad": Function(2, 3, _pad),
    "rpad": Function(2, 3, _pad),
    "repeat": fixed(STRING, STRING, INT),
    "reverse": fixed(STRING, STRING),
    "startswith": fixed(BOOLEAN, STRING, STRING),
    "endswith": fixed(BOOLEAN, STRING, STRING),
    "contains": fixed(BOOLEAN, STRING, STRING),
    "split_part": fixed(STRING, STRING, STRING, INT),
    "ascii": fixed(INT, STRING),
    "translate": fixed(STRING, STRING, STRING, STRING),
    "initcap": fixed(STRING, STRING),
    "chr": fixed(STRING, LONG),
    "space": fixed(STRING, INT),
}
