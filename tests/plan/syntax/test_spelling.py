"""The text that is given away is the text that was checked: one spelling, nothing hidden in it, whatever the user wrote."""

from __future__ import annotations

import pytest
from sqlglot import exp

from nearly.errors import NearlyError, ParseError, Unsupported
from nearly.plan.syntax.parse import Checked, check_query, tokens_of
from nearly.plan.syntax.spelling import name, string
from tests.fixtures.attacks import attacks, mutations
from tests.fixtures.queries import corpus

TEXTS = [case.text for case in corpus()]
PATH = "/nearly/secret.txt"


def unquoted(tree: exp.Expr) -> exp.Expr:
    """Names with letters beyond ASCII are quoted on the way, and raw strings become plain ones; nothing else changes."""
    tree = tree.transform(lambda node: exp.Literal.string(node.this) if isinstance(node, exp.RawString) else node)
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("quoted", False)
    return tree


def law(checked: Checked) -> None:
    again = check_query(checked.text)
    assert again.text == checked.text
    assert unquoted(again.tree) == unquoted(checked.tree)
    assert not any(mark in _outside_strings(checked.text) for mark in ("--", "/*", "*/", "${", "$", "\\", "#", "{"))


def _outside_strings(text: str) -> str:
    kinds = ("STRING", "IDENTIFIER")
    return " ".join(text[token.start : token.end + 1] for token in tokens_of(text) if token.token_type.name not in kinds)


@pytest.mark.parametrize("text", TEXTS)
def test_queries_keep_their_words(text: str) -> None:
    law(check_query(text))


def test_mutated_texts_are_refused_or_keep_their_words() -> None:
    taken = 0
    for text in mutations(TEXTS, 400, seed=11):
        try:
            checked = check_query(text)
        except NearlyError:
            continue
        taken += 1
        law(checked)
    assert taken > 50


@pytest.mark.parametrize("text", attacks(PATH))
def test_attacks_are_refused_or_harmless(text: str) -> None:
    """What is taken has no table in a path, no call of Java, and no variable that Spark could put a value in for."""
    try:
        checked = check_query(text)
    except NearlyError:
        return
    law(checked)
    assert "${" not in checked.text
    words = [token.text.lower() for token in tokens_of(checked.text) if token.token_type.name != "STRING"]
    assert not {"reflect", "try_reflect", "java_method", "identifier"} & set(words)
    tables = list(checked.tree.find_all(exp.Table))
    assert not any(table.db.lower() in ("text", "csv", "binaryfile", "parquet") for table in tables)


def test_hints_and_comments_do_not_travel() -> None:
    text = "select /*+ BROADCAST(t) */ a -- x\n, /* y */ 10L from t;"
    assert check_query(text).text == "select a , 10L from t"


@pytest.mark.parametrize(
    "value", ["", "it's", 'say "so"', "a\\b", "\\", "${env:X}", "$${x}", "tab\tnew\nline\r", "é\U0001f600", "\0", "--", "/*+"]
)
def test_strings_come_back(value: str) -> None:
    (token,) = tokens_of(string(value))
    assert token.text == value
    assert "${" not in string(value)


def test_names_come_back() -> None:
    (token,) = tokens_of(name("a `quoted` name"))
    assert token.text == "a `quoted` name"
    with pytest.raises(Unsupported, match="variable"):
        name("${env:X}")


def test_parentheses_in_strings_are_no_nesting() -> None:
    assert check_query(f"select '{'(' * 500}' as s").text == f"select '{'(' * 500}' as s"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select a,,b from t", "nothing stands after the comma at line 1, column 9"),
        ("select a, from t", "nothing stands after the comma"),
        ("select (,a) from t", "nothing stands before the comma"),
        ("values (1,)", "nothing stands after the comma"),
        ("select from t", "nothing to select"),
        ("select distinct from t", "nothing to select"),
        ("select a from t where a in ()", "IN has no values"),
        ("select count(distinct) from t", "has no argument"),
        ("select * as b from t", "a star cannot have the name 'b'"),
        ("select a from t where", "something is missing near 'where'"),
        ("select a from t order by", "something is missing"),
        ("select a from (select 1", "expected )"),
        ("select a b c from t", "this was not expected here near 'c'"),
        ("select a # b from t", "'#' at line 1"),
        ("select 0x1f from t", "'0x1f'"),
    ],
)
def test_errors_are_told_in_words(text: str, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        check_query(text)
    assert said in str(caught.value)
    assert "sqlglot" not in str(caught.value)
    assert "Required keyword" not in str(caught.value)
