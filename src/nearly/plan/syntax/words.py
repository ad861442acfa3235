"""Words of a query that no parser is to be trusted with: what must not stand there, and what a parser has silently passed over.

The parser forgives more than Spark does: it skips stray commas, an AS without a name, a second dot. What is plainly a slip is
refused at once; where the tree says less, or more, than the text, the query is Spark's to judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from nearly.errors import ParseError, Unsupported

MAX_DEPTH = 150
"""Nesting beyond this overflows the parser's stack; nobody writes it by hand."""

FORBIDDEN_FUNCTIONS = {
    "reflect": "it calls arbitrary JVM methods",
    "try_reflect": "it calls arbitrary JVM methods",
    "java_method": "it calls arbitrary JVM methods",
    "identifier": "it names tables and functions by text that is not checked; write the name itself",
}

_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_CLAUSES = frozenset({
    TokenType.FROM, TokenType.WHERE, TokenType.HAVING, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.UNION, TokenType.EXCEPT,
    TokenType.INTERSECT, TokenType.ON,
})  # fmt: skip
"""Words that begin a clause and are no plausible names of columns, as LIMIT would be."""
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.SEMICOLON, TokenType.COMMA})
_OPENING = frozenset({
    TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.COMMA, TokenType.SELECT, TokenType.PARTITION_BY, TokenType.WITH,
})  # fmt: skip
_NEEDS_AFTER = {TokenType.COMMA: "comma", TokenType.ALIAS: "AS", TokenType.ON: "ON"}
"""Words after which something must stand: another element, a name, or a condition; before the first two, too."""


def refuse_words(tokens: Sequence[Token]) -> None:
    """What no query may contain, however a parser reads the words around it."""
    depth = 0
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth > MAX_DEPTH:
            raise ParseError(f"the query nests more than {MAX_DEPTH} parentheses")
        _refuse_call(token, after)
        _refuse_lonely(before, token, after)


def _refuse_call(token: Token, after: Token | None) -> None:
    opens = after is not None and after.token_type == TokenType.L_PAREN
    if opens and token.text.lower() in FORBIDDEN_FUNCTIONS and token.token_type not in _STRINGS:
        raise Unsupported(f"function {token.text!r} is refused: {FORBIDDEN_FUNCTIONS[token.text.lower()]}")
    if token.token_type == TokenType.USING and after is not None and after.token_type in _STRINGS:
        raise Unsupported("TRANSFORM ... USING is refused: it runs a program on every executor")


def _refuse_lonely(before: Token | None, token: Token, after: Token | None) -> None:
    """A comma, or an AS, that lacks what belongs before or after it, or an ON without a condition."""
    word = _NEEDS_AFTER.get(token.token_type)
    if word is None:
        return
    place = f"the {word} at line {token.line}, column {token.col}"
    if after is None or after.token_type in _CLOSING | _CLAUSES:
        raise ParseError(f"not a query that Spark SQL would accept: nothing stands after {place}")
    if token.token_type != TokenType.ON and (before is None or before.token_type in _OPENING | _CLAUSES):
        raise ParseError(f"not a query that Spark SQL would accept: nothing stands before {place}")


def unread(tokens: Sequence[Token], rendered: Sequence[Token]) -> str | None:
    """Why the words of a text and those of the tree that was parsed from it do not say the same; None where they do.

    Only words are counted that no way of writing a tree adds or leaves out by itself.
    """
    given, kept = _counted(tokens), _counted(rendered)
    for word in ("AND", "THEN"):
        if given[word] != kept[word]:
            return f"{word} is missing, or stands where it has no meaning"
    for word in ("comma", "dot", "ON", "ALL"):
        if given[word] > kept[word]:
            return f"a {word} stands where it has no meaning"
    return None


def _counted(tokens: Sequence[Token]) -> Counter[str]:
    kinds = Counter(token.token_type for token in tokens)
    points = sum(
        token.token_type == TokenType.DOT and after.token_type == TokenType.NUMBER and not _is_operand(before)
        for before, token, after in zip([None, *tokens], tokens, tokens[1:], strict=False)
    )  # of numbers, which may be written with a zero before them
    return Counter({
        "AND": kinds[TokenType.AND] - kinds[TokenType.BETWEEN],  # a window's frame may be written with both or without
        "THEN": kinds[TokenType.THEN],
        "comma": kinds[TokenType.COMMA] + kinds[TokenType.JOIN],  # FROM a, b is a join
        "dot": kinds[TokenType.DOT] - points,
        "ON": kinds[TokenType.ON],
        "ALL": kinds[TokenType.ALL],
    })  # fmt: skip


def _is_operand(token: Token | None) -> bool:
    """Whether a dot after this word belongs to a name, and not to a number."""
    return token is not None and token.token_type in {
        TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END, *_STRINGS,
    }  # fmt: skip
