"""How a ticket is made of words, one for each column: rounds of xor, multiplication and remainder that no kernel overflows.

Every step is written once, so that the text grows with the number of columns and no faster. A remainder by a prime mixes high bits
into low ones, and the xor between two of them keeps the whole from being linear. Law: both kernels give the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from nearly.plan.dialects import sql
from nearly.plan.dialects.sql import Node
from nearly.plan.functions.tickets import TICKETS

START = 1_640_531_527
WORD_PRIME = 2_147_483_647
MULTIPLIER, PRIME = 1_068_501_419, 2_147_483_629
"""Multipliers lie below 2^30 and what they multiply below 2^32, so products fit 64 bits with their sign."""
ROUNDS = (
    (1_103_515_245, 1_013_904_243, 2_147_483_587),
    (362_436_069, 957_706_381, 2_147_483_579),
    (521_288_629, 1_029_531_031, 2_147_483_563),
)
"""With one round less, neighbouring keys have tickets that a test of pairs tells from random ones."""
NULL_WORD = 7_046_029_254_386_353

Xor = Callable[[Node, Node], Node]


def ticket(words: Sequence[Node], xor: Xor) -> Node:
    """The ticket of words, each a 64-bit number or null."""
    mixed: Node = sql.integer(START)
    for word in words:
        known = sql.function("coalesce", word, sql.integer(NULL_WORD))
        positive = sql.binary(exp.Add, _remainder(known, WORD_PRIME), sql.integer(WORD_PRIME))
        mixed = _round(xor(mixed, positive), MULTIPLIER, PRIME)
    for mask, multiplier, prime in ROUNDS:
        mixed = _round(xor(mixed, sql.integer(mask)), multiplier, prime)
    return _remainder(mixed, TICKETS)


def _round(node: Node, multiplier: int, prime: int) -> Node:
    return _remainder(sql.binary(exp.Mul, node, sql.integer(multiplier)), prime)


def _remainder(node: Node, divisor: int) -> Node:
    return sql.binary(exp.Mod, node, sql.integer(divisor))
