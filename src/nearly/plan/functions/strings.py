"""Functions over text."""

from __future__ import annotations

from nearly.errors import Unsupported
from nearly.plan.expressions import Call, Expression, Literal
from nearly.plan.functions.coercion import implicit
from nearly.plan.functions.signatures import Arguments, Function, fixed
from nearly.plan.types import BOOLEAN, INT, LONG, STRING

DEFAULT_ESCAPE = "\\"


def _texts(name: str, arguments: Arguments) -> Arguments:
    return tuple(implicit(name, each, STRING) for each in arguments)


def _concatenate(name: str, arguments: Arguments) -> Expression:
    if not arguments:
        return Literal(STRING, "")
    texts = _texts(name, arguments)
    return texts[0] if len(texts) == 1 else Call(STRING, "concat", texts)


def _match(name: str, arguments: Arguments) -> Expression:
    """(text, pattern, escape): the escape is a literal of one character."""
    text, pattern = _texts(name, arguments[:2])
    escape = arguments[2] if len(arguments) > 2 else Literal(STRING, DEFAULT_ESCAPE)
    if not isinstance(escape, Literal) or not isinstance(escape.value, str) or len(escape.value) != 1:
        raise Unsupported(f"the escape of {name.upper()} must be one character")
    return Call(BOOLEAN, name, (text, pattern, escape))


def _locate(name: str, arguments: Arguments) -> Expression:
    """(part, text, start): the place of `part` in `text`, counted from 1; 0 when it is not there."""
    part, text = _texts(name, arguments[:2])
    start = implicit(name, arguments[2], INT) if len(arguments) > 2 else Literal(INT, 1)
    return Call(INT, "locate", (part, text, start))


def _trim(name: str, arguments: Arguments) -> Expression:
    """(text, characters) once resolved; Spark's `ltrim` and `rtrim` put the characters first, `btrim` last."""
    characters_first = name in ("ltrim", "rtrim")
    ordered = arguments[::-1] if characters_first else arguments
    function = "trim" if name == "btrim" else name
    return Call(STRING, function, _texts(name, ordered))


def _pad(name: str, arguments: Arguments) -> Expression:
    text, padding = _texts(name, (arguments[0], arguments[2] if len(arguments) > 2 else Literal(STRING, " ")))
    return Call(STRING, name, (text, implicit(name, arguments[1], INT), padding))


FUNCTIONS = {
    "concat": Function(0, None, _concatenate),
    "concat_ws": Function(1, None, lambda name, arguments: Call(STRING, name, _texts(name, arguments))),
    **dict.fromkeys(("like", "ilike"), Function(2, 3, _match)),
    **dict.fromkeys(("startswith", "endswith", "contains", "rlike"), fixed(BOOLEAN, STRING, STRING)),
    **dict.fromkeys(("upper", "lower", "reverse", "initcap"), fixed(STRING, STRING)),
    **dict.fromkeys(("length", "octet_length", "ascii"), fixed(INT, STRING)),
    "trim": Function(1, 1, _trim),
    **dict.fromkeys(("btrim", "ltrim", "rtrim"), Function(1, 2, _trim)),
    "substring": fixed(STRING, STRING, INT, INT, least=2),
    **dict.fromkeys(("left", "right", "repeat"), fixed(STRING, STRING, INT)),
    "replace": Function(2, 3, lambda name, arguments: Call(STRING, name, _texts(name, (*arguments, Literal(STRING, ""))[:3]))),
    "locate": Function(2, 3, _locate),
    "instr": Function(2, 2, lambda name, arguments: _locate(name, arguments[::-1])),
    **dict.fromkeys(("lpad", "rpad"), Function(2, 3, _pad)),
    "split_part": fixed(STRING, STRING, STRING, INT),
    "translate": fixed(STRING, STRING, STRING, STRING),
    "chr": fixed(STRING, LONG),
    "space": fixed(STRING, INT),
}
