"""Sets of values of one column: unions of ranges of a discrete ordered domain, and perhaps null.

Every type that Spark stores is discrete: each value has a next one (5 and 6, 0.99 and 1.00, a double and its neighbour, a text and
the same text with a zero byte). So a value is a *rank* of an ordered domain, every range is half-open `[first, end)` with ranks
as its ends, and open and closed ends, integers and doubles need no cases of their own. A range is empty exactly when
`first >= end`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

Rank: TypeAlias = Any
"""An `int`, or a `str` for texts; ranks of one column are of one kind."""

Piece: TypeAlias = tuple[Rank, Rank]


class _EndOfTexts(str):
    """Greater than every text: texts have no last one."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return self is other

    def __gt__(self, other: object) -> bool:
        return self is not other

    def __ge__(self, other: object) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = str.__hash__

    def __reduce__(self) -> str:
        return "END_OF_TEXTS"


END_OF_TEXTS = _EndOfTexts("end of texts")


@dataclass(frozen=True, slots=True)
class OrderedSet:
    """The union of disjoint, sorted ranges `[first, end)`; `null` says whether the absent value belongs to it.

    >>> both = OrderedSet(((0, 5), (8, 9)), null=True)
    >>> both & OrderedSet(((3, 20),))
    OrderedSet(pieces=((3, 5), (8, 9)), null=False)
    >>> both - OrderedSet(((3, 20),))
    OrderedSet(pieces=((0, 3),), null=True)
    """

    pieces: tuple[Piece, ...]
    null: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.pieces and not self.null

    @property
    def first(self) -> Rank:
        """The least value; only for sets that hold one."""
        return self.pieces[0][0]

    @property
    def end(self) -> Rank:
        """The rank behind the greatest value; only for sets that hold one."""
        return self.pieces[-1][1]

    def meets(self, other: OrderedSet) -> bool:
        """Whether the sets have a value in common."""
        if self.null and other.null:
            return True
        if len(self.pieces) == 1 == len(other.pieces):
            (a, b), (c, d) = self.pieces[0], other.pieces[0]
            return bool(a < d and c < b)
        return bool(_common(self.pieces, other.pieces))

    def __contains__(self, rank: Rank) -> bool:
        return any(first <= rank < end for first, end in self.pieces)

    def __and__(self, other: OrderedSet) -> OrderedSet:
        return OrderedSet(_common(self.pieces, other.pieces), self.null and other.null)

    def __sub__(self, other: OrderedSet) -> OrderedSet:
        return OrderedSet(_difference(self.pieces, other.pieces), self.null and not other.null)

    def __or__(self, other: OrderedSet) -> OrderedSet:
        return OrderedSet(_union(self.pieces, other.pieces), self.null or other.null)

    def __le__(self, other: OrderedSet) -> bool:
        """Whether this is a subset of the other."""
        if self.null and not other.null:
            return False
        if len(self.pieces) == 1 == len(other.pieces):
            (a, b), (c, d) = self.pieces[0], other.pieces[0]
            return bool(c <= a and b <= d)
        return not _difference(self.pieces, other.pieces)

    @property
    def without_null(self) -> OrderedSet:
        return OrderedSet(self.pieces) if self.null else self


EMPTY = OrderedSet(())
ONLY_NULL = OrderedSet((), null=True)


def span(first: Rank, end: Rank) -> OrderedSet:
    """The values from `first` up to but not including `end`."""
    return OrderedSet(((first, end),)) if first < end else EMPTY


def _common(left: tuple[Piece, ...], right: tuple[Piece, ...]) -> tuple[Piece, ...]:
    found = []
    i = j = 0
    while i < len(left) and j < len(right):
        first, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if first < end:
            found.append((first, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def _difference(left: tuple[Piece, ...], right: tuple[Piece, ...]) -> tuple[Piece, ...]:
    found = []
    for piece_first, piece_end in left:
        first = piece_first
        for cut_first, cut_end in right:
            if cut_end <= first or cut_first >= piece_end:
                continue
            if first < cut_first:
                found.append((first, cut_first))
            first = cut_end
            if first >= piece_end:
                break
        if first < piece_end:
            found.append((first, piece_end))
    return tuple(found)


def _union(left: tuple[Piece, ...], right: tuple[Piece, ...]) -> tuple[Piece, ...]:
    found: list[Piece] = []
    for first, end in sorted((*left, *right), key=lambda piece: piece[0]):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((first, end))
    return tuple(found)
